// What to type, each once, ready to copy.

import type { Finding, Remedy } from "../../api/types";
import { copyButton } from "../../dom/copy";
import { h } from "../../dom/element";
import { REMEDIES } from "./words";

export function remedyList(findings: Finding[], kinds = REMEDIES.map(([kind]) => kind)): HTMLElement {
  const groups = REMEDIES.filter(([kind]) => kinds.includes(kind)).map(([kind, heading]) => {
    const remedies = distinct(findings.flatMap((finding) => finding.remedies)).filter(
      (remedy) => remedy.kind === kind,
    );
    return remedies.length > 0 && h("div", "remedies", h("h4", {}, heading), ...remedies.map(remedyItem));
  });
  return h("div", "remedy-groups", ...groups);
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
  return h(
    "div",
    "remedy",
    h("p", {}, remedy.text),
    command !== null && h("div", "command", h("code", {}, command), copyButton(() => command)),
  );
}
