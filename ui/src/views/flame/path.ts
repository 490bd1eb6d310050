// A frame by the names of its callers and its own, so that an address can hold it.

import type { Flame } from "../../api/types";
import { childLists, stackOf } from "./layout";

export function pathOf(flame: Flame, node: number): string[] {
  return stackOf(flame, node)
    .slice(1)
    .map((at) => flame.names[flame.nodes.name[at]]);
}

/** The frame that a path leads to; everything, where these samples have no such frame. */
export function nodeOf(flame: Flame, path: string[]): number {
  if (path.length === 0) return 0;
  const { start, list } = childLists(flame.nodes.parent);
  let node = 0;
  for (const name of path) {
    const children = list.subarray(start[node], start[node + 1]);
    const next = children.find((child) => flame.names[flame.nodes.name[child]] === name);
    if (next === undefined) return 0;
    node = next;
  }
  return node;
}
