import { expect, test } from "vitest";
import { perTime } from "../src/views/zombies/growth";
import { unbroken } from "../src/views/verdict/words";

test.each([
  ["burns 90 % of core 0", "burns 90_% of core 0"],
  ["waited 911 ms for core 0", "waited 911_ms for core 0"],
  ["22.6 MiB in 28 s", "22.6_MiB in 28_s"],
  ["2 sections, 3 hosts", "2 sections, 3 hosts"],
])("%s stays together where it should", (text, expected) => {
  expect(unbroken(text).replaceAll("\u00a0", "_")).toBe(expected);
});

const MINUTE = 60e6;
test.each([
  [86_400, 1 * MINUTE, "60 more a minute"],
  [86_400, 60 * MINUTE, "3,600 more an hour"],
  [86_400, 1440 * MINUTE, "86,400 more a day"],
  [-48, 60 * MINUTE, "2 fewer an hour"],
])("%d a day, seen for %d µs", (perDay, seen, expected) => {
  expect(perTime(perDay, seen)).toBe(expected);
});
