// What lies over all lanes: the selection, what it is compared with, where the chosen
// finding was seen, and the line under the pointer.

import type { Range } from "../../api/types";
import { h, place } from "../../dom/element";

export class Overlay {
  readonly element = h("div", { class: "overlay", attrs: { "aria-hidden": "true" } });
  #selection = band("selection");
  #base = band("base");
  #cursor = h("div", { class: "cursor", attrs: { hidden: true } });
  #found: HTMLElement[] = [];

  constructor() {
    this.element.append(this.#base, this.#selection, this.#cursor);
  }

  draw(window: Range, selection: Range | null, base: Range | null, found: Range[]): void {
    put(this.#selection, window, selection);
    put(this.#base, window, base);
    for (const mark of this.#found) mark.remove();
    this.#found = found.slice(0, 200).map((range) => {
      const mark = band("found");
      put(mark, window, range);
      return mark;
    });
    this.element.prepend(...this.#found);
  }

  cursor(share: number | null): void {
    this.#cursor.hidden = share === null;
    if (share !== null) place(this.#cursor, { left: `${share * 100}%` });
  }
}

function band(kind: string): HTMLElement {
  return h("div", { class: `band ${kind}`, attrs: { hidden: true } });
}

function put(element: HTMLElement, window: Range, range: Range | null): void {
  const [from, to] = window;
  element.hidden = !range || range[1] < from || range[0] > to;
  if (!range || element.hidden) return;
  const left = Math.max(0, (range[0] - from) / (to - from));
  const right = Math.min(1, (range[1] - from) / (to - from));
  place(element, { left: `${left * 100}%`, width: `${(right - left) * 100}%` });
}
