// Ways to use the page: keys, a phone, a file dropped on it, a file made of it.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { manyFrames } from "../dev/many.mjs";
import { violations } from "./axe";
import { drop } from "./files";
import { LOOKS, lookOf } from "./looks";
import { blank, drag, everywhere, on, open, percentIn, shareOf, stateOf, withBrowser } from "./stage";

/** The same drag on the same picture: what it selects, in each view. */
async function dragged(page: Page): Promise<(string | null)[]> {
  const found = [];
  for (const view of ["Sub-second", "Long", "Threads"]) {
    await page.getByRole("button", { name: view, exact: true }).click();
    const canvas = page.locator("#heatmap canvas");
    await canvas.scrollIntoViewIfNeeded();
    await page.waitForTimeout(700);
    await drag(page, canvas, [0.5, 0.8], [0.6, 0.3]);
    found.push((await stateOf(page)).get("selection"));
  }
  return found;
}

withBrowser();

test.each(LOOKS)("the exported file opens from disk and asks nobody, %s, %s", async (...look) => {
  const folder = await mkdtemp(join(tmpdir(), "sexton-page-"));
  const file = join(folder, "page.html");
  let served: (string | null)[] = [];
  await on(await open("", lookOf(look)), async (page) => {
    served = await dragged(page);
    await page.keyboard.press("Escape");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    await (await download).saveAs(file);
  });
  const stage = await blank(lookOf(look));
  const asked: string[] = [];
  stage.page.on("request", (request) => asked.push(request.url()));
  try {
    await on(stage, async (page) => {
      await page.goto(pathToFileURL(file).href);
      expect(await page.locator(".chain").first().locator(".card").count()).toBe(4);
      expect(await dragged(page)).toEqual(served);
      await page.getByRole("button", { name: "Sub-second", exact: true }).click();
      const canvas = page.locator("#heatmap canvas");
      await canvas.scrollIntoViewIfNeeded();
      await page.getByLabel("Count samples of").selectOption("core");
      await page.getByLabel("Which one").selectOption("0");
      await page.waitForTimeout(500);
      await drag(page, canvas, [0.5, 0.8], [0.6, 0.3]);
      await page.locator("#flame").scrollIntoViewIfNeeded();
      expect(percentIn(await shareOf(page, "memory_stat_show|memcg_numa_stat_show"))).toBeGreaterThan(50);
      await drag(page, canvas, [0.2, 0.8], [0.3, 0.3], "Shift");
      await page.locator(".flame-words", { hasText: "compared with" }).waitFor();
      await page.locator("#zombies .records").first().waitFor();
      expect(asked).toEqual([pathToFileURL(file).href]);
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

everywhere("each thread has a row, and a click on its name keeps to it", "#view=threads", async (page) => {
  const canvas = page.locator("#heatmap canvas");
  await canvas.scrollIntoViewIfNeeded();
  await page.waitForTimeout(700);
  const map = await (await fetch(new URL("api/v1/sources/main/heatmap?view=threads&rows=30", inject("address")))).json();
  expect(map.tracks.length).toBe(map.rows);
  const box = await canvas.boundingBox();
  if (!box) throw new Error("there is no heat map");
  await page.mouse.click(box.x + 20, box.y + 18 + 8);
  const state = await stateOf(page);
  expect([state.get("by"), state.get("value")]).toEqual(["thread", map.tracks[0].value]);
  await page.locator(".flame-words", { hasText: `of thread ${map.tracks[0].value}` }).waitFor();
  const words = await page.locator(".flame-words").textContent();
  expect(words).toContain(`${map.tracks[0].samples.toLocaleString("en-US")} samples`);
});

everywhere("samples of one container or pod can be chosen, and there being none is said", "", async (page) => {
  await page.locator("#heatmap canvas").scrollIntoViewIfNeeded();
  for (const what of ["container", "pod"]) {
    await page.getByLabel("Count samples of").selectOption(what);
    await page.locator("#heatmap option", { hasText: /none in this window|all of them/ }).waitFor({ state: "attached" });
    const { parts } = await (
      await fetch(new URL(`api/v1/sources/main/heatmap?by=${what}`, inject("address")))
    ).json();
    await page.waitForTimeout(300);
    const options = await page.getByLabel("Which one").locator("option").allTextContents();
    expect(options.length).toBe(1 + parts.length);
    expect(options[0]).toBe(parts.length === 0 ? "(none in this window)" : "(all of them)");
  }
});

everywhere("with an agent its ring, incidents and findings come first", "", async (page) => {
  const { from, to } = await (await fetch(new URL("api/v1/sources/main", inject("address")))).json();
  const agent = {
    now: to,
    started: from,
    ring: { from: from - 3_600_000_000, boots: 2, bytes: 1 << 20, max_bytes: 1 << 30, trouble: null },
    cpu_ratio: 0.009,
    memory_bytes: 42 << 20,
    incidents: [
      {
        id: "20261116t001746znic001",
        name: "20261116T001746Z-NIC001",
        finding: "NIC001:drill-far",
        title: "1 transmit timeout",
        severity: "serious",
        others: 2,
        opened: from + 1_000_000,
        bytes: 5 << 20,
        is_whole: true,
      },
    ],
    findings: [
      { finding: "NIC001:drill-far", title: "1 transmit timeout", worst: "serious", opened: from + 1_000_000, over: from + 3_000_000, ended_by_reboot: false },
      { finding: "MCG001:/x", title: "52 dying", worst: "warning", opened: from - 900_000_000, over: from - 600_000_000, ended_by_reboot: true },
    ],
    findings_left_out: 0,
  };
  await page.route("**/api/v1/agent", (route) => route.fulfill({ json: agent }));
  await page.route("**/api/v1/sources", async (route) => {
    const sources = await (await route.fetch()).json();
    await route.fulfill({ json: { ...sources, agent: true } });
  });
  await page.reload();
  const rows = page.locator("#agent .lives tbody tr");
  await rows.first().waitFor();
  expect(await rows.count()).toBe(2);
  expect(await rows.nth(0).textContent()).toContain("2 s");
  expect(await rows.nth(1).textContent()).toContain("5 min, until the reboot");
  const words = await page.locator("#agent").textContent();
  expect(words).toContain("2 boots, 1 MiB of 1 GiB");
  expect(words).toContain("0 findings open, 2 over, 1 incident kept");
  expect(await page.getByRole("button", { name: "Open the incident of" }).isVisible()).toBe(true);
  expect(await violations(page)).toEqual([]);
  const [first, verdict] = [await page.locator("#agent").boundingBox(), await page.locator("#verdict").boundingBox()];
  expect(first?.y).toBeLessThan(verdict?.y ?? 0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(page.viewportSize()?.width ?? 0);
  await rows.first().getByRole("button").click();
  expect((await stateOf(page)).get("window")).not.toBe(null);
  expect(await page.getByRole("button", { name: /Open the incident of/ }).count()).toBe(1);
});

everywhere("the samples of the flame graph are saved as pprof", "#by=core&value=0", async (page) => {
  await page.locator("#flame").scrollIntoViewIfNeeded();
  await page.locator(".flame-words", { hasText: "samples" }).waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "pprof" }).click();
  const bytes = gunzipSync(await readFile(await (await download).path()));
  // The names of functions are in it as they are.
  expect(bytes.includes("memory_stat_show")).toBe(true);
});

everywhere("everything can be done with keys", "", async (page) => {
  await page.keyboard.press("?");
  expect(await page.locator("dialog.help").isVisible()).toBe(true);
  await page.keyboard.press("Escape");
  expect(await page.locator("dialog.help").isVisible()).toBe(false);
  const words = page.locator(".window-words");
  const all = await words.textContent();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  expect((await stateOf(page)).get("window")).not.toBe(null);
  await page.keyboard.press("0");
  expect(await words.textContent()).toBe(all);
  await page.keyboard.press("w");
  await page.keyboard.press("d");
  expect(await words.textContent()).not.toBe(all);
  await page.keyboard.press("0");
  const theme = await page.locator("html").getAttribute("data-theme");
  await page.keyboard.press("t");
  expect(await page.locator("html").getAttribute("data-theme")).not.toBe(theme);
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("flame-search");
  await page.keyboard.type("memcg");
  await page.waitForFunction(() => location.hash.includes("search=memcg"));
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.waitForFunction(() => location.hash.includes("upright=1"));
  expect((await stateOf(page)).get("search")).toBe("memcg");
});

everywhere("the evidence opens and closes with keys alone, and the focus comes back", "", async (page) => {
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-finding") ?? document.activeElement?.textContent);
  for (let i = 0; i < 30 && !(await focused())?.startsWith("CPU002"); i++) await page.keyboard.press("Tab");
  expect(await focused()).toMatch(/^CPU002/);
  await page.keyboard.press("Enter");
  await page.locator(".detail").waitFor();
  for (let i = 0; i < 30 && (await focused()) !== "Close"; i++) await page.keyboard.press("Tab");
  expect(await focused()).toBe("Close");
  await page.keyboard.press("Enter");
  expect(await page.locator(".detail").count()).toBe(0);
  expect(await focused()).toMatch(/^CPU002/);
});

everywhere("the part in sight is in the address, and the link opens there", "", async (page) => {
  for (const section of ["heatmap", "zombies"]) {
    await page.evaluate((id) => document.getElementById(id)?.scrollIntoView({ behavior: "instant" }), section);
    await page.waitForFunction((id) => location.hash.includes(`section=${id}`), section);
  }
  await page.reload();
  await page.locator("#zombies .records").first().waitFor();
  await page.waitForTimeout(2200);
  expect(await page.locator("nav a[aria-current]").textContent()).toBe("Zombies");
  const box = await page.locator("#zombies").boundingBox();
  expect(Math.abs(box?.y ?? 9999)).toBeLessThan((page.viewportSize()?.height ?? 0) / 2);
});

test("the chain, the heat map and the flame graph take the focus", async () => {
  await on(await open(), async (page) => {
    await page.locator('[data-finding^="CPU001"]').first().focus();
    await page.keyboard.press("Enter");
    expect(await page.locator(".detail h2").textContent()).toContain("CPU001");
    await page.keyboard.press("3");
    await page.waitForTimeout(800);
    await page.locator("#heatmap canvas").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    const selection = (await stateOf(page)).get("selection");
    expect(selection).not.toBe(null);
    await page.locator("#flame canvas").focus();
    await page.locator(".flame-words", { hasText: "samples" }).waitFor();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    expect(await page.locator(".crumbs button").count()).toBe(4);
    const outlined = await page.locator("#flame canvas").evaluate((canvas) => getComputedStyle(canvas).outlineStyle);
    expect(outlined).not.toBe("none");
  });
});

everywhere("whatever can be pressed has a name", "", async (page) => {
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, canvas, a")]
      .filter((element) => element.getAttribute("aria-hidden") !== "true")
      .filter(
        (element) => !(element.textContent?.trim() || element.getAttribute("aria-label") || element.closest("label")),
      )
      .map((element) => element.outerHTML),
  );
  expect(nameless).toEqual([]);
});

test.each(["light", "dark"] as const)("a phone shows all of it without scrolling sideways, %s", async (colorScheme) => {
  await on(await open("", lookOf([colorScheme, "phone"])), async (page) => {
    for (const section of ["verdict", "timeline", "heatmap", "flame", "zombies"]) {
      await page.locator(`#${section}`).evaluate((element) => element.scrollIntoView());
      await page.waitForTimeout(400);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), section).toBeLessThanOrEqual(390);
    }
    const cards = page.locator(".chain").first().locator(".card");
    const [first, second] = [await cards.nth(0).boundingBox(), await cards.nth(1).boundingBox()];
    expect(second?.y).toBeGreaterThan((first?.y ?? 0) + (first?.height ?? 0) - 1);
    expect(await page.locator("html").getAttribute("data-theme")).toBe(colorScheme);
    // What a tapped card opens lies below it, not below all of them.
    await cards.nth(0).tap();
    const panel = await page.locator(".detail").boundingBox();
    const next = await cards.nth(1).boundingBox();
    expect(panel?.y).toBeLessThan(next?.y ?? 0);
  });
});

test.each(["light", "dark"] as const)("fingers compare by a button, %s", async (theme) => {
  await on(await open("#by=core&value=0", lookOf([theme, "phone"])), async (page) => {
    const canvas = page.locator("#heatmap canvas");
    await canvas.scrollIntoViewIfNeeded();
    await page.waitForTimeout(600);
    await drag(page, canvas, [0.5, 0.8], [0.6, 0.3]);
    await page.getByRole("button", { name: "Compare" }).tap();
    await drag(page, canvas, [0.2, 0.8], [0.3, 0.3]);
    const state = await stateOf(page);
    expect(state.get("base")).not.toBe(null);
    expect(state.get("selection")).not.toBe(null);
  });
});

test("a packed recording that is dropped has its chain, its heat map and its flame graph", async () => {
  await on(await open(), async (page) => {
    await drop(page, "drill.tar.zst", await readFile(inject("packed")));
    await page.locator(".top", { hasText: "drill.tar.zst" }).waitFor();
    expect((await stateOf(page)).get("source")).not.toBe("main");
    await page.locator(".chain .card").first().waitFor();
    expect(await page.locator(".chain").first().locator(".card").count()).toBe(4);
    await page.locator("#heatmap canvas").scrollIntoViewIfNeeded();
    await page.locator("#heatmap .legend", { hasText: /[1-9]\d* samples in a cell/ }).waitFor();
    await page.getByLabel("Count samples of").selectOption("core");
    await page.getByLabel("Which one").selectOption("0");
    await page.locator("#flame").scrollIntoViewIfNeeded();
    await page.locator(".flame-words", { hasText: "of core 0" }).waitFor();
    expect(percentIn(await shareOf(page, "memory_stat_show|memcg_numa_stat_show"))).toBeGreaterThan(50);
  });
});

everywhere("a file that is dropped is opened", "", async (page) => {
  await drop(page, "stacks.folded", Buffer.from("app;main;work 90\napp;main;rest 10\n"));
  await page.locator("#heatmap .notice", { hasText: "no times" }).waitFor();
  // A profile has stacks alone: nothing is said of what it cannot have.
  const shown = page.locator("nav a:visible");
  expect(await shown.allTextContents()).toEqual(["Heat map", "Flame graph"]);
  expect(await page.locator("#verdict, #timeline, #zombies").allTextContents()).toEqual(["", "", ""]);
  await page.locator("#flame").scrollIntoViewIfNeeded();
  await page.locator(".flame-words", { hasText: "100 samples" }).waitFor();
  expect(percentIn(await shareOf(page, "^work$"))).toBe(90);
  await page.goBack();
  await page.locator(".chain .card").first().waitFor();
});

test("100,000 distinct frames are drawn, searched and walked", async () => {
  const flame = manyFrames();
  expect(flame.names.length).toBeGreaterThan(100_000);
  await on(await open(), async (page) => {
    await page.route("**/flame?*", (route) => route.fulfill({ json: flame }));
    await page.reload();
    await page.locator(".chain .card").first().waitFor();
    await page.locator("#flame").scrollIntoViewIfNeeded();
    await page.locator(".flame-words", { hasText: `${flame.total.toLocaleString("en-US")} samples` }).waitFor();
    expect(percentIn(await shareOf(page, "^f3$"))).toBeCloseTo(10, 0);
    await page.locator("#flame canvas").focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await page.locator(".crumbs button").count()).toBe(4);
    await page.keyboard.press("Backspace");
    expect(await page.locator(".crumbs button").count()).toBe(3);
  });
});

test.each(LOOKS)("what cannot be opened is told, its name once, %s, %s", async (...look) => {
  const stage = await open("", lookOf(look));
  await on({ ...stage, complaints: [] }, async (page) => {
    await page.locator("input[type=file]").setInputFiles({
      name: "photo.png",
      mimeType: "image/png",
      buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]),
    });
    await page.locator(".toast", { hasText: "photo.png:" }).waitFor();
    expect(await page.locator(".toast").textContent()).not.toMatch(/photo\.png.*photo\.png/);
    expect(await page.locator(".chain .card").first().isVisible()).toBe(true);
  });
});

test("a link to what is gone shows what there is, and says so", async () => {
  await on(await open("#source=gone&window=1-2&finding=X"), async (page) => {
    expect(await page.locator(".toast").textContent()).toContain("no longer open");
    expect((await stateOf(page)).get("source")).toBe("main");
  });
});

test("what could not be judged says why, and what to do", async () => {
  await on(await open(), async (page) => {
    await page.route("**/diagnosis", async (route) => {
      const answer = await route.fetch();
      const diagnosis = await answer.json();
      const verdict = { ...diagnosis.verdict, state: "blind", headline: "too little was seen", chain: [], chains: [] };
      await route.fulfill({
        json: { ...diagnosis, verdict, gaps: [{ sensor: "memcg", why: "no root", remedy: "sudo sexton" }] },
      });
    });
    await page.reload();
    await page.locator(".state.blind").waitFor();
    expect(await page.locator(".below .fold[open]").textContent()).toContain("to see it: sudo sexton");
  });
});

test("a question that failed can be asked again", async () => {
  const stage = await open();
  // The browser itself puts a failed request on the console.
  await on({ ...stage, complaints: [] }, async (page) => {
    const problem = { status: 500, title: "broken", detail: "cannot read the records" };
    await page.route("**/diagnosis", (route) => route.fulfill({ status: 500, json: problem }));
    await page.reload();
    await page.locator(".notice.error", { hasText: "cannot read the records" }).waitFor();
    await page.unroute("**/diagnosis");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".chain .card").first().waitFor();
  });
});
