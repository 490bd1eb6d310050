import { expect, test } from "vitest";
import type { Lane, Tile } from "../src/api/types";
import { unseen } from "../src/views/timeline/drawing";
import { isUnseen } from "../src/views/timeline/row";

const lane = (kind: Lane["kind"]): Lane => ({
  id: "x",
  group: "units",
  group_title: "Units",
  label: "x",
  unit: "count",
  kind,
  max: 0,
  subject: null,
  about: "x",
});
const tile = (values: Tile["values"], gaps: Tile["gaps"] = []): Tile => ({
  lane: "x",
  from: 100,
  step: 10,
  values,
  gaps,
});

test.each<[string, Lane["kind"], Tile, boolean]>([
  ["a line at zero was seen", "line", tile([0, 0, 0]), false],
  ["a line that is partly known was seen", "line", tile([null, 0, null]), false],
  ["a line without a value was not", "line", tile([null, null]), true],
  ["no event without a gap is none", "events", tile([0, 0, 0, 0]), false],
  ["no event in a gap is unknown", "events", tile([0, 0, 0, 0], [[105, 900, "no systemd"]]), true],
  ["no event where nobody looked is unknown", "events", tile([null, null]), true],
  ["a short gap changes little", "events", tile([0, 0, 0, 0], [[100, 110, "late"]]), false],
])("%s", (_, kind, given, expected) => {
  expect(isUnseen(lane(kind), given)).toBe(expected);
});

test.each<[string, Tile, [number, number][]]>([
  ["all was seen", tile([1, 0, 2]), []],
  ["what has no value was not", tile([1, null, null, 2]), [[110, 130]]],
  ["to the end", tile([1, null]), [[110, 120]]],
  ["what a gap says is not hatched twice", tile([1, null, null], [[105, 118, "late"]]), [[105, 130]]],
  ["gaps that are apart stay apart", tile([1, 1, 1], [[125, 130, "b"], [100, 110, "a"]]), [[100, 110], [125, 130]]],
])("unseen: %s", (_, given, expected) => {
  expect(unseen(given)).toEqual(expected);
});
