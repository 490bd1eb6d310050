// Where an axis has marks: round times, never closer than they can be read.

import type { Range } from "../api/types";

const MS = 1_000;
const SECOND = 1_000 * MS;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS = [
  10,
  20,
  50,
  100,
  200,
  500,
  MS,
  2 * MS,
  5 * MS,
  10 * MS,
  20 * MS,
  50 * MS,
  100 * MS,
  200 * MS,
  500 * MS,
  SECOND,
  2 * SECOND,
  5 * SECOND,
  10 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  28 * DAY,
];

export interface Ticks {
  step: number;
  at: number[];
}

export function ticks(range: Range, most: number): Ticks {
  const span = range[1] - range[0];
  const step = STEPS.find((step) => span / step <= most) ?? STEPS[STEPS.length - 1];
  const at: number[] = [];
  for (let time = Math.ceil(range[0] / step) * step; time <= range[1]; time += step) at.push(time);
  return { step, at };
}
