import { expect, test } from "vitest";
import { difference, luminance, ramp } from "../src/draw/ramp";

test.each(["dark", "light"] as const)("more is told from less by lightness alone, %s", (theme) => {
  const steps = Array.from({ length: 33 }, (_, i) => luminance(ramp(theme, i / 32)));
  const rises = theme === "dark" ? 1 : -1;
  for (let i = 1; i < steps.length; i++) expect((steps[i] - steps[i - 1]) * rises).toBeGreaterThan(0);
});

test.each(["dark", "light"] as const)("more and less differ without red and green, %s", (theme) => {
  const [more, less] = [difference(theme, 1), difference(theme, -1)];
  // Blue against orange: told apart by the channel that is left in red-green blindness.
  expect(less[2] - less[0]).toBeGreaterThan(100);
  expect(more[0] - more[2]).toBeGreaterThan(100);
  expect(difference(theme, 0)).toEqual(difference(theme, -0));
});
