// The time axis, with what is selected and found on it.

import type { Range } from "../../api/types";
import type { Palette } from "../../theme/palette";
import type { Surface } from "../../draw/surface";
import { type Clock, moment } from "../../time/format";
import { ticks } from "../../time/ticks";

/** A label and the room around it. */
const LABEL_PX = 92;

export function drawRuler(surface: Surface, window: Range, clock: Clock, palette: Palette): void {
  const { context, width, height } = surface;
  const { step, at } = ticks(window, Math.max(2, width / LABEL_PX));
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "alphabetic";
  context.fillStyle = palette.quiet;
  context.strokeStyle = palette.line;
  context.beginPath();
  for (const time of at) {
    const x = Math.round(((time - window[0]) / (window[1] - window[0])) * width) + 0.5;
    context.moveTo(x, height - 6);
    context.lineTo(x, height);
    const text = moment(time, clock, step);
    const room = context.measureText(text).width;
    const left = Math.min(Math.max(x - room / 2, 0), width - room);
    context.fillText(text, left, height - 9);
  }
  context.stroke();
}
