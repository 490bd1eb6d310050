// The chain as linked cards, from cause to symptom.

import type { Diagnosis, Finding, Link } from "../../api/types";
import { breakable, h } from "../../dom/element";
import { percent } from "../../time/format";
import { confidenceWord, subjectWords, unbroken } from "./words";

export interface ChainActions {
  finding(finding: Finding): void;
  link(link: Link, index: number): void;
}

export function chain(diagnosis: Diagnosis, ids: string[], actions: ChainActions): HTMLElement {
  const list = h("ol", { class: "chain", attrs: { "aria-label": "Causal chain" } });
  ids.forEach((id, i) => {
    const finding = diagnosis.findings.find((finding) => finding.id === id);
    if (!finding) return;
    const place = i === 0 ? "cause" : i === ids.length - 1 ? "symptom" : "";
    if (i > 0) list.append(arrow(diagnosis, ids[i - 1], id, actions));
    list.append(h("li", "step", card(finding, ids.length > 1 ? place : "", actions)));
  });
  return list;
}

function card(finding: Finding, place: string, actions: ChainActions): HTMLElement {
  return h(
    "button",
    {
      class: `card ${finding.severity}`,
      title: finding.title,
      attrs: { type: "button", "data-finding": finding.id, "aria-expanded": "false" },
      on: { click: () => actions.finding(finding) },
    },
    h("span", "card-head", h("span", "code", finding.code), place && h("span", "place", place)),
    h("span", "subject", ...breakable(subjectWords(finding.subject))),
    h("strong", "figure", ...breakable(unbroken(finding.figure))),
    meter(finding.confidence),
  );
}

/** How sure, as a bar, a figure and a word: the bar alone would be a colour to guess. */
export function meter(ratio: number): HTMLElement {
  const bar = h("span", "bar");
  bar.style.setProperty("--share", String(ratio));
  return h(
    "span",
    { class: "confidence", title: "Confidence" },
    bar,
    `${percent(ratio)} ${confidenceWord(ratio)}`,
  );
}

function arrow(diagnosis: Diagnosis, cause: string, effect: string, actions: ChainActions): HTMLElement {
  const index = diagnosis.links.findIndex((link) => link.cause === cause && link.effect === effect);
  const link = diagnosis.links[index];
  if (!link) return h("li", "join", h("span", "arrow"));
  const sure = link.confidence ?? 0;
  return h(
    "li",
    "join",
    h(
      "button",
      {
        class: `arrow ${sure < 0.4 ? "weak" : ""}`,
        title: `Evidence of this link (${confidenceWord(sure)})`,
        attrs: {
          type: "button",
          "data-link": nameOf(link),
          "aria-expanded": "false",
          "aria-label": `${percent(sure)}: ${cause} leads to ${effect}, ${confidenceWord(sure)}`,
        },
        on: { click: () => actions.link(link, index) },
      },
      h("span", "how-sure", percent(sure)),
    ),
  );
}

/** A link by what it joins: its place in the list changes when a live node is judged again. */
export function nameOf(link: Link): string {
  return `${link.cause}>${link.effect}`;
}
