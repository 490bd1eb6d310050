import { expect, test } from "vitest";
import { CORES, exported } from "../dev/node";
import { groups, heightOf } from "../src/views/timeline/groups";

const { lanes } = exported().lanes;

test("strips of many cores come last and thin, so that all else is in sight", () => {
  const all = groups(lanes);
  expect(all.map((group) => group.id)).toEqual(["cores", "network", "nic", "memcg", "units", "pressure", "each-cores"]);
  expect(all[0].lanes.map((lane) => lane.id)).toEqual(["worst"]);
  const each = all[all.length - 1];
  expect(each.lanes).toHaveLength(CORES);
  expect(each.lanes.every((lane) => heightOf(lane, each.thin) < 10)).toBe(true);
});

test("a few cores stay where they belong", () => {
  const few = groups(lanes.filter((lane) => !lane.id.startsWith("core-") || Number(lane.id.slice(5)) < 4));
  expect(few[0].lanes).toHaveLength(5);
  expect(few.some((group) => group.thin)).toBe(false);
});

test("no lane is lost, not even of a group that is not known here", () => {
  const more = [...lanes, { ...lanes[0], id: "x", group: "later" }];
  const shown = groups(more).flatMap((group) => group.lanes);
  expect(shown).toHaveLength(more.length);
  expect(new Set(shown).size).toBe(more.length);
});
