// At its bounds: an empty recording, a large node, long names, a slow network, a server that is gone.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { CORES, exported } from "../dev/node";
import { violations } from "./axe";
import { drop } from "./files";
import { LOOKS, lookOf } from "./looks";
import { ROOT, serve } from "./server";
import { blank, drag, everywhere, on, open, stateOf, withBrowser } from "./stage";

withBrowser();

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sexton-bounds-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

async function fits(page: Page): Promise<void> {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(page.viewportSize()?.width ?? 0);
}

test.each(LOOKS)("a recording that holds nothing is no healthy node, %s, %s", async (...look) => {
  const bundle = join(folder, `empty-${look.join("-")}`);
  mkdirSync(join(bundle, "records"), { recursive: true });
  copyFileSync(`${ROOT}fixtures/6.18-debian12/busy-healthy/bundle.json`, join(bundle, "bundle.json"));
  const server = await serve("serve", bundle);
  try {
    await on(await blank(lookOf(look)), async (page) => {
      await page.goto(server.address);
      await page.locator(".state.blind", { hasText: "Cannot tell" }).waitFor();
      await page.locator("#heatmap").scrollIntoViewIfNeeded();
      await page.locator("#flame .notice.blind").waitFor();
      await page.locator("#zombies").scrollIntoViewIfNeeded();
      await page.locator("#zombies .notice.blind", { hasText: "No census was taken" }).waitFor();
      expect(await page.locator("#timeline").textContent()).not.toMatch(/\b0 (ns|B)\b|max 0/);
      await fits(page);
      expect(await violations(page)).toEqual([]);
    });
  } finally {
    await server.stop();
  }
});

const ORIGINS = 5000;
const LONG = `/kubepods.slice/${"kubepods-burstable-pod".repeat(12)}.slice`;

/** The page as one file, of a node of 96 cores, 12 hours and thousands of origins with long names. */
async function large(): Promise<string> {
  const file = join(folder, "large.html");
  const page = await (await fetch(new URL("api/v1/sources/main/export.html", inject("address")))).text();
  const data = exported();
  const [origin] = data.zombies?.origins ?? [];
  const origins = Array.from({ length: ORIGINS }, (_, i) => ({ ...origin, origin: `${LONG}/${i}`, dying: ORIGINS - i }));
  const filled = { ...data, zombies: data.zombies && { ...data.zombies, origins } };
  const start = page.indexOf('id="sexton-data">') + 'id="sexton-data">'.length;
  const json = JSON.stringify(filled).replaceAll("<", "\\u003c");
  writeFileSync(file, page.slice(0, start) + json + page.slice(page.indexOf("</script>", start)));
  return pathToFileURL(file).href;
}

test.each(LOOKS)("96 cores and 5,000 origins are shown, walked and listed, %s, %s", async (...look) => {
  const address = await large();
  await on(await blank(lookOf(look)), async (page) => {
    await page.goto(address);
    await page.locator(".chain .card").first().waitFor();
    const strips = page.locator('[data-group^="each-"] .lane');
    expect(await strips.count()).toBeGreaterThanOrEqual(CORES);
    await strips.last().scrollIntoViewIfNeeded();
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    expect((await stateOf(page)).get("window")).not.toBe(null);
    await page.locator("#zombies").scrollIntoViewIfNeeded();
    const rows = page.locator("#zombies .records").first().locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(100);
    await fits(page);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Show 4,900 more" }).click();
    expect(await rows.count()).toBe(ORIGINS);
    expect(await rows.last().textContent()).toContain(`/${ORIGINS - 1}`);
    await fits(page);
  });
}, 180_000);

everywhere("names as long as they come stay within the page", "", async (page) => {
  const name = "std::collections::hash_map::".repeat(80);
  await drop(page, `${"long".repeat(40)}.folded`, Buffer.from(`app;main;${name} 90\napp;main;rest 10\n`));
  await page.locator("#flame").scrollIntoViewIfNeeded();
  await page.locator(".flame-words", { hasText: "100 samples" }).waitFor();
  await page.locator("#flame canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  expect(await page.locator(".crumbs").textContent()).toContain(name);
  await fits(page);
  await page.getByRole("button", { name: "Functions" }).click();
  await page.locator(".top-functions button.link").first().click();
  await fits(page);
});

test("a slow network shows what has come, and then the rest", async () => {
  const stage = await blank();
  await on(stage, async (page) => {
    const network = await page.context().newCDPSession(page);
    await network.send("Network.enable");
    const slow = { offline: false, latency: 500, downloadThroughput: 40_000, uploadThroughput: 40_000 };
    await network.send("Network.emulateNetworkConditions", slow);
    await page.goto(inject("address"), { waitUntil: "commit" });
    await page.locator(".notice.busy").first().waitFor();
    // Keys that come too early do no harm.
    for (const key of ["+", "ArrowRight", "3", "/", "Escape"]) await page.keyboard.press(key);
    await page.locator(".chain .card").first().waitFor();
    await page.locator("#flame").scrollIntoViewIfNeeded();
    await page.locator(".flame-words", { hasText: "samples" }).waitFor();
    expect(await page.locator(".notice.error").count()).toBe(0);
  });
});

test.each(LOOKS)("a server that is gone is not live, and what it sent stays, %s, %s", async (...look) => {
  const server = await serve("serve");
  const stage = await blank(lookOf(look));
  // The browser itself puts a failed request on the console.
  await on({ ...stage, complaints: [] }, async (page) => {
    await page.goto(server.address);
    await page.locator(".live", { hasText: "● live" }).waitFor();
    await page.locator(".state").waitFor();
    await page.locator("#timeline .lane").first().waitFor();
    await server.stop();
    await page.locator(".toast", { hasText: "The server does not answer" }).waitFor();
    expect(await page.locator(".live").textContent()).toBe("no answer");
    expect(await page.locator(".state").count()).toBe(1);
    expect(await page.locator("#timeline .lane").count()).toBeGreaterThan(10);
    await fits(page);
    expect(await violations(page)).toEqual([]);
  });
});

everywhere("back and forward go through what was looked at", "", async (page) => {
  await stateOf(page);
  const states = [new URL(page.url()).hash];
  const step = async (act: () => Promise<unknown>) => {
    await act();
    await stateOf(page);
    states.push(new URL(page.url()).hash);
  };
  const without = (hash: string) => hash.replace(/&?section=\w+/, "");
  await step(() => page.locator('[data-finding^="CPU001"]').first().click());
  await page.locator("#heatmap canvas").scrollIntoViewIfNeeded();
  await page.waitForTimeout(600);
  await step(() => drag(page, page.locator("#heatmap canvas"), [0.5, 0.8], [0.6, 0.3]));
  await page.locator("#flame canvas").focus();
  await page.locator(".flame-words", { hasText: "samples" }).waitFor();
  await page.waitForTimeout(300);
  await step(async () => {
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  });
  expect(new Set(states.map(without)).size).toBe(4);
  for (const state of [...states].reverse().slice(1)) {
    await page.goBack();
    await stateOf(page);
    expect(without(new URL(page.url()).hash)).toBe(without(state));
  }
  expect(await page.locator(".detail").count()).toBe(0);
  for (const state of states.slice(1)) {
    await page.goForward();
    await stateOf(page);
    expect(without(new URL(page.url()).hash)).toBe(without(state));
  }
  expect(await page.locator(".detail h2").textContent()).toContain("CPU001");
});

test.each(["light", "dark"] as const)("a tooltip goes when what it was about has moved, %s", async (theme) => {
  await on(await open("", lookOf([theme, "desk"])), async (page) => {
    const tooltip = page.locator(".tooltip:visible");
    const over = async (canvas: string, y: number) => {
      const one = page.locator(canvas);
      await one.scrollIntoViewIfNeeded();
      await page.waitForTimeout(600);
      const box = await one.boundingBox();
      if (!box) throw new Error(`${canvas} is not on the page`);
      await page.mouse.move(box.x + 30, box.y + y);
      await page.mouse.move(box.x + 32, box.y + y);
      await tooltip.waitFor();
    };
    await over("#flame canvas", 40);
    await page.mouse.down();
    await page.mouse.up();
    expect(await tooltip.count()).toBe(0);
    await over("#heatmap canvas", 80);
    await page.keyboard.press("+");
    expect(await tooltip.count()).toBe(0);
    await over('[data-lane="cores.worst"] canvas', 5);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    expect(await tooltip.count()).toBe(0);
  });
});

test.each(LOOKS)("what describes the node is in words, and has room, %s, %s", async (...look) => {
  const server = await serve("serve", `${ROOT}fixtures/7.2-debian12/lab-founding-outer-v2`);
  try {
    await on(await blank(lookOf(look)), async (page) => {
      await page.goto(server.address);
      await page.locator("summary", { hasText: "This node" }).click();
      const fold = page.locator(".below > details[open]");
      const names = await fold.locator("th").allTextContents();
      expect(names.length).toBeGreaterThan(5);
      for (const name of names) expect(name).toMatch(/^(\p{Lu}[\p{L}\d ]+|Boot option \S+|(kernel|vm|fs|net)\.[\w.]+)$/u);
      const [box, main] = [await fold.boundingBox(), await page.locator("main").boundingBox()];
      expect(box?.width).toBeGreaterThan((main?.width ?? 0) * 0.9);
      await fits(page);
    });
  } finally {
    await server.stop();
  }
});

