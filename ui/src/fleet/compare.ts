// What bad nodes have and good ones do not.

import { isAborted } from "../api/client";
import { h, place, replace } from "../dom/element";
import { errorNotice, notice } from "../dom/notice";
import { Latest } from "../dom/once";
import { count, percent } from "../time/format";
import * as api from "./api";
import type { Context } from "./page";

const MOST_ROWS = 60;
const HEADS = ["Difference", "Of bad nodes", "Of good nodes", "Odds ratio or shift (95 %)", "False discovery (q)"];

export class CompareView {
  readonly element = h("section", { class: "compare", attrs: { id: "compare", "aria-label": "Compare" } });
  #latest = new Latest();
  #bad = h("input", { attrs: { id: "bad", placeholder: "a serious or critical finding", spellcheck: "false" } });
  #good = h("input", { attrs: { id: "good", placeholder: "all other nodes", spellcheck: "false" } });
  #answer = h("div", { attrs: { "aria-live": "polite" } });
  #shown = "";

  constructor(private context: Context) {
    const ask = (event: Event) => {
      event.preventDefault();
      this.#shown = "";
      const { store } = this.context;
      const same = store.state.compared && store.state.bad === this.#bad.value && store.state.good === this.#good.value;
      store.set({ bad: this.#bad.value, good: this.#good.value, compared: true }, "step");
      if (same) void this.load();
    };
    replace(
      this.element,
      h("h2", {}, "Compare"),
      h(
        "form",
        { class: "compare-form", on: { submit: ask } },
        h("label", { attrs: { for: "bad" } }, "Bad nodes"),
        this.#bad,
        h("label", { attrs: { for: "good" } }, "Good nodes"),
        this.#good,
        h("span", "buttons", h("button", { attrs: { type: "submit" } }, "Compare"), h("span", "quiet", "conditions of SQL on reports: nic_resets > 0, zone = 'us-east-1a'")),
      ),
      this.#answer,
    );
  }

  /** Once it was asked for; the same question is not asked twice. */
  async load(): Promise<void> {
    const { state } = this.context;
    this.#bad.value = state.bad;
    this.#good.value = state.good;
    if (!state.compared) return replace(this.#answer);
    const question = JSON.stringify([state.bad, state.good, this.context.fleet.read_at]);
    if (question === this.#shown) return;
    replace(this.#answer, notice("busy", "Comparing…"));
    try {
      const answer = await api.compare(state.bad, state.good, this.#latest.next());
      this.#shown = question;
      this.#show(answer);
    } catch (error) {
      if (isAborted(error)) return;
      replace(this.#answer, errorNotice(error, () => void this.load()));
    }
  }

  #show(answer: api.Compared): void {
    const { differences } = answer;
    const first = differences.find((difference) => difference.folded_under === null);
    const summary = `${count(answer.bad)} bad nodes (${answer.bad_is}), ${count(answer.good)} good ones (${answer.good_is}), last ${answer.hours} h. Compared ${count(answer.tests)} things one by one and ${count(answer.pairs)} pairs of them.`;
    const notes = differences.flatMap((difference) => difference.exceptions ?? []).map(({ text }) => h("li", {}, text));
    replace(
      this.#answer,
      h("p", "answer", wordsOf(answer, first)),
      h("p", "quiet", summary),
      notes.length > 0 && h("ul", "answer-notes", ...notes),
      differences.length > 0 &&
        h(
          "table",
          "records",
          h("caption", "off-screen", "Differences between bad and good nodes, what each explains below it"),
          h("thead", {}, h("tr", {}, ...HEADS.map((words) => h("th", { attrs: { scope: "col" } }, words)))),
          h("tbody", {}, ...differences.slice(0, MOST_ROWS).map(row)),
        ),
      differences.length > MOST_ROWS && h("p", "quiet", `${count(differences.length - MOST_ROWS)} more are not shown; sexton fleet compare --json has them.`),
    );
  }
}

function wordsOf(answer: api.Compared, first: api.Difference | undefined): string {
  if (answer.too_few) {
    return `Not enough nodes: even something that all bad nodes have and no good one could be chance. About ${count(answer.too_few.nodes_needed)} nodes, half of them bad, would be enough.`;
  }
  if (!first) return "Nothing differs: no unit, package, image, label or fact tells bad from good nodes beyond chance.";
  const known = (first.before ?? 0) + (first.after ?? 0);
  const order = known > 0 ? `; there before the trouble began on ${count(first.before ?? 0)} of ${count(known)} nodes where the order is known` : "";
  return `${first.label}${first.role === "spared" ? " (spared)" : ""}${order}`;
}

function row(difference: api.Difference): HTMLElement {
  const { folded_under: under, role } = difference;
  const kind = role === "spared" ? " (spared)" : "";
  const same = difference.same_nodes?.length ? h("span", "source", `on the same nodes: ${difference.same_nodes.slice(0, 8).join(", ")}`) : null;
  const explained = under !== null ? h("span", "source", role === "measured" ? `measured where ${under} is` : `explained by ${under}`) : null;
  const cell = (head: number, ...children: (Node | string | null)[]) => h("td", { attrs: { "data-head": HEADS[head] } }, ...children);
  const isMeasured = role === "measured";
  return h(
    "tr",
    under === null ? "" : "folded",
    cell(0, h("span", {}, difference.label, kind, same, explained)),
    cell(1, isMeasured ? `median ${number(difference.bad_median)}` : share(difference.bad_share)),
    cell(2, isMeasured ? `median ${number(difference.good_median)}` : share(difference.good_share)),
    cell(3, `${number(difference.effect)} (${number(difference.effect_low)} to ${number(difference.effect_high)})`),
    cell(4, chance(difference.q)),
  );
}

function share(value: number | undefined): HTMLElement {
  const bar = h("span", "amount");
  place(bar, { "--share": String(value ?? 0) });
  return h("span", "amount-cell", value === undefined ? "unknown" : percent(value), bar);
}

/** JSON has no infinity: an odds ratio without an end comes as null. */
function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "∞";
  const size = Math.abs(value);
  if (size >= 1000) return count(Number(value.toPrecision(3)));
  return String(Number(value.toPrecision(3)));
}

const chance = (q: number): string => (q < 1e-99 ? "< 1e-99" : q < 0.001 ? q.toExponential(0) : q.toFixed(3));
