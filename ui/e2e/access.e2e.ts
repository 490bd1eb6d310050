// What axe finds on the page: nothing, in each state, in both themes and at both sizes.

import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { on, open, withBrowser } from "./stage";

withBrowser();

/** Each brings the page from the state before into another. */
const STATES: [string, (page: Page) => Promise<void>][] = [
  ["as it opens", async () => {}],
  ["with the evidence of a finding", (page) => page.locator('[data-finding^="CPU002"]').first().click()],
  ["with the evidence of a link", (page) => page.locator(".chain .arrow").first().click()],
  [
    "with everything unfolded",
    (page) =>
      page.locator("details").evaluateAll((all) => all.forEach((fold) => ((fold as HTMLDetailsElement).open = true))),
  ],
  [
    "with its functions as a table",
    async (page) => {
      await page.getByRole("button", { name: "Functions" }).click();
      await page.locator(".top-functions button.link").first().click();
    },
  ],
  ["with help", (page) => page.keyboard.press("?")],
];

const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

async function violations(page: Page): Promise<string[]> {
  // Evaluated, not added as a script: the page's policy allows none but its own.
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const found = await axe.run(document);
    return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`));
  });
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    test(`axe finds nothing, ${colorScheme}, ${size}`, async () => {
      await on(await open("", { viewport, colorScheme }), async (page) => {
        // All parts are read when they come into sight.
        for (const section of ["timeline", "heatmap", "flame", "zombies", "verdict"]) {
          await page.locator(`#${section}`).evaluate((element) => element.scrollIntoView());
          await page.waitForTimeout(400);
        }
        for (const [name, reach] of STATES) {
          await reach(page);
          await page.waitForTimeout(200);
          expect(await violations(page), name).toEqual([]);
        }
      });
    });
  }
}
