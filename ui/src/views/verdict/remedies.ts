// What to type, each once, ready to copy.

import type { Finding, Remedy } from "../../api/types";
import { copyButton } from "../../dom/copy";
import { h } from "../../dom/element";
import { REMEDIES } from "./words";

/** Headings are one step below that of what holds the list. */
export function remedyList(
  findings: Finding[],
  level: "h2" | "h3" = "h3",
  kinds = REMEDIES.map(([kind]) => kind),
): HTMLElement {
  const groups = REMEDIES.filter(([kind]) => kinds.includes(kind)).map(([kind, heading]) => {
    const remedies = distinct(findings.flatMap((finding) => finding.remedies)).filter((remedy) => remedy.kind === kind);
    return remedies.length > 0 && h("div", "remedies", h(level, {}, heading), ...remedies.map(remedyItem));
  });
  return h("div", "remedy-groups", ...groups);
}

/** The first thing to type, in sight at once. */
export function nextStep(findings: Finding[]): HTMLElement | null {
  const all = findings.flatMap((finding) => finding.remedies).filter((remedy) => remedy.command !== null);
  const next = all.find((remedy) => remedy.kind === "stop") ?? all.find((remedy) => remedy.kind === "clean-up");
  if (!next) return null;
  const heading = REMEDIES.find(([kind]) => kind === next.kind)?.[1] ?? "";
  return h(
    "div",
    "next-step",
    h("strong", {}, `${heading}:`),
    h("span", {}, next.text),
    commandLine(next.command ?? ""),
  );
}

function commandLine(command: string): HTMLElement {
  return h(
    "span",
    "command",
    h("code", {}, command),
    copyButton(() => command),
  );
}

export function distinct(remedies: Remedy[]): Remedy[] {
  const known = new Set<string>();
  return remedies.filter((remedy) => {
    const key = remedy.command ?? remedy.text;
    if (known.has(key)) return false;
    known.add(key);
    return true;
  });
}

function remedyItem(remedy: Remedy): HTMLElement {
  const { command } = remedy;
  return h("div", "remedy", h("p", {}, remedy.text), command !== null && commandLine(command));
}
