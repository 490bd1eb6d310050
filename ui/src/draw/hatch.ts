// Gaps: hatched, so that nobody takes them for zero.

import type { Palette } from "../theme/palette";

const SIDE = 8;
const made = new Map<string, CanvasPattern>();

export function hatch(context: CanvasRenderingContext2D, palette: Palette): CanvasPattern | string {
  const kept = made.get(palette.hatch);
  if (kept) return kept;
  const tile = document.createElement("canvas");
  tile.width = tile.height = SIDE;
  const pen = tile.getContext("2d");
  if (!pen) return palette.hatch;
  pen.strokeStyle = palette.hatch;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const shift of [-SIDE, 0, SIDE]) {
    pen.moveTo(shift, SIDE);
    pen.lineTo(shift + SIDE, 0);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (!pattern) return palette.hatch;
  made.set(palette.hatch, pattern);
  return pattern;
}
