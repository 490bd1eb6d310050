import { expect, test } from "vitest";
import type { Range } from "../src/api/types";
import { ticks } from "../src/time/ticks";
import { around, panned, SHORTEST_US, span, within, zoomed } from "../src/time/window";

const ALL: Range = [0, 1_000_000_000];

test("zooming keeps the moment under the pointer in its place", () => {
  const window: Range = [100_000_000, 500_000_000];
  const next = zoomed(window, 0.5, 200_000_000, ALL);
  expect(span(next)).toBe(200_000_000);
  expect((200_000_000 - next[0]) / span(next)).toBeCloseTo(0.25);
});

test("zooming ends at a millisecond and at all there is", () => {
  let window: Range = [0, 1_000_000_000];
  for (let i = 0; i < 100; i++) window = zoomed(window, 0.5, 300_000_000, ALL);
  expect(span(window)).toBe(SHORTEST_US);
  for (let i = 0; i < 100; i++) window = zoomed(window, 2, 300_000_000, ALL);
  expect(window).toEqual(ALL);
});

test("panning stops at the ends and keeps its length", () => {
  expect(panned([0, 100_000], -1, ALL)).toEqual([0, 100_000]);
  expect(panned([999_900_000, 1_000_000_000], 5, ALL)).toEqual([999_900_000, 1_000_000_000]);
  expect(within([-50, 1e12], ALL)).toEqual(ALL);
});

test("what is shown has room around it", () => {
  const shown = around([500_000_000, 501_000_000], ALL);
  expect(shown[0]).toBeLessThan(500_000_000);
  expect(shown[1]).toBeGreaterThan(501_000_000);
});

test.each([
  [[0, 12 * 3600 * 1_000_000], 12],
  [[1_700_000_000_123_456, 1_700_000_000_124_456], 10],
  [[0, 30 * 86400 * 1_000_000], 8],
] as [Range, number][])("ticks of %j are round and no more than fit", (range, most) => {
  const { step, at } = ticks(range, most);
  expect(at.length).toBeGreaterThan(1);
  expect(at.length).toBeLessThanOrEqual(most + 1);
  for (const time of at) expect(time % step).toBe(0);
});
