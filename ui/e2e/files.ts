// Files that are dropped on the page.

import type { Page } from "playwright-core";
import { expect } from "vitest";

/** Drops a file on the page, as a user does who has dragged it there. */
export async function drop(
  page: Page,
  name: string,
  content: Buffer,
  over: () => Promise<void> = async () => {},
): Promise<void> {
  const file = { name, base64: content.toString("base64") };
  const dropped = await page.evaluateHandle(({ name, base64 }) => {
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
    return transfer;
  }, file);
  await page.dispatchEvent("body", "dragover", { dataTransfer: dropped });
  expect(await page.locator(".veil").isVisible()).toBe(true);
  await over();
  await page.dispatchEvent("body", "drop", { dataTransfer: dropped });
}
