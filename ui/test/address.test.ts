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
      link: "CPU002:kubelet>CPU001:1",
      search: "memcg|lru",
      upright: true,
      frame: ["kubelet", "do_syscall_64", "foo(int; char)"],
      tab: "top",
      func: "mem_cgroup_node_nr_lru_pages",
      zombiesBy: "file",
      section: "flame",
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

  test("holds a whole stack or none of it", () => {
    const frame = Array.from({ length: 200 }, (_, i) => `a_function_with_a_name_${i}`);
    expect(fromAddress(toAddress({ ...START, frame })).frame).toEqual([]);
  });

  test("keeps what it takes over short", () => {
    expect(fromAddress(`#search=${"x".repeat(10_000)}`).search).toHaveLength(512);
  });
});
