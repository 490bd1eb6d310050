// What stands behind one card or one link, below the chain.

import type { Diagnosis, Finding, Link, Range } from "../../api/types";
import { h } from "../../dom/element";
import { dated, moment } from "../../time/format";
import type { Context } from "../../shell/context";
import { meter } from "./chain";
import { evidenceColumns } from "./evidence";
import { remedyList } from "./remedies";

export function findingDetail(context: Context, diagnosis: Diagnosis, finding: Finding): HTMLElement {
  const seen = diagnosis.times.findings[finding.id] ?? [];
  const causes = diagnosis.links.filter((link) => link.effect === finding.id);
  return h(
    "div",
    { class: "detail", attrs: { role: "region", "aria-label": `Evidence of ${finding.id}` } },
    h("h2", {}, h("span", "code", finding.code), ` ${finding.title}`),
    h("p", "about", meter(finding.confidence), ...sightings(context, finding, seen)),
    evidenceColumns({
      evidence: finding.evidence,
      times: diagnosis.times.evidence[finding.id] ?? [],
      clock: context.source.clock,
      go: (at) => look(context, [at, at], finding),
    }),
    causes.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, "Evidence of the link from its cause"),
        ...causes.map((link) => linkEvidence(context, link)),
      ),
    remedyList([finding]),
  );
}

export function linkDetail(context: Context, link: Link): HTMLElement {
  return h(
    "div",
    { class: "detail", attrs: { role: "region", "aria-label": "Evidence of the link" } },
    h("h2", {}, h("span", "code", link.cause), " leads to ", h("span", "code", link.effect)),
    link.confidence !== undefined && h("p", "about", meter(link.confidence)),
    linkEvidence(context, link),
  );
}

export function linkEvidence(context: Context, link: Link): HTMLElement {
  const times = link.evidence.map((evidence) => parsed(evidence.at));
  return evidenceColumns({
    evidence: link.evidence,
    times: context.source.clock === "wall" ? times : [],
    clock: context.source.clock,
    go: (at) => context.show([at, at], link.effect),
  });
}

/** Only links carry times as text alone. */
function parsed(text: string | null | undefined): number | null {
  const ms = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms * 1000;
}

/** A time was clicked: that is a wish to see it. */
function look(context: Context, range: Range, finding: Finding): void {
  context.show(range, finding.id, finding.subject);
  document.getElementById("timeline")?.scrollIntoView();
}

const MOST_SIGHTINGS = 8;

function sightings(context: Context, finding: Finding, seen: Range[]): (HTMLElement | string)[] {
  if (seen.length === 0) return [" No moment of it was recorded."];
  const { clock } = context.source;
  const times = seen.length === 1 ? "once" : `${seen.length} times`;
  const first = `Seen ${times}, first ${dated(seen[0][0], clock)}${seen.length > MOST_SIGHTINGS ? "; the last" : ""}: `;
  const buttons = seen.slice(-MOST_SIGHTINGS).map((range) =>
    h(
      "button",
      {
        class: "link",
        title: "Show it on the time line",
        attrs: { type: "button" },
        on: { click: () => look(context, range, finding) },
      },
      moment(range[0], clock, 1000),
    ),
  );
  return [first, ...buttons];
}
