import { describe, expect, test } from "vitest";
import type { Flame } from "../src/api/types";
import { random } from "../dev/random";
import { folded, layout, nodeAt, stackOf } from "../src/views/flame/layout";
import { moveFocus } from "../src/views/flame/focus";
import { nodeOf, pathOf } from "../src/views/flame/path";
import { search } from "../src/views/flame/search";
import { functions, sandwich } from "../src/views/flame/top";

/** all > a > (b > c, d); b also appears below itself. */
function small(): Flame {
  return flameOf({
    names: ["all", "a", "b", "c", "d"],
    parent: [-1, 0, 1, 2, 1, 3],
    name: [0, 1, 2, 3, 4, 2],
    value: [10, 10, 6, 6, 4, 5],
  });
}

function flameOf(nodes: {
  names: string[];
  parent: number[];
  name: number[];
  value: number[];
  base?: number[];
}): Flame {
  const { names, parent, name, value, base } = nodes;
  return {
    from: 0,
    to: 1,
    event: "cpu-clock",
    samples: value[0],
    base_samples: base ? base[0] : null,
    total: value[0],
    base_total: base ? base[0] : null,
    names,
    nodes: { parent, name, value, kind: parent.map(() => 1), ...(base && { base }) },
    cut: null,
    gaps: [],
  };
}

describe("a flame graph", () => {
  test("puts children side by side within their caller, the widest first", () => {
    const { x, w, levels } = layout(small());
    expect([...levels.map((level) => [...level])]).toEqual([[0], [1], [2, 4], [3], [5]]);
    expect([x[2], w[2], x[4], w[4]]).toEqual([0, 0.6, 0.6, 0.4]);
  });

  test("finds the frame under the pointer, and none where there is none", () => {
    const made = layout(small());
    expect(nodeAt(made, 2, 0.59)).toBe(2);
    expect(nodeAt(made, 2, 0.61)).toBe(4);
    expect(nodeAt(made, 3, 0.61)).toBe(null);
    expect(nodeAt(made, 9, 0.1)).toBe(null);
  });

  test("copies a stack as other tools read it", () => {
    expect(folded(small(), 3)).toBe("a;b;c 6");
    expect(stackOf(small(), 5)).toEqual([0, 1, 2, 3, 5]);
  });

  test("counts what recursion finds twice only once", () => {
    const found = search(small(), "^b$");
    expect(found?.nodes).toBe(2);
    expect(found?.share).toBeCloseTo(0.6);
    expect(search(small(), "(")?.nodes).toBe(0);
    expect(search(small(), "")).toBe(null);
  });

  test("shows what is gone when two windows are compared", () => {
    const flame = flameOf({
      names: ["all", "gone", "new"],
      parent: [-1, 0, 0],
      name: [0, 1, 2],
      value: [8, 0, 8],
      base: [4, 4, 0],
    });
    const { w } = layout(flame);
    expect([w[1], w[2]]).toEqual([0.5, 0.5]);
    const found = search(flame, "gone");
    expect([found?.share, found?.before]).toEqual([0, 1]);
  });

  test("is walked with the arrow keys", () => {
    const flame = small();
    const made = layout(flame);
    expect(moveFocus(flame, made, 1, "ArrowDown", false)).toBe(2);
    expect(moveFocus(flame, made, 2, "ArrowRight", false)).toBe(4);
    expect(moveFocus(flame, made, 4, "ArrowDown", false)).toBe(4);
    expect(moveFocus(flame, made, 4, "ArrowUp", false)).toBe(1);
    expect(moveFocus(flame, made, 1, "ArrowUp", true)).toBe(2);
    expect(moveFocus(flame, made, 1, "x", false)).toBe(null);
  });

  test("of 100,000 frames holds together", () => {
    const flame = large(100_000);
    const { x, w, levels } = layout(flame);
    const overlaps = levels.flatMap((level) =>
      [...level].filter((node, i) => i > 0 && x[node] < x[level[i - 1]] + w[level[i - 1]] - 1e-9),
    );
    expect(overlaps).toEqual([]);
    const node = levels[3][Math.floor(levels[3].length / 2)];
    expect(nodeAt({ x, w, levels, depth: new Uint16Array() }, 3, x[node] + w[node] / 2)).toBe(node);
  });
});

function large(n: number): Flame {
  const chance = random(5);
  const parent = [-1];
  for (let node = 1; node < n; node++) parent.push(Math.max(0, node - 1 - Math.floor(chance() * Math.min(node, 400))));
  const value = parent.map(() => 1);
  for (let node = n - 1; node > 0; node--) value[parent[node]] += value[node];
  return flameOf({ names: parent.map((_, i) => `f${i}`), parent, name: parent.map((_, i) => i), value });
}

describe("functions", () => {
  test("have what they take by themselves and in all, recursion once", () => {
    // a is the program; b calls c, which calls b again.
    expect(functions(small())).toEqual([
      { name: "b", self: 5, total: 6 },
      { name: "d", self: 4, total: 4 },
      { name: "c", self: 1, total: 6 },
    ]);
  });

  test("stand between their callers and what they call", () => {
    const { callers, callees } = sandwich(small(), "b");
    expect(callers.map(({ name, total }) => [name, total])).toEqual([["a", 6]]);
    expect(callees.map(({ name, total }) => [name, total])).toEqual([["c", 6]]);
  });

  test("take together what was sampled, by themselves", () => {
    const flame = small();
    const self = functions(flame).reduce((sum, cost) => sum + cost.self, 0);
    expect(self).toBe(flame.total);
  });
});

describe("a frame in an address", () => {
  test("is found again by its path", () => {
    const flame = small();
    for (let node = 0; node < flame.nodes.parent.length; node++) {
      expect(nodeOf(flame, pathOf(flame, node))).toBe(node);
    }
  });

  test("that these samples lack is everything", () => {
    expect(nodeOf(small(), ["a", "gone"])).toBe(0);
  });
});
