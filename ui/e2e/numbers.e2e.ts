// What the page says of a recording is what the report says of it: each count, unit and window.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violations } from "./axe";
import { LOOKS, lookOf } from "./looks";
import { output, ROOT, serve } from "./server";
import { blank, on, type Stage, withBrowser } from "./stage";

withBrowser();

interface Finding {
  id: string;
  code: string;
  figure: string;
  confidence: number;
  evidence: { text: string }[];
}

interface Report {
  verdict: { state: string; headline: string; chains: string[][] };
  findings: Finding[];
  gaps: { text: string }[];
  not_judged: unknown[];
  separations: unknown[];
  explanations: unknown[];
}

/** Kernels, hierarchies and troubles of every sort, a healthy node, and long names. */
const FIXTURES = [
  "6.18-debian12/founding-outer-loop",
  "6.18-debian12/busy-healthy",
  "6.12-debian12/lab-kube-shape-v2",
  "6.1-debian12/lab-containerd-loop-v2",
  "5.10-debian12/lab-two-leakers-v1",
  "synthetic/5.4-numa-walk",
  "6.18-debian12/reset-line",
  "7.2-debian12/lab-founding-outer-v2",
];

/** Blanks that keep a number with its unit, and places where a long name may break. */
const plain = (text: string | null) => (text ?? "").replace(/[\u00a0\s]+/g, " ").trim();

async function textOf(page: Page, selector: string): Promise<string[]> {
  return (await page.locator(selector).allTextContents()).map(plain);
}

async function opened(address: string, stage: Stage): Promise<void> {
  await stage.page.goto(address);
  await stage.page.locator(".state").waitFor();
  await stage.page.locator("#timeline .lane").first().waitFor();
}

async function saysAsReport(page: Page, report: Report): Promise<void> {
  const { verdict } = report;
  expect(plain(await page.locator(".sentence h1").textContent())).toBe(plain(verdict.headline));
  expect(await page.locator(".state").getAttribute("class")).toContain(verdict.state);
  const found = (id: string) => report.findings.find((finding) => finding.id === id) as Finding;
  const ids = verdict.chains.flat();
  const cards = page.locator(".card");
  expect(await cards.count()).toBe(ids.length);
  for (const [i, id] of ids.entries()) {
    const card = cards.nth(i);
    expect(await card.locator(".code").textContent()).toBe(found(id).code);
    expect(plain(await card.locator(".figure").textContent())).toBe(plain(found(id).figure));
    expect(plain(await card.locator(".confidence").textContent())).toContain(`${Math.round(found(id).confidence * 100)} %`);
  }
  const folds = await textOf(page, ".below > details > summary");
  const numbered: [string, number][] = [
    ["Other causal chains", verdict.chains.length - 1],
    ["Ruled out", report.explanations.length],
    ["Considered, but not linked", report.separations.length],
    ["Blind spots", report.gaps.length + report.not_judged.length],
  ];
  for (const [words, n] of numbered) {
    expect(folds.filter((fold) => fold.startsWith(words))).toEqual(n > 0 ? [`${words} (${n})`] : []);
  }
  const blind = await textOf(page, ".below > details:has(summary:text('Blind spots')) li");
  expect(new Set(blind).size).toBe(blind.length);
}

test.each(FIXTURES.map((name, i) => [name, ...LOOKS[i % LOOKS.length]] as const))(
  "the page of %s says what its report says, %s, %s",
  async (name, theme, size) => {
    const bundle = `${ROOT}fixtures/${name}`;
    const report: Report = JSON.parse(output("diagnose", bundle, "--format", "json"));
    const server = await serve("serve", bundle);
    const stage = await blank(lookOf([theme, size]));
    try {
      await on(stage, async (page) => {
        await opened(server.address, stage);
        await saysAsReport(page, report);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(width).toBeLessThanOrEqual(page.viewportSize()?.width ?? 0);
        // Unfolded, names as long as they come are on the page.
        await page.locator("details").evaluateAll((all) => {
          for (const fold of all) (fold as HTMLDetailsElement).open = true;
        });
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
        expect(await violations(page)).toEqual([]);
      });
    } finally {
      await server.stop();
    }
  },
);

describe("of the drill", () => {
  let folder: string;
  let bundle: string;
  let server: Awaited<ReturnType<typeof serve>>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sexton-numbers-"));
    bundle = join(folder, "drill");
    execFileSync("mkdir", [bundle]);
    execFileSync("tar", ["-xzf", `${ROOT}fixtures/6.18-debian12/drill/recording.tar.gz`, "-C", bundle]);
    server = await serve("serve", bundle);
  });

  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const ask = async (path: string) => (await fetch(new URL(`api/v1/sources/main/${path}`, server.address))).json();

  test.each(LOOKS)("cards, figures and the length of the watch are those of the text report, %s, %s", async (...look) => {
    const text = plain(output("diagnose", bundle));
    const stage = await blank(lookOf(look));
    await on(stage, async (page) => {
      await opened(server.address, stage);
      for (const figure of await textOf(page, ".chain:first-of-type .card .figure")) expect(text).toContain(figure);
      expect(text).toContain(plain(await page.locator(".sentence h1").textContent()));
      expect(text).toContain(plain(await page.locator(".next-step code").textContent()));
      const watched = /watched (\d+) ?s/.exec(text)?.[1];
      expect(watched).toBeDefined();
      expect(await page.locator(".top .about").first().textContent()).toContain(`${watched} s`);
    });
  });

  test.each(LOOKS)("a lane counts what has a mark in its window, as the finding does, %s, %s", async (...look) => {
    const report: Report = JSON.parse(output("diagnose", bundle, "--format", "json"));
    const stage = await blank(lookOf(look));
    await on(stage, async (page) => {
      await opened(server.address, stage);
      const { lanes, from, to } = await ask("lanes");
      const number = (id: string) => page.locator(`[data-lane="${id}"] .most`);
      for (const lane of lanes.filter((lane: { kind: string; max: number }) => lane.kind === "events" && lane.max > 0)) {
        await page.locator(`[data-lane="${lane.id}"]`).scrollIntoViewIfNeeded();
        expect(await number(lane.id).textContent()).toBe(lane.max.toLocaleString("en-US"));
        const { tiles } = await ask(`tiles?lane=${lane.id}&from=${from}&to=${to + 1}`);
        const told = tiles[0].values.reduce((sum: number, value: number | null) => sum + (value ?? 0), 0);
        expect(told, lane.id).toBe(lane.max);
      }
      // Each delayed poll once, as NET001 counts them.
      const delayed = report.findings.find((finding) => finding.code === "NET001")?.evidence[0].text ?? "";
      const times = /(\d+) times/.exec(delayed)?.[1];
      expect(await number("network.starved").textContent()).toBe(times);
      // In a window, how many of them lie there.
      const window = [from + 10_000_000, from + 15_000_000];
      const { tiles } = await ask(`tiles?lane=network.starved&from=${from}&to=${to + 1}`);
      const inside = tiles[0].events.filter(({ at }: { at: number }) => at >= window[0] && at <= window[1]);
      expect(inside.length).toBeGreaterThan(0);
      await page.goto(new URL(`#window=${window.join("-")}`, server.address).href);
      await page.locator('[data-lane="network.starved"]').scrollIntoViewIfNeeded();
      await page.waitForFunction(
        (words) => document.querySelector('[data-lane="network.starved"] .most')?.textContent === words,
        `${inside.length} of ${times}`,
      );
      // A counter is a rate, and says so.
      expect(await number("units.born").textContent()).toMatch(/^max [\d.,]+\/s$/);
    });
  });

  test.each(LOOKS)("zombies: tiles, tables, the time line and the finding agree, %s, %s", async (...look) => {
    const report: Report = JSON.parse(output("diagnose", bundle, "--format", "json"));
    const evidence = report.findings.flatMap((finding) => finding.evidence.map(({ text }) => text)).join("\n");
    const stage = await blank(lookOf(look));
    await on(stage, async (page) => {
      await opened(server.address, stage);
      await page.locator("#zombies").scrollIntoViewIfNeeded();
      await page.locator("#zombies .records").first().waitFor();
      const [dying, live, , held, read] = await textOf(page, "#zombies .number-box strong");
      expect(evidence.replace(/(\d),(?=\d)/g, "$1")).toContain(`${live} live, ${dying.replace(/,/g, "")} dying`);
      await page.locator('[data-lane="memcg.dying"]').scrollIntoViewIfNeeded();
      expect(await page.locator('[data-lane="memcg.dying"] .most').textContent()).toBe(`max ${dying}`);
      expect(await page.locator('[data-lane="memcg.bytes"] .most').textContent()).toBe(`max ${held}`);
      await page.locator("#zombies details summary").first().click();
      const rows = page.locator("#zombies details .records tbody tr");
      expect(plain(await rows.last().locator("td").nth(2).textContent())).toBe(read);
      // One file pins pages, and pages are not files.
      expect(await page.locator("#zombies .pins").first().textContent()).toMatch(/^pages: [\d,]+ of files/);
      const growth = /growing by (\+[\d,]+\/h)/.exec(evidence)?.[1] ?? "";
      expect(await page.locator("#zombies figcaption").textContent()).toContain(`${growth} at this rate`);
    });
  });

  test.each(LOOKS)("the functions are those of profile top, %s, %s", async (...look) => {
    const [head, , ...lines] = output("profile", "top", bundle).split("\n");
    const samples = /^([\d,]+) samples/.exec(head)?.[1];
    const first = /^\s*([\d.]+)%\s+([\d.]+)%.*?([\d,]+)\s+(\S+) \(/.exec(lines[0]);
    const stage = await blank(lookOf(look));
    await on(stage, async (page) => {
      await opened(server.address, stage);
      await page.goto(new URL("#tab=top", server.address).href);
      await page.locator("#flame").scrollIntoViewIfNeeded();
      await page.locator(".flame-words", { hasText: `${samples} samples` }).waitFor();
      const cells = await page.locator(".top-functions tbody tr").first().locator("td, th").allTextContents();
      const row = plain(cells.join(" "));
      expect(first).not.toBeNull();
      expect(row).toContain(first?.[4]);
      expect(row).toContain(`${Math.round(Number(first?.[1]))} %`);
    });
  });
});
