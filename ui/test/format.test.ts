import { expect, test } from "vitest";
import { bytes, length, moment, percent, quantity } from "../src/time/format";

test.each([
  [0, "0 µs"],
  [750_000, "750 ms"],
  [1_000_000, "1 s"],
  [90_000_000, "90 s"],
  [16 * 60_000_000, "16 min"],
  [12 * 3_600_000_000, "12 h"],
  [3 * 86_400_000_000, "3 days"],
])("%d µs is %s", (us, words) => expect(length(us)).toBe(words));

test("a moment is as precise as its axis", () => {
  const at = Date.UTC(2026, 10, 15, 23, 41, 41, 896) * 1000 + 643;
  expect(moment(at, "wall", 60_000_000)).toBe("23:41");
  expect(moment(at, "wall", 1_000_000)).toBe("23:41:41");
  expect(moment(at, "wall", 1000)).toBe("23:41:41.896");
  expect(moment(at, "wall", 10)).toBe("23:41:41.896643");
  expect(moment(1_500_000, "boot", 1000)).toBe("+0:01.500");
  expect(moment(28_656_123_456, "boot", 1_000_000)).toBe("+7:57:36");
  expect(moment(28_656_123_456, "boot", 10)).toBe("+7:57:36.123456");
});

test("what was not seen is not zero", () => {
  expect(quantity(null, "ratio")).toBe("not seen");
  expect(quantity(0, "ratio")).toBe("0.0 %");
  expect(quantity(911_281_152, "ns")).toBe("911 ms");
  expect(quantity(97.4, "count", true)).toBe("97.4/s");
  expect(quantity(null, "count", true)).toBe("not seen");
  expect(bytes(22.6 * 1024 * 1024)).toBe("22.6 MiB");
  expect(percent(0.0003)).toBe("< 0.1 %");
  expect(percent(0.0999)).toBe("10 %");
});

test.each([
  [1023, "1,023 B"],
  [1536, "1.5 KiB"],
  [1.25 * 2 ** 20, "1.3 MiB"],
  [500 * 2 ** 20, "500 MiB"],
  [2 ** 30 - 1, "1 GiB"],
])("%d bytes are %s, as in a report", (n, words) => expect(bytes(n)).toBe(words));
