// The part of a flame graph that is in sight. What is narrower than a pixel is passed over
// by a search, so that the cost follows the screen and not the number of frames.

import type { Flame } from "../../api/types";
import { css, type Rgb } from "../../draw/ramp";
import type { Surface } from "../../draw/surface";
import type { Palette } from "../../theme/palette";
import { colourOf, inkOn, plainColour } from "./colour";
import { indexAt, type Layout } from "./layout";
import type { Found } from "./search";

export const ROW_PX = 18;
const CHAR_PX = 6.3;
/** Narrower frames have no name, and are drawn at most once a pixel. */
const NAME_PX = 22;
const LEAST_PX = 1;

export interface Picture {
  flame: Flame;
  layout: Layout;
  surface: Surface;
  palette: Palette;
  found: Found | null;
  zoom: number;
  focus: number | null;
  upright: boolean;
  scrollTop: number;
}

interface Lens {
  from: number;
  scale: number;
}

function lens({ layout, zoom, surface }: Picture): Lens {
  return { from: layout.x[zoom], scale: surface.width / Math.max(layout.w[zoom], 1e-12) };
}

export function heightOf(layout: Layout): number {
  return layout.levels.length * ROW_PX;
}

/** The top of a row on the canvas. */
export function topOf(picture: Pick<Picture, "layout" | "upright" | "scrollTop">, depth: number): number {
  const row = picture.upright ? picture.layout.levels.length - 1 - depth : depth;
  return row * ROW_PX - picture.scrollTop;
}

export function depthAt(picture: Pick<Picture, "layout" | "upright" | "scrollTop">, y: number): number {
  const row = Math.floor((y + picture.scrollTop) / ROW_PX);
  return picture.upright ? picture.layout.levels.length - 1 - row : row;
}

export function shareAt(picture: Picture, x: number): number {
  const { from, scale } = lens(picture);
  return from + x / scale;
}

export function drawFlame(picture: Picture): void {
  const { context, height } = picture.surface;
  context.font = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  context.textBaseline = "middle";
  picture.layout.levels.forEach((level, depth) => {
    const top = topOf(picture, depth);
    if (top > -ROW_PX && top < height) drawLevel(picture, level, top, depth);
  });
}

function drawLevel(picture: Picture, level: Int32Array, top: number, depth: number): void {
  const { layout, surface } = picture;
  const { from, scale } = lens(picture);
  const above = depth < layout.depth[picture.zoom];
  let index = Math.max(0, indexAt(level, layout.x, from));
  while (index < level.length) {
    const node = level[index];
    const left = (layout.x[node] - from) * scale;
    if (left >= surface.width) break;
    const right = left + layout.w[node] * scale;
    if (right > 0 && right - left >= LEAST_PX) {
      drawFrame(picture, node, Math.max(0, left), Math.min(surface.width, right), top, above);
      index++;
    } else if (right <= 0) {
      index++;
    } else {
      drawCrumb(picture, node, left, top);
      // The next frame that is a pixel further on.
      index = Math.max(index + 1, indexAt(level, layout.x, layout.x[node] + LEAST_PX / scale));
    }
  }
}

function paintOf({ flame, palette, found }: Picture, node: number): { fill: Rgb | string; dim: boolean } {
  const matched = found?.matches[node] === 1;
  if (matched) return { fill: palette.mark, dim: false };
  return { fill: colourOf(flame, node, palette.theme), dim: found !== null };
}

function drawFrame(picture: Picture, node: number, left: number, right: number, top: number, above: boolean): void {
  const { context } = picture.surface;
  const { fill, dim } = paintOf(picture, node);
  context.globalAlpha = above || dim ? 0.45 : 1;
  context.fillStyle = typeof fill === "string" ? fill : css(fill);
  const width = right - left;
  context.fillRect(left, top, width > 3 ? width - 1 : width, ROW_PX - 1);
  context.globalAlpha = above ? 0.7 : 1;
  if (width >= NAME_PX) {
    const name = picture.flame.names[picture.flame.nodes.name[node]];
    const room = Math.floor((width - 7) / CHAR_PX);
    const faint = dim && typeof fill !== "string";
    context.fillStyle = faint ? picture.palette.quiet : typeof fill === "string" ? "#ffffff" : inkOn(fill);
    context.fillText(
      name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name,
      left + 4,
      top + ROW_PX / 2,
    );
  }
  context.globalAlpha = 1;
  if (picture.focus === node) {
    context.strokeStyle = picture.palette.ink;
    context.lineWidth = 2;
    context.strokeRect(left + 1, top + 1, Math.max(1, width - 3), ROW_PX - 3);
  }
}

/** Too narrow to be told from its neighbours: no shade of its own, which would cost. */
function drawCrumb({ surface, flame, palette, found }: Picture, node: number, left: number, top: number): void {
  const { context } = surface;
  const matched = found?.matches[node] === 1;
  context.globalAlpha = found && !matched ? 0.25 : 0.6;
  context.fillStyle = matched ? palette.mark : plainColour(flame, node, palette.theme);
  context.fillRect(left, top, LEAST_PX, ROW_PX - 1);
  context.globalAlpha = 1;
}
