// Which nodes are shown, and in which order.

import { h, replace } from "../dom/element";
import { keepingFocus } from "../dom/focus";
import { settled } from "../dom/once";
import { count } from "../time/format";
import type { Context } from "./page";
import { conditionOf, type Sort, START, type State, withCondition } from "./state";
import { SEVERITIES } from "./words";

/** A column of more values is chosen from by SQL, not from a list. */
const MOST_VALUES = 100;
const TYPING_MS = 250;

export class Filters {
  readonly element = h("div", { class: "filters controls", attrs: { role: "group", "aria-label": "Filters" } });
  #name = h("input", { attrs: { type: "search", "data-key": "name", placeholder: "part of a name", size: 14 } });

  constructor(private context: Context) {
    const typed = settled(TYPING_MS, () => this.#set({ name: this.#name.value.trim() }));
    this.#name.addEventListener("input", typed);
  }

  /** Of another selection of nodes other rows are shown. */
  #set(patch: Partial<State>): void {
    this.context.store.set({ ...patch, rows: null }, "step");
  }

  update(): void {
    const { fleet, state } = this.context;
    if (document.activeElement !== this.#name) this.#name.value = state.name;
    const offered = fleet.columns.filter(({ distinct }) => distinct > 1);
    const columns = offered.filter(({ distinct }) => distinct <= MOST_VALUES);
    const every: [string, string][] = [["", "any"]];
    const draw = () => replace(
      this.element,
      choice("Group by", state.by, [["", "nothing"], ...offered.map(({ name }): [string, string] => [name, name])], (by) => this.#set({ by })),
      choice("Sort by", state.sort, [["severity", "severity"], ["since", "bad since"], ["name", "name"]], (sort) => this.#set({ sort: sort as Sort })),
      h("label", {}, "Name", this.#name),
      choice("Severity", state.severity, [...every, ...[1, 2, 3, 4].map((rank): [string, string] => [String(rank), rank === 4 ? SEVERITIES[4] : `${SEVERITIES[rank]} or worse`])], (severity) => this.#set({ severity })),
      choice("Finding", state.code, [...every, ...[...fleet.codes].sort().map((code): [string, string] => [code, code])], (code) => this.#set({ code })),
      ...columns.map(({ name, values }) =>
        choice(
          name,
          conditionOf(state.where, name),
          [...every, ...values.map((value): [string, string] => [value.value, `${value.value} (${count(value.nodes)})`])],
          (value) => this.#set({ where: withCondition(state.where, name, value) }),
        ),
      ),
      h("button", { class: "small", attrs: { type: "button", "data-key": "clear" }, on: { click: () => this.#clear() } }, "Clear"),
    );
    keepingFocus(this.element, draw);
  }

  #clear(): void {
    const { by, sort, where, name, code, severity } = START;
    this.#name.value = "";
    this.#set({ by, sort, where, name, code, severity });
  }
}

function choice(words: string, chosen: string, options: [string, string][], choose: (value: string) => void): HTMLElement {
  const select = h(
    "select",
    { attrs: { "data-key": words }, on: { change: () => choose(select.value) } },
    ...options.map(([value, words]) => h("option", { attrs: { value } }, words)),
  );
  // A link may name what no report has: it is shown, so that it can be taken away.
  if (!options.some(([value]) => value === chosen)) select.append(h("option", { attrs: { value: chosen } }, chosen));
  select.value = chosen;
  return h("label", {}, words, select);
}
