// Measures the page in a real browser: node dev/measure.mjs ADDRESS cold|warm|flame. Prints
// milliseconds by name as JSON. `cargo xtask bench page` runs it several times.

import { chromium } from "playwright-core";
import { manyFrames } from "./many.mjs";

const [address, what] = process.argv.slice(2);
const STEPS = 40;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
try {
  const measure = { cold, warm, flame }[what];
  console.log(JSON.stringify(await measure()));
} finally {
  await browser.close();
}

/** From the address to something to see, and to a page that answers its user. */
async function cold() {
  await page.addInitScript(() => {
    window.busyUntil = 0;
    const note = (list) => {
      for (const task of list.getEntries()) window.busyUntil = task.startTime + task.duration;
    };
    new PerformanceObserver(note).observe({ type: "longtask", buffered: true });
  });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("sexton:lanes").length > 0);
  const seen = await page.evaluate(() => ({
    ...Object.fromEntries(performance.getEntriesByType("paint").map((entry) => [entry.name, entry.startTime])),
    "first lanes": performance.getEntriesByName("sexton:lanes")[0].startTime,
  }));
  await page.waitForTimeout(3000);
  const busyUntil = await page.evaluate(() => window.busyUntil);
  // Usable once there are lanes and nothing keeps the page from answering any more.
  return { ...seen, "time to interactive": Math.max(seen["first lanes"], busyUntil) };
}

/** The time between two frames while the time line is zoomed and panned. */
async function warm() {
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("sexton:lanes").length > 0);
  // Strips of single cores, where there are many, are the most there is to draw.
  const lane = page.locator('[data-lane="cores.0"] canvas');
  await lane.scrollIntoViewIfNeeded();
  await page.waitForTimeout(1000);
  const box = await lane.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const zoom = await frames(async () => {
    await page.keyboard.down("Control");
    for (let i = 0; i < STEPS; i++) await page.mouse.wheel(0, i < STEPS / 2 ? -60 : 40);
    await page.keyboard.up("Control");
  });
  const pan = await frames(async () => {
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2, { steps: STEPS });
    await page.mouse.up();
  });
  await page.waitForTimeout(500);
  const tiles = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .filter((entry) => entry.name.includes("/tiles?"))
      .map((entry) => entry.responseEnd - entry.requestStart),
  );
  return { ...named("zoom", zoom), ...named("pan", pan), "tiles, slowest": Math.max(...tiles) };
}

/** Lengths of frames while something is done. */
async function frames(act) {
  await page.evaluate(() => {
    window.frames_ = [];
    window.isMeasured = true;
    let last = performance.now();
    const next = (now) => {
      window.frames_.push(now - last);
      last = now;
      if (window.isMeasured) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await act();
  return page.evaluate(() => {
    window.isMeasured = false;
    return window.frames_.slice(1);
  });
}

function named(name, times) {
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
  return { [`${name}, median frame`]: at(0.5), [`${name}, slowest frame of 20`]: at(0.95) };
}

/** From a key to the next frame, on a flame graph of 100,000 frames. */
async function flame() {
  const many = manyFrames();
  await page.route("**/flame?*", (route) => route.fulfill({ json: many }));
  await page.goto(address);
  await page.locator("#flame").scrollIntoViewIfNeeded();
  await page.locator(".flame-words", { hasText: `${many.total.toLocaleString("en-US")} samples` }).waitFor();
  await page.locator("#flame canvas").focus();
  const keyed = (keys) =>
    page.evaluate(async (keys) => {
      const began = performance.now();
      for (const key of keys) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      // After the frame that shows it.
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - began;
    }, keys);
  const zoomIn = await keyed(["ArrowDown", "Enter"]);
  const zoomOut = await keyed(["Backspace"]);
  const search = await page.evaluate(async () => {
    const share = document.querySelector(".flame .share");
    const field = document.getElementById("flame-search");
    const said = new Promise((done) =>
      new MutationObserver(done).observe(share, { childList: true, characterData: true, subtree: true }),
    );
    const began = performance.now();
    field.value = "f3[0-9]*$";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await said;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
  });
  return { "zoom in": zoomIn, "zoom out": zoomOut, search };
}
