// From samples to a flame graph, as the server would answer.

import type { FlameQuery } from "../client";
import type { Flame, FlameNodes, Range, Samples } from "../types";
import { type Columns, type Keep, keeper, slice } from "./samples";

const ALL = "all";

/** Grows the tree: node 0 is everything, level 1 are programs. */
class Tree {
  readonly parent: number[] = [-1];
  readonly name: number[] = [0];
  readonly kind: number[] = [0];
  readonly names: string[] = [ALL];
  #children = new Map<string, number>();
  #ids = new Map<string, number>();
  #known = new Map<number, number>();

  constructor(private samples: Samples) {}

  leaf(comm: number, stack: number): number {
    const key = (comm + 1) * (this.samples.stack_name.length + 1) + stack + 1;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const path: number[] = [];
    for (let at = stack; at >= 0; at = this.samples.stack_caller[at]) path.push(at);
    let node = this.#child(0, this.samples.names[comm] ?? "?", 0);
    for (const at of path.reverse()) {
      node = this.#child(node, this.samples.names[this.samples.stack_name[at]], this.samples.stack_kind[at]);
    }
    this.#known.set(key, node);
    return node;
  }

  #child(parent: number, name: string, kind: number): number {
    let id = this.#ids.get(name);
    if (id === undefined) {
      id = this.names.push(name) - 1;
      this.#ids.set(name, id);
    }
    const key = `${parent} ${id} ${kind}`;
    const known = this.#children.get(key);
    if (known !== undefined) return known;
    this.parent.push(parent);
    this.name.push(id);
    this.kind.push(kind);
    const node = this.parent.length - 1;
    this.#children.set(key, node);
    return node;
  }
}

interface Weights {
  own: Map<number, number>;
  samples: number;
}

function weigh(from: Columns, tree: Tree, range: Range | null, keep: Keep): Weights {
  const own = new Map<number, number>();
  const [first, end] = slice(from, range);
  let samples = 0;
  for (let i = first; i < end; i++) {
    if (!keep(i)) continue;
    const node = tree.leaf(from.samples.comm[i], from.samples.stack[i]);
    own.set(node, (own.get(node) ?? 0) + from.samples.weight[i]);
    samples++;
  }
  return { own, samples };
}

/** Callers come before what they call, so one pass from the end adds everything up. */
function addUp(tree: Tree, weights: Weights): number[] {
  const value = new Array<number>(tree.parent.length).fill(0);
  for (const [node, weight] of weights.own) value[node] = weight;
  for (let node = value.length - 1; node > 0; node--) value[tree.parent[node]] += value[node];
  return value;
}

export function fold(from: Columns, query: FlameQuery): Flame {
  const tree = new Tree(from.samples);
  const keep = keeper(from, query.facet);
  const now = weigh(from, tree, query.range, keep);
  const before = query.base && weigh(from, tree, query.base, keep);
  const value = addUp(tree, now);
  const base = before && addUp(tree, before);
  const nodes: FlameNodes = { parent: tree.parent, name: tree.name, kind: tree.kind, value };
  if (base) nodes.base = base;
  const range = query.range ?? [from.at[0] ?? 0, (from.at[from.at.length - 1] ?? 0) + 1];
  return {
    from: range[0],
    to: range[1],
    event: now.samples > 0 ? "cpu-clock" : "",
    samples: now.samples,
    base_samples: before && before.samples,
    total: value[0],
    base_total: base && base[0],
    names: tree.names,
    nodes,
    cut: null,
    gaps: [],
  };
}
