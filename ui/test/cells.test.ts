import { expect, test } from "vitest";
import { cellAt, columnsOf, gridFor, isExact, rangeOfCell, rangeOfCells } from "../src/views/heatmap/cells";

const GRID = { view: "offset" as const, from: 10_000_000, step: 1_000_000, row_step: 20_000, rows: 50, columns: 30 };

test("a cell is its stretch of time", () => {
  expect(cellAt(GRID, 0, 0.999)).toEqual({ column: 0, row: 0 });
  expect(cellAt(GRID, 0.9999, 0)).toEqual({ column: 29, row: 49 });
  expect(rangeOfCell(GRID, { column: 2, row: 3 })).toEqual([12_060_000, 12_080_000]);
});

test("outside of the map is its edge", () => {
  expect(cellAt(GRID, -3, 7)).toEqual({ column: 0, row: 0 });
  expect(cellAt(GRID, 3, -7)).toEqual({ column: 29, row: 49 });
});

test("a drag is the same in both directions", () => {
  const [a, b] = [
    { column: 2, row: 40 },
    { column: 5, row: 3 },
  ];
  expect(rangeOfCells(GRID, a, b)).toEqual([12_800_000, 15_080_000]);
  expect(rangeOfCells(GRID, b, a)).toEqual(rangeOfCells(GRID, a, b));
});

test("a range is drawn as parts of columns that add up to it", () => {
  const parts = columnsOf(GRID, [12_800_000, 15_080_000]);
  expect(parts.map(({ column }) => column)).toEqual([2, 3, 4, 5]);
  const sum = parts.reduce((all, { from, to }) => all + (to - from) * GRID.step, 0);
  expect(sum).toBeCloseTo(2_280_000);
});

test("columns of many seconds are chosen whole", () => {
  const folded = { ...GRID, step: 60_000_000 };
  expect(isExact(folded)).toBe(false);
  expect(rangeOfCell(folded, { column: 1, row: 30 })).toEqual([70_000_000, 130_000_000]);
});

test("cells are never finer than what is sampled, nor more than fit", () => {
  expect(gridFor("long", [0, 28_000_000], 1200)).toEqual({ rows: 25, columns: 56 });
  expect(gridFor("long", [0, 12 * 3_600_000_000], 1200)).toEqual({ rows: 50, columns: 600 });
  expect(gridFor("offset", [0, 12 * 3_600_000_000], 1200)).toEqual({ rows: 50, columns: 600 });
  expect(gridFor("long", [0, 1_000_000], 1200)).toEqual({ rows: 5, columns: 20 });
});
