// What the heat map counts, and how it is cut.

import type { HeatBy, HeatMap, HeatView } from "../../api/types";
import { h, replace } from "../../dom/element";
import { settled } from "../../dom/once";
import type { Context } from "../../shell/context";
import { count } from "../../time/format";

const VIEWS: [HeatView, string, string][] = [
  ["offset", "Sub-second", "Each column is a second, from bottom to top"],
  ["long", "Long", "Each column is a part of the window, cut into rows"],
  ["threads", "Threads", "A row for each thread, the busiest on top; a click on its name keeps to it"],
];
const BYS: [HeatBy, string][] = [
  ["all", "everything"],
  ["core", "one core"],
  ["process", "one process"],
  ["thread", "one thread"],
  ["unit", "one unit"],
  ["container", "one container"],
  ["pod", "one pod"],
  ["function", "one function"],
];

export class Controls {
  readonly element = h("div", "controls");
  #value = h("span", "value");
  #view: HTMLButtonElement[];
  #by: HTMLSelectElement;
  #known = "";
  #offers = h("datalist", { attrs: { id: "functions" } });
  #field: HTMLInputElement;

  constructor(private context: Context) {
    this.#view = VIEWS.map(([view, words, title]) =>
      h(
        "button",
        {
          class: "small",
          title,
          attrs: { type: "button", "data-view": view },
          on: { click: () => context.store.set({ view }, "step") },
        },
        words,
      ),
    );
    this.#by = h(
      "select",
      {
        attrs: { "aria-label": "Count samples of" },
        on: { change: () => context.store.set({ by: this.#by.value as HeatBy, value: "" }, "step") },
      },
      ...BYS.map(([by, words]) => h("option", { attrs: { value: by } }, words)),
    );
    const put = settled(250, (value: string) => context.store.set({ value }));
    this.#field = h("input", {
      attrs: {
        type: "search",
        list: "functions",
        placeholder: "regular expression",
        "aria-label": "Function, as a regular expression",
      },
      on: { input: () => put(this.#field.value) },
    });
    const group = h(
      "span",
      { class: "toggle", attrs: { role: "group", "aria-label": "How time is cut" } },
      ...this.#view,
    );
    replace(this.element, group, h("label", {}, "samples of ", this.#by), this.#value);
  }

  /** Follows the state, and the parts that the last answer named. */
  update(map: HeatMap | null): void {
    const { view, by, value } = this.context.state;
    for (const button of this.#view) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    this.#by.value = by;
    const known = `${by} ${value} ${map === null} ${map?.parts.map((part) => part.value + part.samples).join()}`;
    if (known === this.#known) return;
    // A list that is open would close under the pointer.
    const list = this.#value.querySelector("select");
    const isOpen = list !== null && list === document.activeElement && list.options.length > 1;
    if (isOpen && this.#known.startsWith(`${by} ${value} `)) return;
    this.#known = known;
    if (by === "all") replace(this.#value);
    else if (by === "function") this.#functions(map, value);
    else replace(this.#value, this.#choice(map, value));
  }

  #choice(map: HeatMap | null, value: string): HTMLElement {
    const parts = map?.parts ?? [];
    const missing = value !== "" && !parts.some((part) => part.value === value);
    const select = h(
      "select",
      {
        attrs: { "aria-label": "Which one" },
        on: { change: () => this.context.store.set({ value: select.value }, "step") },
      },
      h("option", { attrs: { value: "" } }, map && parts.length === 0 ? "(none in this window)" : "(all of them)"),
      missing && h("option", { attrs: { value } }, value),
      ...parts.map((part) => h("option", { attrs: { value: part.value } }, `${part.label} (${count(part.samples)})`)),
    );
    select.value = value;
    return select;
  }

  /** The field stays while one types; only what it offers changes. */
  #functions(map: HeatMap | null, value: string): void {
    const offers = (map?.parts ?? []).map((part) =>
      h("option", { attrs: { value: part.value } }, `${part.label} (${count(part.samples)})`),
    );
    replace(this.#offers, ...offers);
    if (document.activeElement !== this.#field) this.#field.value = value;
    if (!this.#field.isConnected) replace(this.#value, this.#field, this.#offers);
  }
}
