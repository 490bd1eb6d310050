import { describe, expect, test } from "vitest";
import { fromAddress, START, type State, toAddress } from "../src/state/address";

describe("the address", () => {
  test("shows the same view to whoever follows it", () => {
    const state: State = {
      source: "main",
      window: [1_700_000_000_000_000, 1_700_000_001_000_000],
      selection: [1_700_000_000_100_000, 1_700_000_000_200_000],
      base: [1_700_000_000_300_000, 1_700_000_000_400_000],
      view: "long",
      by: "function",
      value: "^mem_cgroup.*$ & =#%",
      finding: "MCG001:/a/run-<n>",
      search: "memcg|lru",
      upright: true,
      zombiesBy: "file",
    };
    expect(fromAddress(toAddress(state))).toEqual(state);
  });

  test("is short for what is shown at first", () => {
    expect(toAddress({ ...START, source: "main" })).toBe("#source=main");
  });

  test.each([
    ["", START],
    ["#window=5-4", START],
    ["#window=-1-4", START],
    ["#window=1-99999999999999999", START],
    ["#by=everything&view=sideways&zombies=x", START],
    ["#upright=yes", START],
    ["#by=core&value=3", { ...START, by: "core", value: "3" }],
  ])("makes the best of %j", (hash, expected) => {
    expect(fromAddress(hash)).toEqual(expected);
  });

  test("keeps what it takes over short", () => {
    expect(fromAddress(`#search=${"x".repeat(10_000)}`).search).toHaveLength(512);
  });
});
