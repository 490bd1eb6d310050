import { expect, test } from "vitest";
import type { Lane, Tile } from "../src/api/types";
import { unseen } from "../src/views/timeline/drawing";
import { eventCount, isUnseen } from "../src/views/timeline/row";

const lane = (kind: Lane["kind"]): Lane => ({
  id: "x",
  group: "units",
  group_title: "Units",
  label: "x",
  unit: "count",
  per_second: false,
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

const event = (at: number, count: number) => ({ at, count, kind: "x", text: "x", subject: { kind: "node", name: "" } });
const told = { ...tile([1, 2, 0, 4]), events: [event(101, 1), event(112, 2), event(135, 4)] };

test.each<[string, Tile, [number, number], string]>([
  ["all of the time", told, [100, 140], "7"],
  ["a window", told, [110, 130], "2 of 7"],
  ["a window without one", told, [120, 130], "0 of 7"],
  ["too many to be told one by one", { ...told, events: [], events_left_out: 7 }, [120, 140], "~4 of 7"],
])("events of %s are counted", (_, given, window, expected) => {
  expect(eventCount(7, given, window, [100, 140])).toBe(expected);
});
