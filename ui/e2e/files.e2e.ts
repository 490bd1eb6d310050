// Profiles, and the files that commands write, in a browser.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { ramp } from "../src/draw/ramp";
import { violations } from "./axe";
import { drop } from "./files";
import { LOOKS, lookOf } from "./looks";
import { output, ROOT } from "./server";
import { blank, everywhere, on, percentIn, withBrowser } from "./stage";

withBrowser();

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sexton-files-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

everywhere("a perf.data alone starts at its heat map, and has no empty parts", "", async (page) => {
  const file = `${ROOT}fixtures/6.18-debian12/perf/fp.data`;
  await drop(page, "fp.data", readFileSync(file));
  await page.locator("main.profile").waitFor();
  await page.locator("#heatmap .legend", { hasText: /[1-9]\d* samples in a cell/ }).waitFor();
  expect(await page.locator("#heatmap canvas").isVisible()).toBe(true);
  const box = await page.locator("#heatmap canvas").boundingBox();
  expect(box?.y).toBeGreaterThan(0);
  expect((box?.y ?? 0) + 100).toBeLessThan(page.viewportSize()?.height ?? 0);
  expect(await page.locator("nav a:visible").allTextContents()).toEqual(["Heat map", "Flame graph"]);
  // As many samples as the command finds, and its first function.
  const [head, , first] = output("profile", "top", file).split("\n");
  await page.locator("#flame").scrollIntoViewIfNeeded();
  const samples = /^([\d,]+) samples/.exec(head)?.[1] ?? "none";
  await page.locator(".flame-words", { hasText: `${samples} samples` }).waitFor();
  // The heat map is of the same samples, though the file has page faults, too.
  expect(await page.locator("#heatmap canvas").getAttribute("aria-label")).toContain(`, ${samples} samples.`);
  await page.getByRole("button", { name: "Functions" }).click();
  const cells = await page.locator(".top-functions tbody tr").first().locator("td").allTextContents();
  const [, self] = /^\s*([\d.]+)%/.exec(first) ?? [];
  expect(Math.abs(percentIn(cells[1]) - Number(self))).toBeLessThan(1);
});

test.each(LOOKS)("the heat map that a command writes has axes, a legend and the page's colours, %s, %s", async (...look) => {
  const file = join(folder, `${look.join("-")}.html`);
  output("profile", "heatmap", await drill(), "-o", file);
  await on(await blank(lookOf(look)), async (page) => {
    await page.goto(pathToFileURL(file).href);
    expect(await page.locator("body").textContent()).toMatch(/1\s*\d+ samples in a cell/);
    // Words stand left of the cells and below them.
    const written = await page.locator("canvas").first().evaluate((element) => {
      const canvas = element as HTMLCanvasElement;
      const inked = (x: number, y: number, width: number, height: number) => {
        const { data } = canvas.getContext("2d")!.getImageData(x, y, width, height);
        return data.some((part, i) => i % 4 === 3 && part > 0);
      };
      return [inked(0, 0, 40, canvas.height), inked(60, canvas.height - 14, canvas.width - 60, 14)];
    });
    expect(written).toEqual([true, true]);
    const colours = /const ramp = (\[\[.*?\]\]);/.exec(await page.content())?.[1] ?? "[]";
    const apart = JSON.parse(colours).flatMap((colour: number[], i: number) =>
      colour.map((part, channel) => Math.abs(part - ramp("light", i / 255)[channel])),
    );
    // Both reckon 256 colours between the same stops; they round differently.
    expect(apart.length).toBe(3 * 256);
    expect(Math.max(...apart)).toBeLessThanOrEqual(1);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      page.viewportSize()?.width ?? 0,
    );
    expect(await violations(page)).toEqual([]);
  });
});

test.each(LOOKS)("the report as HTML has a title of few lines, %s, %s", async (...look) => {
  const file = join(folder, `report-${look.join("-")}.html`);
  writeFileSync(file, output("diagnose", await drill(), "--format", "html"));
  await on(await blank(lookOf(look)), async (page) => {
    await page.goto(pathToFileURL(file).href);
    const lines = await page.locator("h1").evaluate((title) => {
      const range = document.createRange();
      range.selectNodeContents(title);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.bottom / 8))).size;
    });
    expect(lines).toBeLessThanOrEqual(look[1] === "desk" ? 3 : 6);
    expect(await page.title()).not.toContain("\n");
    expect(await violations(page)).toEqual([]);
  });
});

let unpacked: string | undefined;

async function drill(): Promise<string> {
  if (!unpacked) {
    unpacked = join(folder, "drill");
    output("bundle", "unpack", inject("packed"), "-o", unpacked);
  }
  return unpacked;
}
