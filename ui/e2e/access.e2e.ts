// What axe finds on the page: nothing, in each state, in both themes and at both sizes.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { violations } from "./axe";
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
