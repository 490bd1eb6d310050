// One lane on its canvas: a heat strip, a line, or events. Gaps are hatched.

import type { Lane, Range, Tile, TimelineEvent } from "../../api/types";
import { hatch } from "../../draw/hatch";
import type { Surface } from "../../draw/surface";
import type { Palette } from "../../theme/palette";
import { type Kept, strip } from "./tiles";

export interface Scene {
  surface: Surface;
  window: Range;
  palette: Palette;
}

export function xOf(scene: { surface: { width: number }; window: Range }, time: number): number {
  const [from, to] = scene.window;
  return ((time - from) / (to - from)) * scene.surface.width;
}

export function drawLane(scene: Scene, lane: Lane, kept: Kept): void {
  drawGaps(scene, kept.tile);
  if (lane.kind === "heat") drawHeat(scene, kept, lane.unit === "ratio" ? 1 : lane.max);
  else if (lane.kind === "line")
    drawLine(scene, kept.tile, lane.unit === "ratio" ? Math.max(lane.max, 0.05) : lane.max);
  else drawEvents(scene, kept.tile);
}

function drawGaps(scene: Scene, tile: Tile): void {
  const { context, height, width } = scene.surface;
  context.fillStyle = hatch(context, scene.palette);
  for (const [from, to] of unseen(tile)) {
    const [left, right] = [xOf(scene, from), xOf(scene, to)];
    if (right < 0 || left > width) continue;
    context.fillRect(left, 0, Math.max(2, right - left), height);
  }
}

/** When nothing was seen: what gaps say, and columns without a value. They do not overlap. */
export function unseen(tile: Tile): Range[] {
  const ranges: Range[] = tile.gaps.map(([from, to]) => [from, to]);
  for (let i = 0; i < tile.values.length; i++) {
    if (tile.values[i] !== null) continue;
    const first = i;
    while (i + 1 < tile.values.length && tile.values[i + 1] === null) i++;
    ranges.push([tile.from + first * tile.step, tile.from + (i + 1) * tile.step]);
  }
  ranges.sort((a, b) => a[0] - b[0]);
  const joined: Range[] = [];
  for (const [from, to] of ranges) {
    const last = joined[joined.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

function drawHeat(scene: Scene, kept: Kept, max: number): void {
  const { context, height } = scene.surface;
  const image = strip(kept, scene.palette.theme, max);
  if (!image) return;
  const { tile } = kept;
  const left = xOf(scene, tile.from);
  const right = xOf(scene, tile.from + tile.step * tile.values.length);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, image.width, 1, left, 0, right - left, height);
}

const PAD = 3;

function drawLine(scene: Scene, tile: Tile, max: number): void {
  const { context, height, width } = scene.surface;
  const yOf = (value: number) => height - PAD - (value / (max || 1)) * (height - 2 * PAD);
  const shape = new Path2D();
  const line = new Path2D();
  let drawing = false;
  for (let i = 0; i < tile.values.length; i++) {
    const value = tile.values[i];
    const left = xOf(scene, tile.from + i * tile.step);
    const right = xOf(scene, tile.from + (i + 1) * tile.step);
    if (right < -2 || left > width + 2) continue;
    if (value === null) {
      drawing = false;
      continue;
    }
    const y = yOf(value);
    shape.rect(left, y, Math.max(right - left, 0.5) + 0.3, height - y);
    if (drawing) line.lineTo(left, y);
    else line.moveTo(left, y);
    line.lineTo(right, y);
    drawing = true;
  }
  context.globalAlpha = 0.18;
  context.fillStyle = scene.palette.accent;
  context.fill(shape);
  context.globalAlpha = 1;
  context.strokeStyle = scene.palette.accent;
  context.lineWidth = 1.5;
  context.stroke(line);
}

/** Events closer than this are one mark with a number. */
export const MARK_PX = 9;

export interface Mark {
  x: number;
  events: TimelineEvent[];
  count: number;
}

export function marks(scene: { surface: { width: number }; window: Range }, tile: Tile): Mark[] {
  const found: Mark[] = [];
  for (const event of tile.events ?? []) {
    const x = xOf(scene, event.at);
    if (x < -MARK_PX || x > scene.surface.width + MARK_PX) continue;
    const last = found[found.length - 1];
    if (last && x - last.x < MARK_PX) {
      last.events.push(event);
      last.count += event.count;
    } else {
      found.push({ x, events: [event], count: event.count });
    }
  }
  return found;
}

/** What bodes ill is a filled diamond in the colour of trouble, all else a small dot. */
export function bodesIll(event: TimelineEvent): boolean {
  return /reset|timeout|timed out|stuck|fail|starv|lockup|stall|oom|hung|error|lost|down|transmit_queue|napi_served/i.test(
    `${event.kind} ${event.text}`,
  );
}

/** Where there are too many to be told one by one, their number still is: taller is more. */
function drawCounts(scene: Scene, tile: Tile): void {
  const { context, height } = scene.surface;
  const most = Math.log2(1 + tile.values.reduce<number>((most, value) => Math.max(most, value ?? 0), 1));
  context.fillStyle = scene.palette.accent;
  context.globalAlpha = 0.5;
  tile.values.forEach((value, i) => {
    if (!value) return;
    const [left, right] = [xOf(scene, tile.from + i * tile.step), xOf(scene, tile.from + (i + 1) * tile.step)];
    const tall = (Math.log2(1 + value) / most) * (height - 4);
    context.fillRect(left, height - 2 - tall, Math.max(1, right - left), tall);
  });
  context.globalAlpha = 1;
}

function drawEvents(scene: Scene, tile: Tile): void {
  const { context, height } = scene.surface;
  const middle = height / 2;
  if (tile.events_left_out) {
    drawCounts(scene, tile);
    return;
  }
  for (const mark of marks(scene, tile)) {
    const ill = mark.events.some(bodesIll);
    context.fillStyle = ill ? scene.palette.bad : scene.palette.accent;
    context.beginPath();
    if (ill) {
      context.moveTo(mark.x, middle - 7);
      context.lineTo(mark.x + 6, middle);
      context.lineTo(mark.x, middle + 7);
      context.lineTo(mark.x - 6, middle);
    } else {
      context.arc(mark.x, middle, Math.min(3 + Math.log2(mark.count), 7), 0, 2 * Math.PI);
    }
    context.fill();
  }
}
