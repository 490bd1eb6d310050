// How the number of dying cgroups grew.

import type { Zombies } from "../../api/types";
import { h } from "../../dom/element";
import { surface } from "../../draw/surface";
import type { Context } from "../../shell/context";
import { count, type Clock, moment, perHour, plural } from "../../time/format";

const HEIGHT = 120;
const EDGE = { left: 62, right: 64, top: 10, bottom: 20 };

export function growthChart(context: Context, zombies: Zombies): HTMLElement {
  const { growth } = zombies;
  const last = growth.dying.findLast((value) => value !== null);
  const rate = growth.per_day === null ? "" : `, ${perHour(growth.per_day / 24)} at this rate`;
  const words = `Dying memory cgroups, ${plural(growth.at.length, "census", "censuses")}${last == null ? "" : `, ${count(last)} at the end`}${rate}`;
  const canvas = h("canvas", { attrs: { role: "img", "aria-label": words } });
  const place = h("div", "canvas-place", canvas);
  const draw = () => place.clientWidth > 0 && drawGrowth(canvas, place.clientWidth, context, zombies);
  new ResizeObserver(draw).observe(place);
  return h("figure", "growth", h("figcaption", {}, words), place);
}

function drawGrowth(canvas: HTMLCanvasElement, width: number, context: Context, zombies: Zombies): void {
  const { at, dying, live } = zombies.growth;
  const { palette } = context.theme;
  const { context: pen } = surface(canvas, width, HEIGHT);
  const most = Math.max(1, ...dying.map(Number), ...live.map(Number));
  const [from, to] = [at[0], Math.max(at[at.length - 1], at[0] + 1)];
  const x = (time: number) => EDGE.left + ((time - from) / (to - from)) * (width - EDGE.left - EDGE.right);
  const y = (value: number) => HEIGHT - EDGE.bottom - (value / most) * (HEIGHT - EDGE.top - EDGE.bottom);
  pen.font = "11px system-ui, sans-serif";
  pen.strokeStyle = palette.line;
  pen.strokeRect(EDGE.left + 0.5, EDGE.top + 0.5, width - EDGE.left - EDGE.right, HEIGHT - EDGE.top - EDGE.bottom);
  pen.fillStyle = palette.quiet;
  pen.textAlign = "right";
  pen.fillText(count(most), EDGE.left - 6, y(most) + 8);
  pen.fillText("0", EDGE.left - 6, y(0));
  pen.textAlign = "left";
  line(pen, at, live, x, y, palette.quiet, "live");
  line(pen, at, dying, x, y, palette.bad, "dying");
  ends(pen, palette.quiet, context.source.clock, from, to, width);
}

function line(
  pen: CanvasRenderingContext2D,
  at: number[],
  values: (number | null)[],
  x: (time: number) => number,
  y: (value: number) => number,
  colour: string,
  name: string,
): void {
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  let drawing = false;
  let end: [number, number] | null = null;
  values.forEach((value, i) => {
    if (value === null) {
      drawing = false;
      return;
    }
    end = [x(at[i]), y(value)];
    if (drawing) pen.lineTo(...end);
    else pen.moveTo(...end);
    drawing = true;
    pen.fillRect(end[0] - 1.5, end[1] - 1.5, 3, 3);
  });
  pen.stroke();
  if (end) pen.fillText(name, (end as [number, number])[0] + 6, (end as [number, number])[1] + 4);
}

function ends(
  pen: CanvasRenderingContext2D,
  colour: string,
  clock: Clock,
  from: number,
  to: number,
  width: number,
): void {
  pen.fillStyle = colour;
  pen.fillText(moment(from, clock, 1_000_000), EDGE.left, HEIGHT - 5);
  const text = moment(to, clock, 1_000_000);
  pen.fillText(text, width - EDGE.right - pen.measureText(text).width, HEIGHT - 5);
}
