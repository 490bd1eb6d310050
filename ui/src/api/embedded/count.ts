// From samples to a heat map, as the server would answer.

import type { HeatQuery } from "../client";
import type { HeatBy, HeatMap, Part } from "../types";
import { shortId } from "../../time/format";
import { type Columns, keeper, slice } from "./samples";

const SECOND = 1_000_000;
const MOST_PARTS = 200;

interface Grid {
  from: number;
  to: number;
  step: number;
  rowStep: number;
  rows: number;
  columns: number;
}

/** Cells of an answer, as the server bounds them. */
const MOST_CELLS = 400_000;

/** The same cells as the server's: columns begin at whole numbers of themselves, counted from
    the zero of the recording's own clock, so that the same drag is the same range. */
function grid(query: HeatQuery, zero: number): Grid {
  const [from, to] = [Math.floor(query.range[0]), Math.ceil(query.range[1])];
  const most = Math.max(1, Math.min(query.columns, Math.floor(MOST_CELLS / query.rows)));
  const unit = { offset: SECOND, long: query.rows, threads: 1 }[query.view];
  const step = Math.max(1, Math.ceil(Math.ceil((to - from) / Math.max(1, most - 1)) / unit)) * unit;
  const start = zero + Math.floor((from - zero) / step) * step;
  const rowSpan = query.view === "offset" ? SECOND : step;
  const rowStep = query.view === "threads" ? step : Math.max(1, Math.floor(rowSpan / query.rows));
  return { from: start, to, step, rowStep, rows: query.rows, columns: Math.max(1, Math.ceil((to - start) / step)) };
}

interface Cells {
  rows: number;
  values: number[];
  tracks: Part[];
  left: number;
}

export function countCells(from: Columns, query: HeatQuery): HeatMap {
  const cut = grid(query, from.samples.zero);
  const keep = keeper(from, query.facet);
  const [first, end] = slice(from, query.range);
  const kept: number[] = [];
  for (let i = first; i < end; i++) if (keep(i)) kept.push(i);
  const { rows, values, tracks, left } = query.view === "threads" ? threads(from, kept, cut) : cells(from, kept, cut);
  const all = parts(from, query.facet.by, first, end);
  return {
    from: cut.from,
    to: cut.to,
    view: query.view,
    step: cut.step,
    row_step: cut.rowStep,
    rows,
    columns: cut.columns,
    values,
    max: values.reduce((most, value) => Math.max(most, value), 0),
    total: values.reduce((sum, value) => sum + value, 0),
    parts: all.slice(0, MOST_PARTS),
    parts_left_out: Math.max(0, all.length - MOST_PARTS),
    tracks,
    tracks_left_out: left,
    events: [],
    gaps: [],
  };
}

function cells({ at }: Columns, kept: number[], cut: Grid): Cells {
  const values = new Array<number>(cut.rows * cut.columns).fill(0);
  const rowSpan = cut.rowStep * cut.rows;
  for (const i of kept) {
    const into = at[i] - cut.from;
    const column = Math.min(cut.columns - 1, Math.floor(into / cut.step));
    const row = Math.min(cut.rows - 1, Math.floor(((into % cut.step) % rowSpan) / cut.rowStep));
    values[row * cut.columns + column]++;
  }
  return { rows: cut.rows, values, tracks: [], left: 0 };
}

/** A row for each thread, the busiest on top. */
function threads({ at, samples }: Columns, kept: number[], cut: Grid): Cells {
  const found = new Map<string, Part>();
  for (const i of kept) addPart(found, samples, "thread", i);
  const all = sorted(found);
  const tracks = all.slice(0, cut.rows);
  const rows = Math.max(1, tracks.length);
  const rowOf = new Map(tracks.map((track, i) => [track.value, rows - 1 - i]));
  const values = new Array<number>(rows * cut.columns).fill(0);
  for (const i of kept) {
    const row = rowOf.get(String(samples.tid[i]));
    const column = Math.min(cut.columns - 1, Math.floor((at[i] - cut.from) / cut.step));
    if (row !== undefined) values[row * cut.columns + column]++;
  }
  return { rows, values, tracks, left: all.length - tracks.length };
}

/** What one can choose from: cores, processes, units, or the functions that ran. */
function parts({ samples }: Columns, by: HeatBy, first: number, end: number): Part[] {
  if (by === "all") return [];
  const found = new Map<string, Part>();
  for (let i = first; i < end; i++) addPart(found, samples, by, i);
  return sorted(found);
}

function addPart(found: Map<string, Part>, samples: Columns["samples"], by: HeatBy, i: number): void {
  const value = partOf(samples, by, i);
  if (value === null) return;
  const part = found.get(value);
  if (part) part.samples++;
  else found.set(value, { value, label: label(samples, by, value, i), samples: 1 });
}

function sorted(found: Map<string, Part>): Part[] {
  return [...found.values()].sort((a, b) => b.samples - a.samples || (a.value < b.value ? -1 : 1));
}

function partOf(samples: Columns["samples"], by: HeatBy, i: number): string | null {
  switch (by) {
    case "core":
      return String(samples.cpu[i]);
    case "process":
      return String(samples.pid[i]);
    case "thread":
      return String(samples.tid[i]);
    case "unit":
    case "container":
    case "pod":
      return samples.names[samples[by][i]] ?? null;
    default: {
      const name = samples.names[samples.stack_name[samples.stack[i]]];
      return name === undefined ? null : `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
    }
  }
}

function label(samples: Columns["samples"], by: HeatBy, value: string, i: number): string {
  if (by === "core") return `core ${value}`;
  if (by === "process") return `${samples.names[samples.comm[i]] ?? "?"} ${value}`;
  if (by === "thread") return `${samples.names[samples.comm[i]] ?? "?"} ${samples.pid[i]}/${value}`;
  if (by === "container") return shortId(value);
  return by === "function" ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
