// A real Chromium, a page in it, and everything it complained about.

import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { LOOKS, lookOf, type Size } from "./looks";

export interface Stage {
  page: Page;
  /** Errors on the console, faults of the script, violations of the policy. */
  complaints: string[];
  close(): Promise<void>;
}

let browser: Browser;

export function withBrowser(): void {
  beforeAll(async () => {
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    // Tests run as root in containers, where Chromium's own sandbox does not start.
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  });
  afterAll(() => browser.close());
}

export async function blank(options: BrowserContextOptions = {}): Promise<Stage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  return { page, complaints, close: () => context.close() };
}

/** The page as the server gives it, at what the address says. */
export async function open(hash = "", options: BrowserContextOptions = {}): Promise<Stage> {
  const stage = await blank(options);
  await stage.page.goto(new URL(hash, inject("address")).href);
  await stage.page.locator(".chain .card").first().waitFor();
  return stage;
}

/** Runs a test on a page and then asks whether the page complained. */
export async function on(stage: Stage, test: (page: Page) => Promise<void>): Promise<void> {
  try {
    await test(stage.page);
    expect(stage.complaints).toEqual([]);
  } finally {
    await stage.close();
  }
}

type Act = (page: Page, size: Size) => Promise<void>;

/** A test of the page as the address says, at both sizes and in both themes. */
export function everywhere(name: string, hash: string, act: Act, options: BrowserContextOptions = {}): void {
  test.each(LOOKS)(`${name}, %s, %s`, async (...look) => {
    await on(await open(hash, { ...lookOf(look), ...options }), (page) => act(page, look[1]));
  });
}

export async function drag(
  page: Page,
  canvas: Locator,
  from: [number, number],
  to: [number, number],
  modifier?: "Shift",
): Promise<void> {
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  if (!box) throw new Error("the canvas is not on the page");
  if (modifier) await page.keyboard.down(modifier);
  await page.mouse.move(box.x + box.width * from[0], box.y + box.height * from[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to[0], box.y + box.height * to[1], { steps: 4 });
  await page.mouse.up();
  if (modifier) await page.keyboard.up(modifier);
}

/** What a state in the address is, once it has settled. */
export async function stateOf(page: Page): Promise<URLSearchParams> {
  await page.waitForTimeout(300);
  return new URLSearchParams(new URL(page.url()).hash.slice(1));
}

export function rangeOf(text: string | null): [number, number] {
  const [from, to] = (text ?? "").split("-").map(Number);
  return [from, to];
}

/** The share that a search of the flame graph shows. */
export async function shareOf(page: Page, name: string): Promise<string> {
  await page.locator("#flame-search").fill(name);
  const share = page.locator(".flame .share");
  await share.filter({ hasText: /%|no match/ }).waitFor();
  await page.waitForTimeout(250);
  return (await share.textContent()) ?? "";
}

export const percentIn = (text: string): number => Number(/([\d.]+) %/.exec(text)?.[1] ?? Number.NaN);
