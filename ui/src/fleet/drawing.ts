// Draws nodes by time.

import { hatch } from "../draw/hatch";
import { surface } from "../draw/surface";
import type { Palette } from "../theme/palette";
import { moment } from "../time/format";
import { ticks } from "../time/ticks";
import type { Fleet, Heat } from "./api";
import { BLIND, colour, edges, isSeverity, runs } from "./words";

export const EDGE = { left: 132, right: 8, top: 4, bottom: 20 };
export const HEIGHT = 520;
const NARROW = 500;
const LINE_PX = 13;

export interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
}

export function plotOf(width: number): Plot {
  const left = width < NARROW ? 74 : EDGE.left;
  return { left, top: EDGE.top, width: width - left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
}

export function draw(canvas: HTMLCanvasElement, width: number, palette: Palette, fleet: Fleet, heat: Heat): void {
  const { context: pen } = surface(canvas, width, HEIGHT);
  const plot = plotOf(width);
  const column = plot.width / fleet.columns_of_time;
  const unseen = hatch(pen, palette);
  const at = edges(heat.rows);
  heat.rows.forEach((row, i) => {
    const top = Math.round(plot.top + at[i] * plot.height);
    const bottom = Math.round(plot.top + at[i + 1] * plot.height);
    for (const [sign, from, to] of runs(row.cells)) {
      const left = Math.round(plot.left + from * column);
      const [width, height] = [Math.round(plot.left + to * column) - left, Math.max(1, bottom - top)];
      pen.fillStyle = isSeverity(sign) ? colour(palette.theme, sign) : sign === BLIND ? palette.line : palette.paper;
      pen.fillRect(left, top, width, height);
      if (isSeverity(sign)) continue;
      pen.fillStyle = unseen;
      pen.fillRect(left, top, width, height);
    }
  });
  pen.font = "11px system-ui, sans-serif";
  pen.strokeStyle = palette.line;
  pen.strokeRect(plot.left - 0.5, plot.top - 0.5, plot.width + 1, plot.height + 1);
  labels(pen, palette, plot, heat, at);
  axis(pen, palette, plot, fleet);
}

/** Names of groups, or of nodes where each has a line of its own. */
function labels(pen: CanvasRenderingContext2D, palette: Palette, plot: Plot, heat: Heat, at: number[]): void {
  pen.fillStyle = palette.quiet;
  pen.textAlign = "right";
  let free = 0;
  const put = (text: string, y: number) => {
    if (y < free) return;
    free = y + LINE_PX;
    pen.fillText(fitting(pen, text, plot.left - 10), plot.left - 6, y + 10);
  };
  const isGrouped = heat.groups.some((group) => group.value !== null);
  const shown = Math.max(1, heat.to - heat.from);
  const lineOf = (node: number) => plot.top + ((node - heat.from) / shown) * plot.height;
  if (isGrouped) {
    for (const group of heat.groups) {
      const [from, to] = [Math.max(group.first, heat.from), Math.min(group.first + group.nodes, heat.to)];
      if (from >= to) continue;
      const y = Math.round(lineOf(from));
      pen.fillRect(0, y, plot.left + plot.width, 1);
      put(group.value ?? "", y);
    }
  } else if (heat.rows.every((row) => row.nodes === 1)) {
    heat.rows.forEach((row, i) => put(row.names[0], plot.top + at[i] * plot.height));
  }
  pen.textAlign = "left";
}

/** The end of a name tells it from others. */
function fitting(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && pen.measureText(`…${cut}`).width > width) cut = cut.slice(1);
  return `…${cut}`;
}

function axis(pen: CanvasRenderingContext2D, palette: Palette, plot: Plot, fleet: Fleet): void {
  const span = fleet.step * fleet.columns_of_time;
  const { step, at } = ticks([fleet.from, fleet.from + span], Math.max(2, plot.width / 70));
  pen.fillStyle = palette.quiet;
  for (const time of at) {
    const x = plot.left + ((time - fleet.from) / span) * plot.width;
    const words = moment(time, "wall", step);
    if (x + pen.measureText(words).width > plot.left + plot.width) continue;
    pen.fillRect(x, plot.top + plot.height, 1, 4);
    pen.fillText(words, x + 2, HEIGHT - 5);
  }
}
