// From samples to a heat map, as the server would answer.

import type { HeatQuery } from "../client";
import type { HeatBy, HeatMap, Part } from "../types";
import { type Columns, keeper, slice } from "./samples";

const SECOND = 1_000_000;
const MOST_PARTS = 200;

interface Grid {
  from: number;
  step: number;
  rowStep: number;
  columns: number;
}

function grid(query: HeatQuery): Grid {
  const [from, to] = query.range;
  if (query.view === "long") {
    const step = Math.max(query.rows, Math.ceil((to - from) / query.columns));
    return { from, step, rowStep: Math.ceil(step / query.rows), columns: Math.ceil((to - from) / step) };
  }
  const start = Math.floor(from / SECOND) * SECOND;
  const step = Math.max(1, Math.ceil((to - start) / SECOND / query.columns)) * SECOND;
  return {
    from: start,
    step,
    rowStep: Math.ceil(SECOND / query.rows),
    columns: Math.max(1, Math.ceil((to - start) / step)),
  };
}

export function countCells(from: Columns, query: HeatQuery): HeatMap {
  const { from: start, step, rowStep, columns } = grid(query);
  const values = new Array<number>(query.rows * columns).fill(0);
  const keep = keeper(from, query.facet);
  const [first, end] = slice(from, query.range);
  let [max, total] = [0, 0];
  for (let i = first; i < end; i++) {
    if (!keep(i)) continue;
    const into = from.at[i] - start;
    const column = Math.min(columns - 1, Math.floor(into / step));
    const offset = query.view === "long" ? into % step : into % SECOND;
    const row = Math.min(query.rows - 1, Math.floor(offset / rowStep));
    max = Math.max(max, ++values[row * columns + column]);
    total++;
  }
  const all = parts(from, query.facet.by, first, end);
  return {
    from: start,
    to: query.range[1],
    view: query.view,
    step,
    row_step: rowStep,
    rows: query.rows,
    columns,
    values,
    max,
    total,
    parts: all.slice(0, MOST_PARTS),
    parts_left_out: Math.max(0, all.length - MOST_PARTS),
    events: [],
    gaps: [],
  };
}

/** What one can choose from: cores, processes, units, or the functions that ran. */
function parts({ samples }: Columns, by: HeatBy, first: number, end: number): Part[] {
  if (by === "all") return [];
  const found = new Map<string, Part>();
  for (let i = first; i < end; i++) {
    const value = partOf(samples, by, i);
    if (value === null) continue;
    const part = found.get(value);
    if (part) part.samples++;
    else found.set(value, { value, label: label(samples, by, value, i), samples: 1 });
  }
  const all = [...found.values()];
  return all.sort((a, b) => b.samples - a.samples || (a.value < b.value ? -1 : 1));
}

function partOf(samples: Columns["samples"], by: HeatBy, i: number): string | null {
  switch (by) {
    case "core":
      return String(samples.cpu[i]);
    case "process":
      return String(samples.pid[i]);
    case "unit":
      return samples.names[samples.unit[i]] ?? null;
    default: {
      const name = samples.names[samples.stack_name[samples.stack[i]]];
      return name === undefined ? null : `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
    }
  }
}

function label(samples: Columns["samples"], by: HeatBy, value: string, i: number): string {
  if (by === "core") return `core ${value}`;
  if (by === "process") return `${samples.names[samples.comm[i]] ?? "?"} ${value}`;
  return by === "function" ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
