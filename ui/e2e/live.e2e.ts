// The page of a node that is being recorded.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addressOf } from "./server";
import { blank, on, rangeOf, stateOf, withBrowser } from "./stage";

let server: ChildProcess;
let address: string;

withBrowser();

beforeAll(async () => {
  const program = process.env.SEXTON ?? fileURLToPath(new URL("../../target/debug/sexton", import.meta.url));
  server = spawn(program, ["serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  address = await addressOf(server);
});

afterAll(() => {
  server.kill("SIGINT");
});

/** How often the page asks whether the recording has grown, in a few seconds. */
async function looks(page: Page): Promise<number> {
  let n = 0;
  const count = (request: { url(): string }) => {
    if (new URL(request.url()).pathname === "/api/v1/sources") n++;
  };
  page.on("request", count);
  await page.waitForTimeout(7000);
  page.off("request", count);
  return n;
}

test("a live page follows the node, stays while it is paused, and shows the last minutes", async () => {
  await on(await blank(), async (page) => {
    await page.goto(address);
    const pause = page.getByRole("button", { name: "Pause" });
    await pause.waitFor();
    expect(await page.locator(".live").textContent()).toBe("● live");
    expect(await looks(page)).toBeGreaterThan(0);
    await pause.click();
    expect(await page.locator(".live").textContent()).toBe("paused");
    expect(await looks(page)).toBe(0);
    await page.getByRole("button", { name: "Follow" }).click();
    expect(await looks(page)).toBeGreaterThan(0);

    await page.getByRole("button", { name: "Zoom in (+)" }).click();
    const [from, to] = rangeOf((await stateOf(page)).get("window"));
    expect(to).toBeGreaterThan(from);
    // The last five minutes of half a minute are all of it.
    await page.getByRole("button", { name: "5 min", exact: true }).click();
    expect((await stateOf(page)).get("window")).toBeNull();
  });
});
