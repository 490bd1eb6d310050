// Words and colours of severities, and where rows of a heat map are. Nothing here draws.

import { css, ramp } from "../draw/ramp";
import type { Row } from "./api";

export const SEVERITIES = ["no finding", "note", "warning", "serious", "critical"];

/** How much each stands out: quantities differ in lightness. */
const SHARES = [0.06, 0.24, 0.46, 0.78, 1];

export const NOT_SEEN = ".";
/** It reported, and could not see enough to judge. */
export const BLIND = "?";

/** All signs, the worse the later. */
const ORDER = ".0?1234";

export const isSeverity = (sign: string): boolean => sign !== NOT_SEEN && sign !== BLIND;

export function worst(cells: string): string {
  return [...cells].reduce((worst, sign) => (ORDER.indexOf(sign) > ORDER.indexOf(worst) ? sign : worst), NOT_SEEN);
}

export function colour(theme: "dark" | "light", sign: string): string {
  return css(ramp(theme, SHARES[Number(sign)]));
}

export function severityWords(sign: string): string {
  if (sign === BLIND) return "could not see enough";
  return sign === NOT_SEEN ? "no report" : SEVERITIES[Number(sign)];
}

/** What a cell says when it is pointed at. */
export function cellWords(row: Row, column: number): string {
  const sign = row.cells[column] ?? NOT_SEEN;
  if (row.nodes === 1) return `${row.names[0]}: ${severityWords(sign)}`;
  const named = row.names.join(", ");
  const more = row.nodes > row.names.length ? ` and ${(row.nodes - row.names.length).toLocaleString("en-US")} more` : "";
  const worst = sign === NOT_SEEN ? "no report" : `worst: ${severityWords(sign)}`;
  const bad = sign === NOT_SEEN ? "" : `, ${(row.bad?.[column] ?? 0).toLocaleString("en-US")} of ${row.nodes.toLocaleString("en-US")} nodes serious or critical`;
  return `${named}${more}: ${worst}${bad}`;
}

/** Where each row begins, in shares of the height, and where the last one ends: a row is as high as
    the nodes that it stands for. */
export function edges(rows: Row[]): number[] {
  const all = rows.reduce((sum, row) => sum + row.nodes, 0);
  let before = 0;
  return [0, ...rows.map((row) => (before += row.nodes) / all)];
}

/** The row at a share of the height. */
export function rowAt(edges: number[], share: number): number | null {
  if (share < 0 || share >= 1 || edges.length < 2) return null;
  let [low, high] = [0, edges.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= share) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Runs of equal signs: `[sign, from, to]`, the end excluded. */
export function runs(cells: string): [string, number, number][] {
  const found: [string, number, number][] = [];
  for (let from = 0, at = 1; at <= cells.length; at++) {
    if (cells[at] === cells[from]) continue;
    found.push([cells[from], from, at]);
    from = at;
  }
  return found;
}
