// Functions of a flame graph, wherever they are in it: how much they take, who calls them and
// what they call.

import type { Flame } from "../../api/types";
import { childLists } from "./layout";

export interface Cost {
  name: string;
  /** In the function itself. */
  self: number;
  /** In it and all that it called; counted once where it calls itself. */
  total: number;
}

/** What each node weighs without what it called. Frames that were left out count for their caller. */
function selfOf(flame: Flame): Float64Array {
  const { parent, value } = flame.nodes;
  const self = Float64Array.from(value);
  for (let node = 1; node < parent.length; node++) self[parent[node]] -= value[node];
  return self;
}

/** Programs are the first level, and no functions. */
const FIRST_FUNCTIONS = 2;

function depths(flame: Flame): Uint16Array {
  const depth = new Uint16Array(flame.nodes.parent.length);
  for (let node = 1; node < depth.length; node++) depth[node] = depth[flame.nodes.parent[node]] + 1;
  return depth;
}

/** All functions, the one that takes most by itself first. */
export function functions(flame: Flame): Cost[] {
  const { parent, name, value } = flame.nodes;
  const self = selfOf(flame);
  const depth = depths(flame);
  const costs = new Map<number, Cost>();
  for (let node = 1; node < parent.length; node++) {
    if (depth[node] < FIRST_FUNCTIONS) continue;
    const cost = costs.get(name[node]) ?? { name: flame.names[name[node]], self: 0, total: 0 };
    costs.set(name[node], cost);
    cost.self += self[node];
    if (!isBelowItself(flame, node)) cost.total += value[node];
  }
  return [...costs.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

function isBelowItself(flame: Flame, node: number): boolean {
  const { parent, name } = flame.nodes;
  for (let at = parent[node]; at > 0; at = parent[at]) if (name[at] === name[node]) return true;
  return false;
}

export interface Sandwich {
  callers: Cost[];
  callees: Cost[];
}

/** Who calls a function, and what it calls, with what runs through each of them. */
export function sandwich(flame: Flame, func: string): Sandwich {
  const { parent, name, value } = flame.nodes;
  const self = selfOf(flame);
  const { start, list } = childLists(parent);
  const wanted = flame.names.indexOf(func);
  const depth = depths(flame);
  const callers = new Map<number, Cost>();
  const callees = new Map<number, Cost>();
  const add = (to: Map<number, Cost>, which: number, total: number, alone: number) => {
    const cost = to.get(which) ?? { name: flame.names[which], self: 0, total: 0 };
    to.set(which, cost);
    cost.total += total;
    cost.self += alone;
  };
  for (let node = 1; node < parent.length; node++) {
    if (name[node] !== wanted || depth[node] < FIRST_FUNCTIONS) continue;
    if (!isBelowItself(flame, node)) add(callers, name[parent[node]], value[node], self[node]);
    for (const child of list.subarray(start[node], start[node + 1])) {
      if (name[child] !== wanted) add(callees, name[child], value[child], self[child]);
    }
  }
  const sorted = (costs: Map<number, Cost>) => [...costs.values()].sort((a, b) => b.total - a.total);
  return { callers: sorted(callers), callees: sorted(callees) };
}
