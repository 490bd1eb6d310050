// The heat map on its canvas: cells, events above them, selection over them.

import type { HeatMap, HeatView, Range, TimelineEvent } from "../../api/types";
import { hatch } from "../../draw/hatch";
import { ramp } from "../../draw/ramp";
import type { Surface } from "../../draw/surface";
import type { Palette } from "../../theme/palette";
import { type Clock, length, moment } from "../../time/format";
import { ticks } from "../../time/ticks";
import { bodesIll } from "../timeline/drawing";
import { type Cell, columnsOf } from "./cells";

/** Room around the cells: events on top, times below, offsets on the left. */
export const EDGE = { top: 18, bottom: 22, left: 62, right: 2 };
/** Room for the names of threads, and the height of each. */
const NAMES_PX = { narrow: 116, wide: 190 };
const NARROW_PX = 600;
const TRACK_PX = 16;
const HEIGHT_PX = 260;

/** How high the picture is: threads are as many as there are. */
export function heightOf(map: HeatMap | null): number {
  if (map?.view !== "threads") return HEIGHT_PX;
  return EDGE.top + EDGE.bottom + Math.max(3, map.rows) * TRACK_PX;
}

export interface Picture {
  map: HeatMap;
  surface: Surface;
  palette: Palette;
  clock: Clock;
  selection: Range | null;
  base: Range | null;
  cursor: Cell | null;
}

/** One pixel a cell; stretched when drawn. */
export function cellImage(map: HeatMap, theme: "dark" | "light"): HTMLCanvasElement | null {
  if (map.columns === 0) return null;
  const canvas = document.createElement("canvas");
  canvas.width = map.columns;
  canvas.height = map.rows;
  const context = canvas.getContext("2d");
  if (!context) return null;
  const pixels = context.createImageData(map.columns, map.rows);
  for (let row = 0; row < map.rows; row++) {
    for (let column = 0; column < map.columns; column++) {
      const value = map.values[row * map.columns + column];
      // The square root keeps a single sample visible beside a cell with hundreds.
      const [r, g, b] = ramp(theme, map.max > 0 ? Math.sqrt(value / map.max) : 0);
      pixels.data.set([r, g, b, 255], ((map.rows - 1 - row) * map.columns + column) * 4);
    }
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

export function drawHeatMap(picture: Picture, image: HTMLCanvasElement | null): void {
  const { context, width, height } = picture.surface;
  const plot = plotOf(width, height, picture.map.view);
  context.imageSmoothingEnabled = false;
  if (image) context.drawImage(image, plot.left, plot.top, plot.width, plot.height);
  drawGaps(picture, plot);
  drawAxes(picture, plot);
  drawMarks(picture, plot);
  if (picture.base) outline(picture, plot, picture.base, picture.palette.base);
  if (picture.selection) outline(picture, plot, picture.selection, picture.palette.mark);
  if (picture.cursor) drawCursor(picture, plot, picture.cursor);
}

export interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
}

export function plotOf(width: number, height: number, view: HeatView): Plot {
  const left = view !== "threads" ? EDGE.left : width < NARROW_PX ? NAMES_PX.narrow : NAMES_PX.wide;
  return {
    left,
    top: EDGE.top,
    width: Math.max(1, width - left - EDGE.right),
    height: Math.max(1, height - EDGE.top - EDGE.bottom),
  };
}

export function xAt(map: HeatMap, plot: Plot, time: number): number {
  return plot.left + ((time - map.from) / (map.step * map.columns)) * plot.width;
}

function drawGaps({ map, surface, palette }: Picture, plot: Plot): void {
  const { context } = surface;
  for (const [from, to] of map.gaps) {
    const left = Math.max(plot.left, xAt(map, plot, from));
    const right = Math.min(plot.left + plot.width, xAt(map, plot, to));
    if (right <= left) continue;
    context.fillStyle = palette.paper;
    context.fillRect(left, plot.top, right - left, plot.height);
    context.fillStyle = hatch(context, palette);
    context.fillRect(left, plot.top, right - left, plot.height);
  }
}

function drawAxes({ map, surface, palette, clock }: Picture, plot: Plot): void {
  const { context } = surface;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = palette.quiet;
  const range: Range = [map.from, map.from + map.step * map.columns];
  const { step, at } = ticks(range, Math.max(2, plot.width / 92));
  for (const time of at) {
    const x = xAt(map, plot, time);
    context.fillRect(Math.round(x), plot.top + plot.height, 1, 4);
    const text = moment(time, clock, step);
    const room = context.measureText(text).width;
    const left = Math.min(Math.max(x - room / 2, plot.left), plot.left + plot.width - room);
    context.fillText(text, left, plot.top + plot.height + 16);
  }
  context.textAlign = "right";
  if (map.view === "threads") drawNames(map, context, plot);
  else drawOffsets(map, context, plot);
  context.textAlign = "left";
}

/** The names of threads, cut where they are too long. */
function drawNames(map: HeatMap, context: CanvasRenderingContext2D, plot: Plot): void {
  const height = plot.height / Math.max(1, map.rows);
  map.tracks.forEach((track, i) => {
    let words = track.label;
    while (words.length > 4 && context.measureText(words).width > plot.left - 8) {
      words = `${words.slice(0, -2)}…`;
    }
    context.fillText(words, plot.left - 5, plot.top + (i + 0.5) * height + 4);
  });
}

function drawOffsets(map: HeatMap, context: CanvasRenderingContext2D, plot: Plot): void {
  const whole = map.rows * map.row_step;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const y = plot.top + plot.height * (1 - share);
    const words = share === 0 ? "0" : `+${length(whole * share)}`;
    context.fillText(words, plot.left - 5, Math.min(y + 4, plot.top + plot.height));
  }
}

/** Lines through the picture for more events than this would hide it: they become faint. */
const FEW_LINES = 12;

function drawMarks({ map, surface, palette }: Picture, plot: Plot): void {
  const { context } = surface;
  const faint = map.events.filter(bodesIll).length > FEW_LINES;
  for (const event of map.events) {
    const x = xAt(map, plot, event.at);
    if (x < plot.left || x > plot.left + plot.width) continue;
    context.fillStyle = bodesIll(event) ? palette.bad : palette.accent;
    context.beginPath();
    context.moveTo(x - 5, 3);
    context.lineTo(x + 5, 3);
    context.lineTo(x, 14);
    context.fill();
    if (!bodesIll(event)) continue;
    context.globalAlpha = faint ? 0.3 : 1;
    context.fillRect(x - 0.5, plot.top, 1, plot.height);
    context.globalAlpha = 1;
  }
}

export function eventAt(map: HeatMap, plot: Plot, x: number, y: number): TimelineEvent | null {
  if (y > EDGE.top) return null;
  const near = map.events
    .map((event) => ({ event, away: Math.abs(xAt(map, plot, event.at) - x) }))
    .sort((a, b) => a.away - b.away || Number(bodesIll(b.event)) - Number(bodesIll(a.event)))[0];
  return near && near.away <= 7 ? near.event : null;
}

function outline({ map, surface }: Picture, plot: Plot, range: Range, colour: string): void {
  const { context } = surface;
  const width = plot.width / map.columns;
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 2;
  for (const { column, from, to } of columnsOf(map, range)) {
    const x = plot.left + column * width;
    const top = plot.top + plot.height * (1 - to);
    const bottom = plot.top + plot.height * (1 - from);
    context.globalAlpha = 0.22;
    context.fillRect(x, top, width, bottom - top);
    context.globalAlpha = 1;
    context.fillRect(x, top - 1, width, 2);
    context.fillRect(x, bottom - 1, width, 2);
  }
  const all = columnsOf(map, range);
  if (all.length === 0) return;
  const [first, last] = [all[0], all[all.length - 1]];
  const edge = (x: number, from: number, to: number) =>
    context.fillRect(x - 1, plot.top + plot.height * (1 - to), 2, plot.height * (to - from));
  edge(plot.left + first.column * width, first.from, first.to);
  edge(plot.left + (last.column + 1) * width, last.from, last.to);
}

function drawCursor({ map, surface, palette }: Picture, plot: Plot, cell: Cell): void {
  const { context } = surface;
  const [w, h] = [plot.width / map.columns, plot.height / map.rows];
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.5;
  context.strokeRect(
    plot.left + cell.column * w,
    plot.top + (map.rows - 1 - cell.row) * h,
    Math.max(w, 2),
    Math.max(h, 2),
  );
}
