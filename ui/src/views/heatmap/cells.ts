// Which cell is which time. Pure, so that a drag can be tested without a screen.

import type { HeatMap, HeatView, Range } from "../../api/types";

export interface Cell {
  column: number;
  row: number;
}

type Grid = Pick<HeatMap, "view" | "from" | "step" | "row_step" | "rows" | "columns">;

const MOST_ROWS = 50;
/** Samples of a core are about 10 ms apart: finer cells than this would show chance. */
const CELL_US = 20_000;
const LONG_COLUMN_US = 500_000;
/** Rows of the busiest threads; others would be nearly empty. */
const MOST_THREADS = 30;
/** Finer columns of a single thread would hold no sample or one. */
const THREAD_COLUMN_PX = 3;

/** How many rows and columns to ask for, in so many pixels. */
export function gridFor(view: HeatView, window: Range, pixels: number): { rows: number; columns: number } {
  const fit = Math.min(4096, Math.max(20, Math.floor(pixels / 2)));
  if (view === "offset") return { rows: MOST_ROWS, columns: fit };
  if (view === "threads") return { rows: MOST_THREADS, columns: Math.max(20, Math.floor(pixels / THREAD_COLUMN_PX)) };
  const long = window[1] - window[0];
  const columns = Math.min(fit, Math.max(20, Math.ceil(long / LONG_COLUMN_US)));
  const rows = Math.min(MOST_ROWS, Math.max(5, Math.round(long / columns / CELL_US)));
  return { rows, columns };
}

/** Whether a cell is one stretch of time; columns of many seconds fold them into one, and rows
    of threads share theirs. */
export function isExact(grid: Grid): boolean {
  return grid.view !== "threads" && grid.step <= grid.rows * grid.row_step * 1.01;
}

export function cellAt(grid: Grid, xShare: number, yShare: number): Cell {
  const clamp = (value: number, end: number) => Math.min(Math.max(Math.floor(value), 0), end - 1);
  return {
    column: clamp(xShare * grid.columns, grid.columns),
    row: clamp((1 - yShare) * grid.rows, grid.rows),
  };
}

export function rangeOfCell(grid: Grid, cell: Cell): Range {
  const start = grid.from + cell.column * grid.step;
  if (!isExact(grid)) return [start, start + grid.step];
  const from = start + cell.row * grid.row_step;
  return [from, Math.min(from + grid.row_step, start + grid.step)];
}

/** All time from one cell to another, whichever comes first. */
export function rangeOfCells(grid: Grid, a: Cell, b: Cell): Range {
  const [first, second] = [rangeOfCell(grid, a), rangeOfCell(grid, b)];
  return [Math.min(first[0], second[0]), Math.max(first[1], second[1])];
}

/** The parts of a range, column by column: from and to as shares of the column's height. */
export function columnsOf(grid: Grid, range: Range): { column: number; from: number; to: number }[] {
  const found = [];
  const first = Math.max(0, Math.floor((range[0] - grid.from) / grid.step));
  const last = Math.min(grid.columns - 1, Math.ceil((range[1] - grid.from) / grid.step) - 1);
  for (let column = first; column <= last; column++) {
    const start = grid.from + column * grid.step;
    const share = (time: number) => Math.min(1, Math.max(0, (time - start) / grid.step));
    const whole = !isExact(grid);
    found.push({ column, from: whole ? 0 : share(range[0]), to: whole ? 1 : share(range[1]) });
  }
  return found;
}
