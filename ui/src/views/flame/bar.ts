// The controls of the flame graph, and what its colours mean.

import type { Flame } from "../../api/types";
import { h, replace } from "../../dom/element";
import { settled } from "../../dom/once";
import { css, difference, type Rgb } from "../../draw/ramp";
import type { Context } from "../../shell/context";
import type { FlameTab } from "../../state/address";
import { count, percent } from "../../time/format";
import { LEGEND } from "./colour";
import type { Found } from "./search";

const TABS: [FlameTab, string][] = [
  ["flame", "Graph"],
  ["top", "Functions"],
];

export class FlameBar {
  readonly element = h("div", "controls");
  readonly field: HTMLInputElement;
  #share = h("span", { class: "share", attrs: { "aria-live": "polite" } });
  #turn = h("button", { class: "small", attrs: { type: "button" }, title: "Flames up, or icicles down (i)" });
  #all: HTMLButtonElement;
  #whole: HTMLButtonElement;
  #plain: HTMLButtonElement;
  #legend = h("span", "legend");
  #tabs: HTMLButtonElement[];
  #pprof: HTMLAnchorElement;

  constructor(
    private context: Context,
    zoomOut: () => void,
  ) {
    const put = settled(120, (search: string) => context.store.set({ search }));
    this.field = h("input", {
      attrs: {
        type: "search",
        placeholder: "Search functions ( / )",
        "aria-label": "Search functions, as a regular expression",
        id: "flame-search",
      },
      on: {
        input: () => put(this.field.value),
        // Out of the field, so that keys mean what they mean elsewhere; what was found stays.
        keydown: (event) => event.key === "Escape" && this.#leave(event),
      },
    });
    const button = (words: string, title: string, press: () => void) =>
      h("button", { class: "small", title, attrs: { type: "button" }, on: { click: press } }, words);
    this.#turn.addEventListener("click", () => context.store.set({ upright: !context.state.upright }));
    this.#all = button("Zoom out", "Show all frames again", zoomOut);
    this.#whole = button("Whole window", "No selection: all of the window (Esc)", () =>
      context.store.set({ selection: null, base: null }, "step"),
    );
    this.#plain = button("End comparison", "Show the selection alone (x)", () =>
      context.store.set({ base: null }, "step"),
    );
    this.#plain.id = "end-comparison";
    this.#tabs = TABS.map(([tab, words]) =>
      h(
        "button",
        { class: "small", attrs: { type: "button", "data-tab": tab }, on: { click: () => context.store.set({ tab }, "step") } },
        words,
      ),
    );
    const tabs = h("span", { class: "toggle", attrs: { role: "group", "aria-label": "Show as" } }, ...this.#tabs);
    this.#pprof = h("a", { class: "button small", title: "These samples as pprof, for other viewers" }, "pprof");
    replace(this.element, this.#pprof, tabs, this.field, this.#share, this.#turn, this.#all, this.#whole, this.#plain, this.#legend);
  }

  #leave(event: KeyboardEvent): void {
    event.preventDefault();
    this.field.blur();
  }

  update(flame: Flame | null, found: Found | null): void {
    const { state, theme } = this.context;
    if (document.activeElement !== this.field) this.field.value = state.search;
    for (const tab of this.#tabs) tab.setAttribute("aria-pressed", String(tab.dataset.tab === state.tab));
    this.#turn.hidden = this.#all.hidden = this.#legend.hidden = state.tab !== "flame";
    this.#turn.textContent = state.upright ? "As icicles" : "As flames";
    this.#whole.hidden = !state.selection;
    this.#plain.hidden = !state.base;
    this.#share.textContent = found ? foundWords(found) : "";
    this.#offer();
    replace(this.#legend, ...legend(flame, theme.name));
  }

  /** A file for other viewers, where there is a server to write it. */
  #offer(): void {
    const { client, source, state } = this.context;
    this.#pprof.hidden = !client.served || !source;
    if (this.#pprof.hidden) return;
    const facet = { by: state.by, value: state.value };
    const range = source.has_times ? this.context.looked : null;
    this.#pprof.href = client.pprofAddress(source.id, { range, base: null, facet });
    this.#pprof.download = `sexton-${source.name}.pb.gz`;
  }
}

function foundWords(found: Found): string {
  if (found.nodes === 0) return "no match";
  const before = found.before === null ? "" : `, before ${percent(found.before)}`;
  return `${percent(found.share)} of samples${before}, ${count(found.nodes)} frames`;
}

function legend(flame: Flame | null, theme: "dark" | "light"): HTMLElement[] {
  if (flame?.nodes.base) {
    return [
      key(difference(theme, 1), "more"),
      key(difference(theme, 0), "as before"),
      key(difference(theme, -1), "less"),
    ];
  }
  return [key(LEGEND.kernel[theme], "kernel"), key(LEGEND.user[theme], "user"), key(LEGEND.other[theme], "program")];
}

function key(colour: Rgb, words: string): HTMLElement {
  const swatch = h("span", "swatch");
  swatch.style.setProperty("background", css(colour));
  return h("span", "key", swatch, words);
}
