// The functions of the flame graph as a table; one that is chosen stands between its callers
// and what it calls.

import type { Flame } from "../../api/types";
import { h, place, replace } from "../../dom/element";
import type { Context } from "../../shell/context";
import { count, percent } from "../../time/format";
import { pattern } from "./search";
import { type Cost, functions, sandwich } from "./top";

const MOST_ROWS = 100;
const MOST_NEIGHBOURS = 12;

export class TopTable {
  readonly element = h("div", { class: "top-functions", attrs: { hidden: true } });

  constructor(private context: Context) {}

  draw(flame: Flame): void {
    const { func, search } = this.context.state;
    const all = functions(flame);
    const wanted = search === "" ? all : all.filter((cost) => pattern(search).test(cost.name));
    const chosen = all.find((cost) => cost.name === func);
    replace(
      this.element,
      chosen && this.#between(flame, chosen),
      this.#table(flame, wanted.slice(0, MOST_ROWS), ["Function", "Self", "Total"]),
      wanted.length > MOST_ROWS && h("p", "quiet", `${count(wanted.length - MOST_ROWS)} more take less; search for them.`),
    );
  }

  #between(flame: Flame, chosen: Cost): HTMLElement {
    const { callers, callees } = sandwich(flame, chosen.name);
    const list = (heading: string, costs: Cost[]) =>
      h(
        "div",
        {},
        h("h3", {}, heading),
        costs.length > 0
          ? this.#table(flame, costs.slice(0, MOST_NEIGHBOURS), ["Function", "Self", "Total"])
          : h("p", "quiet", "none"),
      );
    return h(
      "div",
      { class: "sandwich", attrs: { role: "region", "aria-label": `Callers and callees of ${chosen.name}` } },
      h(
        "p",
        {},
        h("strong", {}, chosen.name),
        ` ${share(flame, chosen.self)} by itself, ${share(flame, chosen.total)} with what it calls `,
        h(
          "button",
          { class: "small", attrs: { type: "button" }, on: { click: () => this.#choose("") } },
          "Close",
        ),
      ),
      h("div", "neighbours", list("Callers", callers), list("Callees", callees)),
    );
  }

  #choose(func: string): void {
    this.context.store.set({ func }, "step");
  }

  #table(flame: Flame, costs: Cost[], heads: string[]): HTMLElement {
    const rows = costs.map((cost) =>
      h(
        "tr",
        {},
        h(
          "td",
          { attrs: { "data-head": heads[0] } },
          h(
            "button",
            {
              class: "link",
              title: "Show its callers and callees",
              attrs: { type: "button" },
              on: { click: () => this.#choose(cost.name) },
            },
            cost.name,
          ),
        ),
        h("td", { attrs: { "data-head": heads[1] } }, amount(flame, cost.self)),
        h("td", { attrs: { "data-head": heads[2] } }, amount(flame, cost.total)),
      ),
    );
    const head = h("tr", {}, ...heads.map((words) => h("th", { attrs: { scope: "col" } }, words)));
    return h("div", "wide", h("table", "records", h("thead", {}, head), h("tbody", {}, ...rows)));
  }
}

function share(flame: Flame, value: number): string {
  return percent(flame.total > 0 ? value / flame.total : 0);
}

function amount(flame: Flame, value: number): HTMLElement {
  const shape = h("span", { class: "amount", attrs: { "aria-hidden": "true" } });
  place(shape, { "--share": String(flame.total > 0 ? value / flame.total : 0) });
  return h("span", "amount-cell", h("span", "number", share(flame, value)), shape);
}
