// The keys, on `?`. A dialog of the browser: it takes the focus and gives it back.

import { h } from "../dom/element";

const KEYS: [string, string][] = [
  ["← →, a d", "earlier, later"],
  ["+ −, w s", "zoom in, zoom out"],
  ["0", "all of it"],
  ["1 to 5", "verdict, time line, heat map, flame graph, zombies"],
  ["/", "search functions"],
  ["i", "flames or icicles"],
  ["x", "end the comparison"],
  ["Esc", "close the evidence, no selection"],
  ["t", "light or dark"],
  ["e", "save as one file"],
  ["?", "this help"],
];

const POINTER: [string, string][] = [
  [
    "Time line",
    "drag to pan; Ctrl+wheel to zoom, or the wheel over the axis; Shift+wheel to pan; Shift+drag, or a drag along the axis, to select; a click on an event selects the second before it",
  ],
  [
    "Heat map",
    "drag to select what the flame graph shows; Shift+drag another range, or press Compare and drag, to see the difference. Threads: a click on a name keeps to that thread. With keys: arrows move, Shift+arrows select, Enter selects the column, b takes the selection as what to compare with",
  ],
  [
    "Flame graph",
    "click to zoom; arrows move from frame to frame, Enter zooms, Backspace zooms out, c copies the stack",
  ],
  ["Anywhere", "drop a perf.data, perf script text, folded stacks or a packed bundle (when served)"],
];

export class Help {
  readonly element: HTMLDialogElement;

  constructor() {
    const rows = (pairs: [string, string][], tag: "kbd" | "strong") =>
      pairs.flatMap(([key, words]) => [h("dt", {}, h(tag, {}, key)), h("dd", {}, words)]);
    const close = h(
      "button",
      { class: "small", attrs: { type: "button" }, on: { click: () => this.element.close() } },
      "Close",
    );
    this.element = h(
      "dialog",
      { class: "help", attrs: { "aria-label": "Keys and help" } },
      h("h2", {}, "Keys"),
      h("dl", {}, ...rows(KEYS, "kbd")),
      h("h2", {}, "Mouse and touch"),
      h("dl", {}, ...rows(POINTER, "strong")),
      h(
        "p",
        "quiet",
        "The address holds the current view: copy it to share the view. Hatched areas are blind spots, never zero.",
      ),
      close,
    );
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  toggle(): void {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
