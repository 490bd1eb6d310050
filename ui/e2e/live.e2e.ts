// The page of a node that is being recorded.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LOOKS, lookOf } from "./looks";
import { serve } from "./server";
import { blank, on, rangeOf, stateOf, withBrowser } from "./stage";

let server: Awaited<ReturnType<typeof serve>>;

withBrowser();

beforeAll(async () => {
  server = await serve("serve");
});

afterAll(() => server.stop());

/** How long the page waits before it looks again, and a little more. */
const LOOK_MS = 5_500;

const isLook = (address: string) => new URL(address).pathname === "/api/v1/sources";

/** Whether the page asks if the recording has grown. */
async function looks(page: Page): Promise<boolean> {
  const look = page.waitForRequest((request) => isLook(request.url()), { timeout: LOOK_MS });
  return look.then(
    () => true,
    () => false,
  );
}

test.each(LOOKS)("a live page follows the node, stays while it is paused, and shows the last minutes, %s, %s", async (...look) => {
  await on(await blank(lookOf(look)), async (page) => {
    await page.goto(server.address);
    const pause = page.getByRole("button", { name: "Pause" });
    await pause.waitFor();
    expect(await pause.isVisible()).toBe(true);
    expect(await page.locator(".live").textContent()).toBe("● live");
    // Times of day from the start on, however young the recording is.
    expect(await page.locator(".ruler-line .label").textContent()).toBe("UTC");
    expect(await looks(page)).toBe(true);
    await pause.click();
    expect(await page.locator(".live").textContent()).toBe("paused");
    expect(await looks(page)).toBe(false);
    await page.getByRole("button", { name: "Follow" }).click();
    expect(await looks(page)).toBe(true);

    await page.getByRole("button", { name: "Zoom in (+)" }).click();
    const [from, to] = rangeOf((await stateOf(page)).get("window"));
    expect(to).toBeGreaterThan(from);
    // The last five minutes, or hour, of half a minute are all of it.
    for (const last of ["5 min", "1 h", "All"]) {
      await page.getByRole("button", { name: "Zoom in (+)" }).click();
      expect((await stateOf(page)).get("window")).not.toBeNull();
      await page.getByRole("button", { name: last, exact: true }).click();
      expect((await stateOf(page)).get("window")).toBeNull();
    }
  });
});
