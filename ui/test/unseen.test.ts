import { expect, test } from "vitest";
import type { Lane, Tile } from "../src/api/types";
import { isUnseen } from "../src/views/timeline/row";

const lane = (kind: Lane["kind"]): Lane => ({
  id: "x",
  group: "units",
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
  ["a short gap changes little", "events", tile([0, 0, 0, 0], [[100, 110, "late"]]), false],
])("%s", (_, kind, given, expected) => {
  expect(isUnseen(lane(kind), given)).toBe(expected);
});
