// Causes over time: on how many nodes each finding was open, hour by hour.

import { isAborted } from "../api/client";
import { h, place, replace } from "../dom/element";
import { errorNotice } from "../dom/notice";
import { Latest } from "../dom/once";
import { count, dated, percent } from "../time/format";
import * as api from "./api";
import type { Context } from "./page";

const FEW = 15;

export class CausesView {
  readonly element = h("section", { class: "causes", attrs: { id: "causes", "aria-label": "Causes" } });
  #latest = new Latest();

  constructor(private context: Context) {}

  async load(): Promise<void> {
    try {
      this.#show(await api.causes(this.context.state, this.#latest.next()));
    } catch (error) {
      if (isAborted(error)) return;
      replace(this.element, errorNotice(error, () => void this.load()));
    }
  }

  #show(answer: api.Causes): void {
    const { fleet } = this.context;
    const from = dated(fleet.from, "wall").slice(0, 16);
    const to = dated(fleet.from + fleet.step * fleet.columns_of_time, "wall").slice(0, 16);
    const rows = answer.causes.slice(0, FEW).map((cause) => this.#row(cause, answer));
    const left = answer.causes.length - rows.length;
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "Causes over time"), h("span", "window-words", `${from} to ${to} UTC, nodes with the finding open; hatched: no node reported`)),
      rows.length === 0
        ? h("p", {}, answer.nodes === 0 ? "No node is like that." : "None of these nodes had a finding.")
        : h(
            "table",
            "records",
            h("caption", "off-screen", "Findings, and on how many nodes each was open over time"),
            h("thead", {}, h("tr", {}, ...["Finding", "Nodes", "As root cause", "Over time"].map((words) => h("th", { attrs: { scope: "col" } }, words)))),
            h("tbody", {}, ...rows),
          ),
      left > 0 && h("p", "quiet", `${count(left)} rarer findings are not shown.`),
    );
  }

  #row(cause: api.Cause, answer: api.Causes): HTMLElement {
    const { store } = this.context;
    const only = () => store.set({ code: cause.code, rows: null }, "step");
    const share = cause.nodes / Math.max(1, answer.nodes);
    const bar = h("span", "amount");
    place(bar, { "--share": String(share) });
    const cell = (head: string, ...children: (Node | string | null)[]) => h("td", { attrs: { "data-head": head } }, ...children);
    return h(
      "tr",
      {},
      cell("Finding", h("button", { class: "link", title: "Show only nodes with this finding", attrs: { type: "button" }, on: { click: only } }, cause.code), cause.title && ` ${cause.title}`),
      cell("Nodes", h("span", "amount-cell", `${count(cause.nodes)} (${percent(share)})`, bar)),
      cell("As root cause", count(cause.as_root)),
      cell("Over time", this.#bars(cause, answer)),
    );
  }

  #bars(cause: api.Cause, answer: api.Causes): HTMLElement {
    const most = Math.max(1, ...cause.by_column);
    const last = cause.by_column.findLast((_, at) => answer.seen[at] > 0) ?? 0;
    const bars = cause.by_column.map((nodes, at) => {
      const bar = h("i", answer.seen[at] === 0 ? "unseen" : "");
      if (answer.seen[at] > 0) place(bar, { height: `${(100 * nodes) / most}%` });
      return bar;
    });
    const words = `most at once ${count(most)} nodes, ${count(last)} in the last hour reported`;
    return h("span", {}, h("span", { class: "bars", attrs: { role: "img", "aria-label": words } }, ...bars), h("span", "scale-words", words));
  }
}
