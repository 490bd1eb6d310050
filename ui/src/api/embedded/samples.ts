// Samples as columns: whole times instead of differences, and which of them a facet means.

import { type Facet, Trouble } from "../client";
import type { Range, Samples } from "../types";

export interface Columns {
  samples: Samples;
  /** Ascending. */
  at: Float64Array;
}

export function columns(samples: Samples): Columns {
  const at = new Float64Array(samples.at.length);
  let time = samples.start;
  for (let i = 0; i < at.length; i++) {
    time += samples.at[i];
    at[i] = time;
  }
  return { samples, at };
}

/** The first sample that is not before this time. */
export function firstAt(at: Float64Array, time: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function slice({ at }: Columns, range: Range | null): [number, number] {
  return range ? [firstAt(at, range[0]), firstAt(at, range[1])] : [0, at.length];
}

export type Keep = (sample: number) => boolean;

export function keeper({ samples }: Columns, facet: Facet): Keep {
  if (facet.by === "all" || facet.value === "") return () => true;
  if (facet.by === "core" || facet.by === "process" || facet.by === "thread") {
    const wanted = Number(facet.value);
    const column = { core: samples.cpu, process: samples.pid, thread: samples.tid }[facet.by];
    return (i) => column[i] === wanted;
  }
  if (facet.by === "function") {
    const holds = stacksWith(samples, facet.value);
    return (i) => samples.stack[i] >= 0 && holds[samples.stack[i]] === 1;
  }
  const name = samples.names.indexOf(facet.value);
  const column = samples[facet.by];
  return (i) => name >= 0 && column[i] === name;
}

/** Which stacks have a function that the expression matches, themselves or a caller. */
function stacksWith(samples: Samples, expression: string): Uint8Array {
  const pattern = readPattern(expression);
  const named = samples.names.map((name) => pattern.test(name));
  const holds = new Uint8Array(samples.stack_name.length);
  for (let i = 0; i < holds.length; i++) {
    for (let at = i; at >= 0 && !holds[i]; at = samples.stack_caller[at]) {
      if (named[samples.stack_name[at]]) holds[i] = 1;
    }
  }
  return holds;
}

function readPattern(expression: string): RegExp {
  try {
    return new RegExp(expression);
  } catch (error) {
    throw new Trouble(`function: ${error instanceof Error ? error.message : expression}`);
  }
}
