import { describe, expect, test } from "vitest";
import { exported, FROM, GUILTY_CORE, RESET, TO } from "../dev/node";
import { EmbeddedClient } from "../src/api/embedded/client";
import type { HeatQuery } from "../src/api/client";
import type { Range } from "../src/api/types";
import { search } from "../src/views/flame/search";

const SECOND = 1_000_000;
const ALL = { by: "all" as const, value: "" };
const BEFORE: Range = [RESET - 1100 * SECOND, RESET - 1000 * SECOND];
const GUILTY: Range = [RESET - SECOND, RESET];

const client = new EmbeddedClient(exported());

function heat(part: Partial<HeatQuery>): HeatQuery {
  return { range: [RESET - 10 * SECOND, RESET], view: "offset", facet: ALL, rows: 50, columns: 600, ...part };
}

describe("a page with its data inside", () => {
  test("folds any range into a flame graph", async () => {
    const flame = await client.flame("", { range: GUILTY, base: null, facet: ALL });
    expect(flame.samples).toBe(10);
    expect(search(flame, "mem_cgroup_node_nr_lru_pages")?.share).toBeCloseTo(0.5);
    for (let node = 1; node < flame.nodes.parent.length; node++) {
      expect(flame.nodes.parent[node]).toBeLessThan(node);
    }
  });

  test("compares two ranges", async () => {
    const flame = await client.flame("", { range: GUILTY, base: BEFORE, facet: ALL });
    const found = search(flame, "memcg_numa_stat_show");
    expect(found?.share).toBeCloseTo(0.5);
    expect(found?.before).toBe(0);
  });

  test.each([
    ["core", String(GUILTY_CORE), 5],
    ["process", "900", 5],
    ["unit", "kubelet.service", 5],
    ["thread", "900", 5],
    ["container", "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100", 5],
    ["pod", "01234567-89ab-cdef-0123-456789abcdef", 5],
    ["function", "^json", 5],
    ["function", "^nothing$", 0],
    ["unit", "no such unit", 0],
  ] as const)("keeps to one %s, %s", async (by, value, samples) => {
    const flame = await client.flame("", { range: GUILTY, base: null, facet: { by, value } });
    expect(flame.samples).toBe(samples);
    const map = await client.heatmap("", heat({ range: GUILTY, facet: { by, value } }));
    expect(map.total).toBe(samples);
  });

  test("says what is wrong with an expression", async () => {
    const asked = client.flame("", { range: GUILTY, base: null, facet: { by: "function", value: "[x" } });
    await expect(asked).rejects.toThrow(/^function: .*character class/);
  });

  test("counts every sample of the window once, in both views", async () => {
    for (const view of ["offset", "long", "threads"] as const) {
      const map = await client.heatmap("", heat({ view }));
      expect(map.total).toBe(100);
      expect(map.values.reduce((sum, value) => sum + value, 0)).toBe(100);
      expect(map.values).toHaveLength(map.rows * map.columns);
      expect(map.rows * map.row_step).toBeGreaterThanOrEqual(view === "offset" ? SECOND : map.step);
    }
  });

  test("gives each thread a row, the busiest on top", async () => {
    const map = await client.heatmap("", heat({ view: "threads", rows: 2 }));
    expect(map.tracks.map((track) => track.label)).toEqual(["kubelet 900/900", "python3 901/901"]);
    expect(map.tracks_left_out).toBe(1);
    const row = (at: number) => map.values.slice(at * map.columns, (at + 1) * map.columns);
    const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
    expect(map.tracks.map((track) => track.samples)).toEqual([sum(row(1)), sum(row(0))]);
  });

  test("columns are counted from the zero of the recording's own clock", async () => {
    const { samples } = exported();
    for (const view of ["offset", "long", "threads"] as const) {
      const map = await client.heatmap("", heat({ view, columns: 7, range: [RESET - 10 * SECOND + 17, RESET] }));
      expect((map.from - (samples?.zero ?? 0)) % map.step).toBe(0);
      expect(map.columns).toBeLessThanOrEqual(7);
      expect(map.from).toBeLessThanOrEqual(RESET - 10 * SECOND + 17);
    }
  });

  test("names the parts one can choose, most samples first", async () => {
    const map = await client.heatmap("", heat({ facet: { by: "process", value: "" } }));
    expect(map.parts.map((part) => part.label).sort()).toEqual(["kubelet 900", "python3 901"]);
    expect(map.parts[0].samples).toBeGreaterThanOrEqual(map.parts[1].samples);
  });

  test("keeps gaps apart from zero", async () => {
    const { tiles } = await client.tiles("", ["pressure", "core-40"], [FROM, TO]);
    for (const tile of tiles) {
      expect(tile.gaps).toHaveLength(1);
      expect(tile.values).toContain(null);
      expect(tile.values).not.toContain(0);
    }
  });

  test("says what is missing when there were too many samples", async () => {
    const without = new EmbeddedClient({ ...exported(), samples: null });
    await expect(without.flame("", { range: GUILTY, base: null, facet: ALL })).rejects.toThrow("sexton serve");
    await expect(without.heatmap("", heat({}))).rejects.toThrow("sexton serve");
  });
});
