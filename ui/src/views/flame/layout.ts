// Where each frame lies. Done once per answer; drawing then only looks frames up.

import type { Flame } from "../../api/types";
import { count, length } from "../../time/format";

export interface Layout {
  /** Left edge and width of each node, as shares of everything. */
  x: Float64Array;
  w: Float64Array;
  depth: Uint16Array;
  /** The nodes of each depth, from left to right. */
  levels: Int32Array[];
}

/** A node's share of its window, and of the window compared with. */
export function shares(flame: Flame, node: number): { now: number; before: number | null } {
  const { value, base } = flame.nodes;
  const now = flame.total > 0 ? value[node] / flame.total : 0;
  if (!base) return { now, before: null };
  return { now, before: flame.base_total ? base[node] / flame.base_total : 0 };
}

/** What a frame weighs, in words: samples of a clock weigh nanoseconds, others count events. */
export function weightWords(flame: Flame, node: number): string {
  const weight = flame.nodes.value[node];
  if (!isWeighed(flame)) return samplesWords(weight);
  return flame.event.includes("clock") ? length(weight / 1000) : `${count(weight)} ${flame.event}`;
}

/** How much was looked at. Folded stacks tell how often, but not in how many samples. */
export function totalWords(flame: Flame): string {
  if (!isWeighed(flame)) return samplesWords(flame.total);
  const what = /clock|cycles/.test(flame.event) ? "" : ` of ${flame.event}`;
  return `${samplesWords(flame.samples)}${what}`;
}

/** Whether a sample stands for many events, or for a time. */
function isWeighed(flame: Flame): boolean {
  return flame.event !== "" && flame.event !== "samples" && flame.total > flame.samples;
}

function samplesWords(n: number): string {
  return `${count(n)} ${n === 1 ? "sample" : "samples"}`;
}

/** Compared, a frame is as wide as the mean of both shares, so that what is gone shows too. */
function widths(flame: Flame): Float64Array {
  const w = new Float64Array(flame.nodes.parent.length);
  for (let node = 0; node < w.length; node++) {
    const { now, before } = shares(flame, node);
    w[node] = before === null ? now : (now + before) / 2;
  }
  return w;
}

export function layout(flame: Flame): Layout {
  const { parent } = flame.nodes;
  const n = parent.length;
  const w = widths(flame);
  const { start, list } = childLists(parent);
  const x = new Float64Array(n);
  const depth = new Uint16Array(n);
  const levels: Int32Array[] = [];
  let level = n > 0 ? Int32Array.of(0) : new Int32Array(0);
  while (level.length > 0) {
    levels.push(level);
    const next: number[] = [];
    for (const node of level) {
      const children = list.subarray(start[node], start[node + 1]).sort((a, b) => w[b] - w[a] || a - b);
      let at = x[node];
      for (const child of children) {
        x[child] = at;
        at += w[child];
        depth[child] = depth[node] + 1;
        if (w[child] > 0) next.push(child);
      }
    }
    level = Int32Array.from(next);
  }
  return { x, w, depth, levels };
}

/** Children of node i are list[start[i]..start[i + 1]]. */
export function childLists(parent: number[]): { start: Int32Array; list: Int32Array } {
  const n = parent.length;
  const start = new Int32Array(n + 1);
  for (let node = 1; node < n; node++) start[parent[node] + 1]++;
  for (let node = 0; node < n; node++) start[node + 1] += start[node];
  const list = new Int32Array(Math.max(0, n - 1));
  const filled = start.slice();
  for (let node = 1; node < n; node++) list[filled[parent[node]]++] = node;
  return { start, list };
}

/** The place in a level of the last node that begins at or before x. */
export function indexAt(level: Int32Array, x: Float64Array, at: number): number {
  let [low, high] = [0, level.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[level[middle]] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function nodeAt(layout: Layout, depth: number, at: number): number | null {
  const level = layout.levels[depth];
  if (!level) return null;
  const index = indexAt(level, layout.x, at);
  if (index < 0) return null;
  const node = level[index];
  return at < layout.x[node] + layout.w[node] ? node : null;
}

/** From everything to the frame itself. */
export function stackOf(flame: Flame, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = flame.nodes.parent[at]) path.push(at);
  return path.reverse();
}

/** As one line that other tools read: callers first, semicolons between. */
export function folded(flame: Flame, node: number): string {
  const names = stackOf(flame, node)
    .slice(1)
    .map((at) => flame.names[flame.nodes.name[at]].replace(/;/g, ":"));
  return `${names.join(";")} ${flame.nodes.value[node]}`;
}
