// Tiles that have come: kept per lane, drawn at once at any zoom, replaced by better ones.

import type { Range, Tile } from "../../api/types";
import { ramp } from "../../draw/ramp";

/** A tile, and for heat its row of pixels, made once and stretched when drawn. */
export interface Kept {
  tile: Tile;
  strip: HTMLCanvasElement | null;
  /** More has been read since it came: it is shown until the next one is there. */
  outdated: boolean;
}

/** How many windows' width is asked for, so that there is something to pan into. */
export const ROOM = 0.5;

export class TileStore {
  #kept = new Map<string, Kept>();

  get(lane: string): Kept | undefined {
    return this.#kept.get(lane);
  }

  clear(): void {
    this.#kept.clear();
  }

  put(tile: Tile): void {
    this.#kept.set(tile.lane, { tile, strip: null, outdated: false });
  }

  /** The source has grown, or more of it has been read. */
  outdate(): void {
    for (const kept of this.#kept.values()) kept.outdated = true;
  }

  /** The colours changed. */
  repaint(): void {
    for (const kept of this.#kept.values()) kept.strip = null;
  }

  /** Whether what is kept shows this window well: covers it, and no coarser than asked. */
  serves(lane: string, window: Range, all: Range, columns: number): boolean {
    const kept = this.#kept.get(lane);
    if (!kept || kept.outdated) return false;
    const { tile } = kept;
    const end = tile.from + tile.step * tile.values.length;
    const covers = tile.from <= Math.max(window[0], all[0]) && end >= Math.min(window[1], all[1]) - tile.step;
    const wanted = Math.max(1, (window[1] - window[0]) / columns);
    return covers && tile.step <= wanted * 1.6 && tile.step >= wanted / 3;
  }
}

export function strip(kept: Kept, theme: "dark" | "light", max: number): HTMLCanvasElement | null {
  if (kept.strip) return kept.strip;
  const { values } = kept.tile;
  if (values.length === 0) return null;
  const canvas = document.createElement("canvas");
  canvas.width = values.length;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return null;
  const pixels = context.createImageData(values.length, 1);
  values.forEach((value, i) => {
    if (value === null) return;
    const [r, g, b] = ramp(theme, max > 0 ? value / max : 0);
    pixels.data.set([r, g, b, 255], i * 4);
  });
  context.putImageData(pixels, 0, 0);
  kept.strip = canvas;
  return canvas;
}

/** The value at a moment. */
export function valueAt(tile: Tile, time: number): number | null {
  const column = Math.floor((time - tile.from) / tile.step);
  return tile.values[column] ?? null;
}
