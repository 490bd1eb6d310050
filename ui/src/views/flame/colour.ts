// Colours of frames: kernel warm, programs' code cool, programs themselves grey; or, when
// two windows are compared, orange for more and blue for less.

import type { Flame } from "../../api/types";
import { css, difference, luminance, type Rgb } from "../../draw/ramp";
import { shares } from "./layout";

const KERNEL: Record<string, Rgb> = { dark: [196, 128, 52], light: [246, 186, 110] };
const USER: Record<string, Rgb> = { dark: [58, 124, 158], light: [146, 200, 226] };
const OTHER: Record<string, Rgb> = { dark: [92, 98, 110], light: [208, 212, 220] };

const PLAIN = {
  dark: [css(OTHER.dark), css(KERNEL.dark), css(USER.dark)],
  light: [css(OTHER.light), css(KERNEL.light), css(USER.light)],
};

/** A change of this part of all samples has the full colour. */
const FULL_CHANGE = 0.15;

export function colourOf(flame: Flame, node: number, theme: "dark" | "light"): Rgb {
  const { now, before } = shares(flame, node);
  if (before !== null) {
    const change = (now - before) / FULL_CHANGE;
    return difference(theme, Math.sign(change) * Math.sqrt(Math.min(1, Math.abs(change))));
  }
  const kind = flame.nodes.kind[node];
  const of = kind === 1 ? KERNEL : kind === 2 ? USER : OTHER;
  return shade(of[theme], hash(flame.names[flame.nodes.name[node]]));
}

/** The colour without a shade of its own, ready to fill with. */
export function plainColour(flame: Flame, node: number, theme: "dark" | "light"): string {
  if (flame.nodes.base) return css(colourOf(flame, node, theme));
  const kind = flame.nodes.kind[node];
  return PLAIN[theme][kind] ?? PLAIN[theme][0];
}

/** Neighbours differ a little, and one function looks the same everywhere. */
function shade(colour: Rgb, seed: number): Rgb {
  const by = ((seed % 17) - 8) * 2.2;
  return colour.map((part) => Math.max(0, Math.min(255, Math.round(part + by)))) as Rgb;
}

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) >>> 0;
  return value;
}

export function inkOn(colour: Rgb): string {
  return luminance(colour) > 0.22 ? "#14161a" : "#f6f7f9";
}

export const LEGEND = { kernel: KERNEL, user: USER, other: OTHER };
