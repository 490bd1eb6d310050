// What `sexton fleet serve` answers. Written by crates/sexton-fleet/src/page.

import { ask } from "../api/http";
import type { State } from "./state";

export interface Value {
  value: string;
  nodes: number;
  bad: number;
}

export interface Fleet {
  schema: string;
  lake: string;
  read_at: number;
  /** Why the bucket could not be read since. */
  not_read_since: string | null;
  hours: number;
  from: number;
  step: number;
  columns_of_time: number;
  nodes: number;
  bad: number;
  reports: number;
  columns: { name: string; values: Value[]; distinct: number }[];
  codes: string[];
  problems: string[];
}

export interface Row {
  first: number;
  nodes: number;
  names: string[];
  /** A sign for each column: 0 to 4; `?` where one could not see enough; `.` where no node reported. */
  cells: string;
  /** Nodes that were serious or critical, by column, where a row stands for several. */
  bad?: number[];
}

export interface Group {
  value: string | null;
  first: number;
  nodes: number;
  bad: number;
}

export interface Heat {
  total: number;
  from: number;
  to: number;
  groups: Group[];
  rows: Row[];
}

export interface Cause {
  code: string;
  title: string | null;
  nodes: number;
  as_root: number;
  by_column: number[];
}

export interface Causes {
  nodes: number;
  seen: number[];
  causes: Cause[];
}

export interface NodeFinding {
  finding: string;
  code: string;
  title: string;
  severity: string;
  life: string;
  since: number;
  opened: number | null;
  resolved: number | null;
  caused_by: string | null;
  link: string | null;
}

export interface FleetNode {
  name: string;
  cells: string;
  attributes: { name: string; value: string }[];
  findings: NodeFinding[];
  left_out: number;
  link: string | null;
}

export interface Exception {
  text: string;
}

export interface Difference {
  label: string;
  role: "hit" | "spared" | "measured";
  bad_share?: number;
  good_share?: number;
  bad_median?: number;
  good_median?: number;
  effect: number | null;
  effect_low: number | null;
  effect_high: number | null;
  q: number;
  before?: number;
  after?: number;
  same_nodes?: string[];
  exceptions?: Exception[];
  folded_under: string | null;
}

export interface Compared {
  schema: string;
  bad: number;
  good: number;
  bad_is: string;
  good_is: string;
  hours: number;
  reports: number;
  tests: number;
  pairs: number;
  too_few: { best_q: number; nodes_needed: number } | null;
  differences: Difference[];
}

/** Which nodes, as the server reads it. */
export function chosen(state: State): URLSearchParams {
  const query = new URLSearchParams();
  for (const condition of state.where) query.append("where", condition);
  if (state.name) query.set("name", state.name);
  if (state.code) query.set("code", state.code);
  if (state.severity) query.set("severity", state.severity);
  return query;
}

export const fleet = (signal?: AbortSignal): Promise<Fleet> => ask("fleet", new URLSearchParams(), signal);

export function heat(state: State, range: [number, number] | null, rows: number, signal?: AbortSignal): Promise<Heat> {
  const query = chosen(state);
  query.set("sort", state.sort);
  if (state.by) query.set("by", state.by);
  if (range) {
    query.set("from", String(range[0]));
    query.set("to", String(range[1]));
  }
  query.set("rows", String(rows));
  return ask("heat", query, signal);
}

export const causes = (state: State, signal?: AbortSignal): Promise<Causes> => ask("causes", chosen(state), signal);

export const node = (name: string, signal?: AbortSignal): Promise<FleetNode> =>
  ask("node", new URLSearchParams({ name }), signal);

export const compare = (bad: string, good: string, signal?: AbortSignal): Promise<Compared> =>
  ask("compare", new URLSearchParams({ bad, good }), signal);
