import { expect, test } from "vitest";
import type { Row } from "../src/fleet/api";
import { conditionOf, fromAddress, START, toAddress, withCondition } from "../src/fleet/state";
import { cellWords, edges, rowAt, runs, worst } from "../src/fleet/words";

const row = (nodes: number, cells: string): Row => ({ first: 0, nodes, names: ["web1"], cells, bad: [0, 7] });

test("an address brings the same view back", () => {
  const state = {
    ...START,
    by: "zone",
    sort: "since" as const,
    where: ["zone=us-east-1a", "label_team=a=b"],
    name: "web",
    code: "NIC001",
    severity: "3",
    rows: [10, 250] as [number, number],
    node: "web7#2",
    bad: "nic_resets > 0",
    good: "zone = 'us-east-1a'",
    compared: true,
  };
  expect(fromAddress(toAddress(state))).toEqual(state);
  expect(toAddress(START)).toBe("#");
});

test("an address that makes no sense is passed over", () => {
  expect(fromAddress("#sort=height&rows=9-3&severity=9&where=zone&compared=yes")).toEqual(START);
});

test("a column has one condition", () => {
  const where = withCondition(["zone=a", "zone_id=1"], "zone", "b");
  expect(where).toEqual(["zone_id=1", "zone=b"]);
  expect(conditionOf(where, "zone")).toBe("b");
  expect(withCondition(where, "zone", "")).toEqual(["zone_id=1"]);
});

test("a row is as high as its nodes", () => {
  const at = edges([row(1, "0"), row(3, "0")]);
  expect(at).toEqual([0, 0.25, 1]);
  expect([0, 0.24, 0.25, 0.99, 1, -0.1].map((share) => rowAt(at, share))).toEqual([0, 0, 1, 1, null, null]);
  expect(rowAt(edges([]), 0.5)).toBeNull();
});

test("equal cells are drawn at once, and none is lost", () => {
  expect(runs("00.334")).toEqual([["0", 0, 2], [".", 2, 3], ["3", 3, 5], ["4", 5, 6]]);
  expect(runs("")).toEqual([]);
});

test("a node that could not see is worse than one without a finding", () => {
  expect(["..", ".0", "0?.", "?1", "14?3"].map(worst)).toEqual([".", "0", "?", "1", "4"]);
  expect(cellWords(row(1, "?0"), 0)).toBe("web1: could not see enough");
});

test("what was not reported is not called healthy", () => {
  expect(cellWords(row(1, ".0"), 0)).toBe("web1: no report");
  expect(cellWords(row(1, ".0"), 1)).toBe("web1: no finding");
  expect(cellWords(row(250, ".3"), 0)).toBe("web1 and 249 more: no report");
  expect(cellWords(row(250, ".3"), 1)).toBe("web1 and 249 more: worst: serious, 7 of 250 nodes serious or critical");
});
