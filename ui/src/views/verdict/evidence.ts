// Evidence in three columns: for, against, missing. None of them is hidden.

import type { Evidence } from "../../api/types";
import { h } from "../../dom/element";
import { type Clock, moment } from "../../time/format";
import { STANCES } from "./words";

export interface Shown {
  evidence: Evidence[];
  /** In the same order: when each was seen. */
  times: (number | null)[];
  clock: Clock;
  go(at: number): void;
}

export function evidenceColumns(shown: Shown): HTMLElement {
  return h("div", "evidence", ...STANCES.map(([stance, heading, sign]) => column(shown, stance, heading, sign)));
}

function column(shown: Shown, stance: string, heading: string, sign: string): HTMLElement {
  const items = shown.evidence
    .map((evidence, i) => ({ evidence, at: shown.times[i] ?? null }))
    .filter(({ evidence }) => evidence.stance === stance);
  const list = items.map(({ evidence, at }) => item(evidence, at, shown));
  return h(
    "div",
    `stance ${stance}`,
    h("h4", {}, h("span", { class: "sign", attrs: { "aria-hidden": "true" } }, sign), ` ${heading}`),
    items.length > 0 ? h("ul", {}, ...list) : h("p", "quiet", "nothing"),
  );
}

function item(evidence: Evidence, at: number | null, shown: Shown): HTMLElement {
  return h(
    "li",
    {},
    evidence.text,
    h("span", "source", evidence.source),
    at !== null &&
      h(
        "button",
        {
          class: "link",
          title: "Show this moment on the time line",
          attrs: { type: "button" },
          on: { click: () => shown.go(at) },
        },
        moment(at, shown.clock, 1000),
      ),
  );
}
