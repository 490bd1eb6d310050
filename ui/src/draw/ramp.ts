// Colours for quantities. Lightness alone tells more from less, so that every kind of
// colour sight and a grey print can read it; the hue goes from blue to yellow, the pair
// that most people with another colour sight still tell apart.

export type Rgb = [number, number, number];

const SIZE = 256;

/** Stops of our own along a blue-to-yellow line of rising lightness. */
const DARK_FIRST: Rgb[] = [
  [18, 28, 58],
  [32, 60, 110],
  [66, 92, 122],
  [108, 120, 120],
  [156, 148, 106],
  [206, 184, 86],
  [255, 230, 90],
];
const LIGHT_FIRST: Rgb[] = [
  [246, 247, 244],
  [234, 231, 212],
  [208, 200, 158],
  [158, 160, 132],
  [98, 116, 134],
  [44, 72, 124],
  [14, 26, 66],
];

function table(stops: Rgb[]): Uint8ClampedArray {
  const colours = new Uint8ClampedArray(SIZE * 3);
  for (let i = 0; i < SIZE; i++) {
    const place = (i / (SIZE - 1)) * (stops.length - 1);
    const stop = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part++) {
      const [a, b] = [stops[stop][part], stops[stop + 1][part]];
      colours[i * 3 + part] = a + (b - a) * (place - stop);
    }
  }
  return colours;
}

const TABLES = { dark: table(DARK_FIRST), light: table(LIGHT_FIRST) };

/** More always stands out from the page: brighter on a dark one, darker on a light one. */
export function ramp(theme: "dark" | "light", share: number): Rgb {
  const colours = TABLES[theme];
  const i = Math.min(SIZE - 1, Math.max(0, Math.round(share * (SIZE - 1)))) * 3;
  return [colours[i], colours[i + 1], colours[i + 2]];
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r},${g},${b})`;

/** Blue for less, orange for more, the page's own colour for as before; -1 to 1. */
export function difference(theme: "dark" | "light", change: number): Rgb {
  const size = Math.min(1, Math.abs(change));
  const none: Rgb = theme === "dark" ? [74, 78, 88] : [228, 230, 234];
  const full: Rgb = change > 0 ? [230, 126, 20] : [58, 132, 220];
  return [0, 1, 2].map((part) => Math.round(none[part] + (full[part] - none[part]) * size)) as Rgb;
}

export function luminance([r, g, b]: Rgb): number {
  const linear = (part: number) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
