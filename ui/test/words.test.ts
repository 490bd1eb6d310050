import { expect, test } from "vitest";
import { perHour } from "../src/time/format";
import { unbroken } from "../src/views/verdict/words";

test.each([
  ["burns 90 % of core 0", "burns 90_% of core 0"],
  ["waited 911 ms for core 0", "waited 911_ms for core 0"],
  ["22.6 MiB in 28 s", "22.6_MiB in 28_s"],
  ["2 sections, 3 hosts", "2 sections, 3 hosts"],
])("%s stays together where it should", (text, expected) => {
  expect(unbroken(text).replaceAll("\u00a0", "_")).toBe(expected);
});

test.each([
  [310_456, "+310,000/h"],
  [10_510, "+10,500/h"],
  [2_232, "+2,200/h"],
  [-48, "−48/h"],
  [0, "+0/h"],
])("%d an hour is %s, as in a report", (rate, expected) => {
  expect(perHour(rate)).toBe(expected);
});
