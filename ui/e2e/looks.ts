// Both sizes and both themes: what holds in one has to hold in all.

import type { BrowserContextOptions } from "playwright-core";

export type Theme = "light" | "dark";
export type Size = "desk" | "phone";

const SIZES: Record<Size, BrowserContextOptions> = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};

export const LOOKS: [Theme, Size][] = [
  ["light", "desk"],
  ["dark", "desk"],
  ["light", "phone"],
  ["dark", "phone"],
];

export function lookOf([colorScheme, size]: [Theme, Size]): BrowserContextOptions {
  return { ...SIZES[size], colorScheme };
}
