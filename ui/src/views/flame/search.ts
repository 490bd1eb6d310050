// Search: which frames match, and how much of the time runs through any of them.

import type { Flame } from "../../api/types";
import { shares } from "./layout";

export interface Found {
  /** By node. */
  matches: Uint8Array;
  nodes: number;
  share: number;
  before: number | null;
}

/** A regular expression where it is one, else the text as it is. */
export function pattern(text: string): RegExp {
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

export function search(flame: Flame, text: string): Found | null {
  if (text === "") return null;
  const wanted = pattern(text);
  const named = flame.names.map((name) => wanted.test(name));
  const { parent, name } = flame.nodes;
  const matches = new Uint8Array(parent.length);
  // Below a match nothing is counted again: recursion would make more than all of it.
  const below = new Uint8Array(parent.length);
  const found: Found = { matches, nodes: 0, share: 0, before: flame.nodes.base ? 0 : null };
  for (let node = 1; node < parent.length; node++) {
    below[node] = below[parent[node]] | matches[parent[node]];
    if (!named[name[node]]) continue;
    matches[node] = 1;
    found.nodes++;
    if (below[node]) continue;
    const { now, before } = shares(flame, node);
    found.share += now;
    if (found.before !== null) found.before += before ?? 0;
  }
  return found;
}
