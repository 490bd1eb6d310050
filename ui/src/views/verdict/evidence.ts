// Evidence in columns: for, against, missing; those that hold something.

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
  const columns = STANCES.map(([stance, heading, sign]) => column(shown, stance, heading, sign));
  const held = columns.filter((column) => column !== null);
  return h("div", "evidence", ...(held.length > 0 ? held : [h("p", "quiet", "No evidence was recorded.")]));
}

function column(shown: Shown, stance: string, heading: string, sign: string): HTMLElement | null {
  const items = shown.evidence
    .map((evidence, i) => ({ evidence, at: shown.times[i] ?? null }))
    .filter(({ evidence }) => evidence.stance === stance);
  if (items.length === 0) return null;
  const list = items.map(({ evidence, at }) => item(evidence, at, shown));
  return h(
    "div",
    `stance ${stance}`,
    h("h3", {}, h("span", { class: "sign", attrs: { "aria-hidden": "true" } }, sign), ` ${heading}`),
    h("ul", {}, ...list),
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
