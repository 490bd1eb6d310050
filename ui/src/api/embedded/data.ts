// An exported page carries its data; such a page asks nobody.

import type { Exported } from "../types";

const ELEMENT = "sexton-data";

export function embeddedData(page: Document): Exported | null {
  const element = page.getElementById(ELEMENT);
  if (!element?.textContent?.trim()) return null;
  const data = JSON.parse(element.textContent) as Exported;
  if (data.schema !== "sexton.export/1") {
    throw new Error(`this page cannot read ${String(data.schema)}`);
  }
  return data;
}
