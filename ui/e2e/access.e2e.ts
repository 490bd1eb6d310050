// What axe finds on the page: nothing, in each state, in both themes and at both sizes. The
// agent's screen is in ways.e2e.ts, all sorts of recordings in numbers.e2e.ts.

import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { violations } from "./axe";
import { drop } from "./files";
import { LOOKS, lookOf } from "./looks";
import { ROOT, serve } from "./server";
import { blank, drag, on, open, withBrowser } from "./stage";

withBrowser();

type State = [name: string, reach: (page: Page) => Promise<unknown>];

const press = (name: string) => (page: Page) => page.getByRole("button", { name, exact: true }).first().click();

/** Each brings the page from the state before into another. */
const STATES: State[] = [
  ["as it opens", async () => {}],
  ["with the evidence of a finding", (page) => page.locator('[data-finding^="CPU002"]').first().click()],
  ["with a command copied", (page) => page.locator(".detail .command button").first().click()],
  ["with the evidence of a link", (page) => page.locator(".chain .arrow").first().click()],
  ["with all closed", (page) => page.keyboard.press("Escape")],
  ["with the sentence of an event", (page) => page.evaluate(() => {
    location.hash = "#window=1794786100000000-1794786110000000&finding=NIC001:drill-far";
  })],
  ["with a row for each thread", press("Threads")],
  ["with long columns", press("Long")],
  ["with one core", (page) => page.getByLabel("Count samples of").selectOption("core")],
  ["with one function", (page) => page.getByLabel("Count samples of").selectOption("function")],
  ["with all of it", async (page) => {
    await page.getByLabel("Count samples of").selectOption("all");
    await press("Sub-second")(page);
    await page.keyboard.press("0");
  }],
  ["with a selection", async (page) => {
    await drag(page, page.locator("#heatmap canvas"), [0.5, 0.8], [0.6, 0.3]);
  }],
  ["with a difference", async (page) => {
    await press("Compare")(page);
    await drag(page, page.locator("#heatmap canvas"), [0.2, 0.8], [0.3, 0.3]);
    await page.locator(".flame-words", { hasText: "compared with" }).waitFor();
  }],
  ["with the functions of a difference", press("Functions")],
  ["with its functions as a table", async (page) => {
    await page.keyboard.press("Escape");
    await page.locator(".top-functions button.link").first().click();
  }],
  ["with a flame graph that is zoomed", async (page) => {
    await press("Graph")(page);
    await page.locator("#flame canvas").focus();
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  }],
  ["with flames that grow up", press("As flames")],
  ["with a search", (page) => page.locator("#flame-search").fill("memcg")],
  ["with a search that finds nothing", (page) => page.locator("#flame-search").fill("no such function")],
  ["with zombies by unit", press("By unit")],
  ["with zombies by file", press("By pinning file")],
  ["with everything unfolded", (page) =>
    page.locator("details").evaluateAll((all) => {
      for (const fold of all) (fold as HTMLDetailsElement).open = true;
    })],
  ["with help", (page) => page.keyboard.press("?")],
];

async function check(page: Page, name: string): Promise<void> {
  await page.waitForTimeout(200);
  expect(await violations(page), name).toEqual([]);
}

/** All parts are read when they come into sight. */
async function seeAll(page: Page): Promise<void> {
  for (const section of ["timeline", "heatmap", "flame", "zombies", "verdict"]) {
    await page.locator(`#${section}`).evaluate((element) => element.scrollIntoView());
    await page.waitForTimeout(400);
  }
}

test.each(LOOKS)("axe finds nothing on a recording, %s, %s", async (...look) => {
  await on(await open("", lookOf(look)), async (page) => {
    await seeAll(page);
    for (const [name, reach] of STATES) {
      await reach(page);
      await check(page, name);
    }
  });
}, 180_000);

test.each(LOOKS)("axe finds nothing where something went wrong, %s, %s", async (...look) => {
  const stage = await open("", lookOf(look));
  await on({ ...stage, complaints: [] }, async (page) => {
    await page.locator("input[type=file]").setInputFiles({
      name: "photo.png",
      mimeType: "image/png",
      buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47]),
    });
    await page.locator(".toast", { hasText: "photo.png:" }).waitFor();
    await check(page, "a file that cannot be opened");
    const problem = { status: 500, title: "broken", detail: "cannot read the records" };
    for (const what of ["diagnosis", "lanes", "zombies", "heatmap?*", "flame?*"]) {
      await page.route(`**/${what}`, (route) => route.fulfill({ status: 500, json: problem }));
    }
    await page.reload();
    await seeAll(page);
    expect(await page.locator(".notice.error").count()).toBe(5);
    await check(page, "no question is answered");
    await page.route("**/sources", (route) => route.abort());
    await page.reload();
    await page.locator(".notice.error").waitFor();
    await check(page, "no server");
  });
});

test.each(LOOKS)("axe finds nothing on a profile alone, %s, %s", async (...look) => {
  await on(await open("", lookOf(look)), async (page) => {
    await drop(page, "out.perf.gz", await readFile(`${ROOT}fixtures/synthetic/perf-script/stacks.txt.gz`), async () => {
      await check(page, "a file over the page");
    });
    await page.locator("#heatmap .legend", { hasText: /[1-9]\d* samples in a cell/ }).waitFor();
    await check(page, "a profile with times");
    await drop(page, "stacks.folded", Buffer.from("app;main;work 90\napp;main;rest 10\n"));
    await page.locator("#heatmap .notice", { hasText: "no times" }).waitFor();
    await check(page, "a profile without times");
  });
});

test.each(LOOKS)("axe finds nothing on a node that is recorded, %s, %s", async (...look) => {
  const server = await serve("serve");
  try {
    await on(await blank(lookOf(look)), async (page) => {
      await page.goto(server.address);
      await page.locator(".state").waitFor();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await seeAll(page);
      await check(page, "live");
      await page.getByRole("button", { name: "Pause" }).click();
      await check(page, "paused");
    });
  } finally {
    await server.stop();
  }
});
