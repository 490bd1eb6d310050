// What axe finds on a page.

import axe from "axe-core";
import type { Page } from "playwright-core";

export async function violations(page: Page): Promise<string[]> {
  // Evaluated, not added as a script: the page's policy allows none but its own.
  await page.evaluate(axe.source);
  const { found, undecided } = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const { violations, incomplete } = await axe.run(document);
    const contrast = incomplete.filter((rule) => rule.id === "color-contrast");
    return {
      found: violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`)),
      undecided: contrast.flatMap((rule) => rule.nodes.map((node) => node.target.join(" "))),
    };
  });
  return [...found, ...(await tooFaint(page, undecided))];
}

/** What axe leaves undecided because a transparent canvas lies over it, or because it is one
    character: the text's colour against the nearest background that is painted. */
function tooFaint(page: Page, undecided: string[]): Promise<string[]> {
  return page.evaluate((selectors) => {
    const parts = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const light = (colour: string) => {
      const [r, g, b] = parts(colour).map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint: string[] = [];
    for (const selector of selectors) {
      const element = document.querySelector(selector);
      if (!element) continue;
      let behind = "rgb(255, 255, 255)";
      let solid = 1;
      for (let at: Element | null = element; at; at = at.parentElement) {
        const style = getComputedStyle(at);
        solid *= Number(style.opacity);
        const alpha = parts(style.backgroundColor)[3] ?? 1;
        if (alpha === 0) continue;
        behind = style.backgroundColor;
        if (alpha < 1) faint.push(`see-through background: ${selector}`);
        break;
      }
      const [a, b] = [light(getComputedStyle(element).color), light(behind)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5 || solid < 1) faint.push(`contrast ${ratio.toFixed(2)}, opacity ${solid}: ${selector}`);
    }
    return faint;
  }, undecided);
}
