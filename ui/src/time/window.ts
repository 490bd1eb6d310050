// Arithmetic of windows: zoom and pan, between a millisecond and all there is.

import type { Range } from "../api/types";

export const SHORTEST_US = 1_000;
const SECOND_US = 1_000_000;

export const span = (range: Range): number => range[1] - range[0];

/** The window moved and cut so that it lies within all there is. */
export function within(range: Range, all: Range): Range {
  const length = Math.min(Math.max(span(range), SHORTEST_US), Math.max(span(all), SHORTEST_US));
  const from = Math.min(Math.max(range[0], all[0]), Math.max(all[0], all[1] - length));
  return [from, from + length];
}

/** Zooms so that the moment `at` stays where it is. */
export function zoomed(range: Range, factor: number, at: number, all: Range): Range {
  const length = Math.min(Math.max(span(range) * factor, SHORTEST_US), span(all));
  const share = (at - range[0]) / span(range);
  const from = at - share * length;
  return within([from, from + length], all);
}

/** Moves by a part of its own length. */
export function panned(range: Range, share: number, all: Range): Range {
  const by = span(range) * share;
  return within([range[0] + by, range[1] + by], all);
}

export function overlap(a: Range, b: Range): Range | null {
  const both: Range = [Math.max(a[0], b[0]), Math.min(a[1], b[1])];
  return both[0] < both[1] ? both : null;
}

/** The whole seconds that a range touches. */
export function wholeSeconds(range: Range): Range {
  const from = Math.floor(range[0] / SECOND_US) * SECOND_US;
  return [from, Math.max(Math.ceil(range[1] / SECOND_US) * SECOND_US, from + SECOND_US)];
}

/** A range with room around it, to be looked at. */
export function around(range: Range, all: Range): Range {
  const room = Math.max(span(range) * 0.6, 3 * SECOND_US);
  return within([range[0] - room, range[1] + room], all);
}
