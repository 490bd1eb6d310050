// The verdict: the sentence, the chain, what stands behind each card, and what to type.

import { isAborted } from "../../api/client";
import type { Diagnosis, Finding, Link, Range, Subject } from "../../api/types";
import { h, replace } from "../../dom/element";
import { errorNotice, notice } from "../../dom/notice";
import { Latest } from "../../dom/once";
import type { Context, View } from "../../shell/context";
import { chain, meter, nameOf } from "./chain";
import { findingDetail, linkDetail } from "./detail";
import { nextStep, remedyList } from "./remedies";
import { ahead, apart, fold, nodeFacts, notSeen, ruledOut } from "./rest";
import { STATES, unbroken } from "./words";

export class Verdict implements View {
  readonly element = h("section", { class: "verdict", attrs: { id: "verdict", "aria-label": "Verdict" } });
  #detail = h("div", { attrs: { id: "detail" } });
  /** On a phone cards lie one below the other, and a panel below all of them is out of sight. */
  #narrow = matchMedia("(max-width: 760px)");
  #latest = new Latest();
  #diagnosis: Diagnosis | null = null;
  #listeners: ((diagnosis: Diagnosis | null) => void)[] = [];

  constructor(private context: Context) {
    context.store.subscribe((_, changed) => {
      if (changed.has("finding") || changed.has("link")) this.#mark();
    });
    this.#narrow.addEventListener("change", () => this.#mark());
  }

  /** Others draw what was found, too. */
  subscribe(listener: (diagnosis: Diagnosis | null) => void): void {
    this.#listeners.push(listener);
  }

  open(): void {
    this.#tell(null);
    if (this.context.source.kind === "profile") {
      replace(this.element);
      return;
    }
    replace(this.element, notice("busy", "Judging…", "Reading and judging the recording; this may take a few seconds."));
    void this.#load(true);
  }

  grow(): void {
    if (this.context.source.kind === "recording") void this.#load(false);
  }

  async #load(loud: boolean): Promise<void> {
    try {
      const diagnosis = await this.context.client.diagnosis(this.context.source.id, this.#latest.next());
      // Judged again to the same end: what is unfolded stays so.
      if (!loud && JSON.stringify(diagnosis) === JSON.stringify(this.#diagnosis)) return;
      this.#tell(diagnosis);
      this.#draw(diagnosis);
    } catch (error) {
      if (isAborted(error) || !loud) return;
      replace(
        this.element,
        errorNotice(error, () => this.open()),
      );
    }
  }

  #tell(diagnosis: Diagnosis | null): void {
    this.#diagnosis = diagnosis;
    for (const listener of this.#listeners) listener(diagnosis);
  }

  #draw(diagnosis: Diagnosis): void {
    const { verdict } = diagnosis;
    const state = STATES[verdict.state] ?? { word: verdict.state, sign: "?" };
    const unfolded = this.#unfolded();
    const others = verdict.chains.slice(1).map((ids) => chain(diagnosis, ids, this.#actions));
    replace(
      this.element,
      h(
        "div",
        "sentence",
        h(
          "p",
          "state-line",
          h(
            "span",
            `state ${verdict.state}`,
            h("span", { attrs: { "aria-hidden": "true" } }, state.sign),
            ` ${state.word}`,
          ),
          verdict.confidence !== null && meter(verdict.confidence),
        ),
        h("h1", {}, ...headline(verdict.headline)),
      ),
      verdict.chain.length > 0 && chain(diagnosis, verdict.chain, this.#actions),
      nextStep(inOrder(diagnosis)),
      this.#detail,
      this.#below(diagnosis, others),
    );
    for (const [name, fold] of folds(this.element)) fold.open ||= unfolded.has(name);
    this.#mark();
  }

  /** What the reader has opened stays open when a live node is judged again. */
  #unfolded(): Set<string> {
    const open = folds(this.element).filter(([, fold]) => fold.open);
    return new Set(open.map(([name]) => name));
  }

  #below(diagnosis: Diagnosis, others: HTMLElement[]): HTMLElement {
    const todo = remedyList(inOrder(diagnosis), "h2", ["stop", "clean-up", "prevent"]);
    return h(
      "div",
      "below",
      todo.childElementCount > 0 && fold("All commands", todo),
      others.length > 0 && fold(`Other causal chains (${others.length})`, h("div", {}, ...others)),
      ruledOut(diagnosis.explanations),
      apart(diagnosis),
      ahead(diagnosis.forecast),
      notSeen(diagnosis),
      nodeFacts(diagnosis),
    );
  }

  #actions = {
    finding: (finding: Finding) => {
      if (this.context.state.finding === finding.id) {
        this.context.store.set({ finding: null, link: null }, "step");
        return;
      }
      const seen = this.#diagnosis?.times.findings[finding.id] ?? [];
      if (seen.length === 0) this.context.store.set({ finding: finding.id }, "step");
      else this.context.show(tellingOf(seen), finding.id, this.#coreOf(finding));
    },
    link: (link: Link, index: number) => {
      const name = nameOf(link);
      if (this.context.state.link === name) {
        this.context.store.set({ link: null }, "step");
        return;
      }
      const met = this.#diagnosis?.times.links[index];
      if (met) this.context.show(met, null);
      this.context.store.set({ finding: null, link: name }, met ? "glide" : "step");
    },
  };

  /** The core that it happened on: its own, or that of the nearest cause that has one. */
  #coreOf(finding: Finding): Subject {
    const chain = this.#diagnosis?.verdict.chains.find((ids) => ids.includes(finding.id)) ?? [];
    for (const id of chain.slice(0, chain.indexOf(finding.id) + 1).reverse()) {
      const cause = this.#diagnosis?.findings.find((finding) => finding.id === id);
      if (cause?.subject.kind === "cpu") return cause.subject;
    }
    return finding.subject;
  }

  /** Shows which card or arrow is chosen, and what stands behind it. */
  #mark(): void {
    const { finding: id, link: name } = this.context.state;
    const diagnosis = this.#diagnosis;
    const finding = diagnosis?.findings.find((finding) => finding.id === id);
    const link = finding ? undefined : diagnosis?.links.find((link) => nameOf(link) === name);
    const chosen = (element: HTMLElement) =>
      finding ? element.dataset.finding === id : link !== undefined && element.dataset.link === name;
    const opener = this.element.querySelector<HTMLElement>("[aria-expanded=true]");
    const isInside = this.#detail.contains(document.activeElement);
    let holder: HTMLElement | undefined;
    for (const element of this.element.querySelectorAll<HTMLElement>("[data-finding], [data-link]")) {
      element.setAttribute("aria-expanded", String(chosen(element)));
      if (chosen(element)) holder ??= element;
    }
    const detail =
      (finding && diagnosis && findingDetail(this.context, diagnosis, finding)) || (link && linkDetail(this.context, link));
    replace(this.#detail, detail && this.#closing(detail));
    this.#putDetail(holder);
    // What had the focus is gone: it goes back to what had opened it.
    if (isInside && !detail) opener?.focus({ preventScroll: true });
  }

  /** What opens also closes: by this button, by Esc, by a second click. */
  #closing(detail: HTMLElement): HTMLElement {
    const close = h(
      "button",
      {
        class: "small close",
        title: "Close (Esc)",
        attrs: { type: "button" },
        on: { click: () => this.context.store.set({ finding: null, link: null }, "step") },
      },
      "Close",
    );
    detail.prepend(close);
    return detail;
  }

  #putDetail(holder: HTMLElement | undefined): void {
    this.element.querySelector("li.in-place")?.remove();
    const item = holder?.closest("li");
    if (this.#narrow.matches && item) item.after(h("li", "in-place", this.#detail));
    else this.element.querySelector(".below")?.before(this.#detail);
  }
}

/** Folds by their titles, without the numbers in them. */
function folds(element: HTMLElement): [string, HTMLDetailsElement][] {
  return [...element.querySelectorAll<HTMLDetailsElement>(".below > details")].map((fold) => [
    (fold.querySelector("summary")?.textContent ?? "").replace(/ \(\d+\)$/, ""),
    fold,
  ]);
}

/** Findings chain by chain, gravest first, each once. */
function inOrder(diagnosis: Diagnosis): Finding[] {
  return [...new Set(diagnosis.verdict.chains.flat())]
    .map((id) => diagnosis.findings.find((finding) => finding.id === id))
    .filter((finding) => finding !== undefined);
}

/** Of several times it was seen: the longest, and of those alike the last. */
function tellingOf(seen: Range[]): Range {
  return seen.reduce((best, range) => (range[1] - range[0] >= best[1] - best[0] ? range : best));
}

/** A headline is a few clauses; the first is the cause and the one to read. */
function headline(text: string): HTMLElement[] {
  const clauses = text.split("; ");
  return clauses.map((clause, i) =>
    h("span", i === 0 ? "first" : "then", unbroken(clause) + (i < clauses.length - 1 ? "; " : "")),
  );
}
