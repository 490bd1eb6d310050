// What is looked at, as text in the address: a link shows the same.

import { type Codec, StoreOf } from "../state/store";

export type Sort = "severity" | "since" | "name";

export interface State {
  /** The column that nodes are grouped by. */
  by: string;
  sort: Sort;
  /** Conditions on columns: `zone=us-east-1a`. */
  where: string[];
  name: string;
  code: string;
  /** The least severity, as a number. */
  severity: string;
  /** The rows that are zoomed into. */
  rows: [number, number] | null;
  node: string;
  bad: string;
  good: string;
  /** Whether the comparison was asked for. */
  compared: boolean;
}

export const START: State = {
  by: "",
  sort: "severity",
  where: [],
  name: "",
  code: "",
  severity: "",
  rows: null,
  node: "",
  bad: "",
  good: "",
  compared: false,
};

const SORTS: Sort[] = ["severity", "since", "name"];
const MOST_CONDITIONS = 20;
const LONGEST = 512;

export function toAddress(state: State): string {
  const words = new URLSearchParams();
  const put = (name: string, value: string) => value && words.set(name, value);
  put("by", state.by);
  put("sort", state.sort === START.sort ? "" : state.sort);
  for (const condition of state.where) words.append("where", condition);
  put("name", state.name);
  put("code", state.code);
  put("severity", state.severity);
  put("rows", state.rows ? state.rows.join("-") : "");
  put("node", state.node);
  put("bad", state.bad);
  put("good", state.good);
  put("compared", state.compared ? "1" : "");
  return `#${words}`;
}

/** Anyone can write an address: what makes no sense is left at its start. */
export function fromAddress(hash: string): State {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name: string) => (words.get(name) ?? "").slice(0, LONGEST);
  const sort = text("sort") as Sort;
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text("rows")) ?? [];
  return {
    by: text("by"),
    sort: SORTS.includes(sort) ? sort : START.sort,
    where: words
      .getAll("where")
      .filter((condition) => condition.includes("=") && condition.length <= LONGEST)
      .slice(0, MOST_CONDITIONS),
    name: text("name"),
    code: text("code"),
    severity: /^[0-4]$/.test(text("severity")) ? text("severity") : "",
    rows: from && Number(from) < Number(to) ? [Number(from), Number(to)] : null,
    node: text("node"),
    bad: text("bad"),
    good: text("good"),
    compared: text("compared") === "1",
  };
}

export const CODEC: Codec<State> = { start: START, toAddress, fromAddress };

export type Store = StoreOf<State>;

/** A condition on a column in place of the one that was there. */
export function withCondition(where: string[], column: string, value: string): string[] {
  const others = where.filter((condition) => !condition.startsWith(`${column}=`));
  return value ? [...others, `${column}=${value}`] : others;
}

export function conditionOf(where: string[], column: string): string {
  const found = where.find((condition) => condition.startsWith(`${column}=`));
  return found?.slice(column.length + 1) ?? "";
}
