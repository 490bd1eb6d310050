// What else a judgement says: other chains, what was ruled out, forecasts, what was not seen.

import type { Diagnosis, Explanation, Forecast } from "../../api/types";
import { h } from "../../dom/element";
import { count } from "../../time/format";

export function ruledOut(explanations: Explanation[]): HTMLElement | null {
  if (explanations.length === 0) return null;
  const items = explanations.map((explanation) =>
    h(
      "li",
      {},
      h("strong", {}, explanation.name),
      `: ${explanation.outcome.replace(/-/g, " ")}`,
      ...explanation.evidence.map((evidence) => h("span", "source", `${evidence.text} (${evidence.source})`)),
    ),
  );
  return fold(`Ruled out (${explanations.length})`, h("ul", "plain", ...items));
}

export function ahead(forecasts: Forecast[]): HTMLElement | null {
  if (forecasts.length === 0) return null;
  const items = forecasts.map((forecast) =>
    h(
      "li",
      {},
      h("strong", {}, forecast.what),
      `: ${count(forecast.per_day)} a day (± ${count(forecast.per_day_error)}, ${forecast.n_points} points)`,
      ...forecast.passes.map((pass) => h("span", "source", `${pass.limit}: ${whenWords(pass.in_days)}`)),
    ),
  );
  return fold("Forecast", h("ul", "plain", ...items));
}

function whenWords(days: number | null): string {
  if (days === null) return "not foreseen";
  if (days < 1 / 24) return `in ${Math.round(days * 1440)} minutes at this rate`;
  if (days < 2) return `in ${Math.round(days * 24)} hours at this rate`;
  return `in ${Math.round(days)} days at this rate`;
}

export function notSeen(diagnosis: Diagnosis): HTMLElement | null {
  const { gaps, not_judged } = diagnosis;
  if (gaps.length + not_judged.length === 0) return null;
  const items = [
    ...alike(gaps, (gap) => `${gap.sensor}\n${gap.why}\n${gap.remedy}`).map(([gap, times]) =>
      h(
        "li",
        {},
        h("strong", {}, gap.sensor),
        `: ${gap.why}${times > 1 ? ` (${times} times)` : ""}`,
        gap.remedy !== null && h("span", "source", `to see it: ${gap.remedy}`),
      ),
    ),
    ...not_judged.map((rule) => h("li", {}, h("strong", {}, rule.code), ` not assessed: ${rule.because}`)),
  ];
  const open = diagnosis.verdict.state === "blind";
  return fold(`Blind spots (${items.length})`, h("ul", "plain", ...items), open);
}

/** Those that say the same as one, in their order, each with how often it is said. */
function alike<T>(all: T[], key: (one: T) => string): [T, number][] {
  const groups = new Map<string, [T, number]>();
  for (const one of all) {
    const known = groups.get(key(one));
    if (known) known[1]++;
    else groups.set(key(one), [one, 1]);
  }
  return [...groups.values()];
}

export function apart(diagnosis: Diagnosis): HTMLElement | null {
  if (diagnosis.separations.length === 0) return null;
  const items = diagnosis.separations.map((link) =>
    h(
      "li",
      {},
      h("span", "code", link.cause),
      " does not lead to ",
      h("span", "code", link.effect),
      ...link.evidence.map((evidence) => h("span", "source", `${evidence.text} (${evidence.source})`)),
    ),
  );
  return fold(`Considered, but not linked (${items.length})`, h("ul", "plain", ...items));
}

export function nodeFacts(diagnosis: Diagnosis): HTMLElement | null {
  const { node } = diagnosis;
  if (Object.keys(node.description).length === 0) return null;
  const rows = Object.entries(node.description).map(([name, value]) =>
    h("tr", {}, h("th", { attrs: { scope: "row" } }, factWords(name)), h("td", {}, value)),
  );
  return fold("This node", h("div", "wide", h("table", {}, h("tbody", {}, ...rows))));
}

/** Settings keep their own names; the rest reads as words. */
function factWords(name: string): string {
  const option = /^boot_(.+)$/.exec(name);
  if (option) return `Boot option ${option[1]}`;
  const setting = /^sysctl_(.+)$/.exec(name);
  if (setting) return sysctl(setting[1]);
  const words = name.replace(/_/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `net_core_dev_weight` is `net.core.dev_weight`. */
function sysctl(name: string): string {
  return name.replace(/^net_(core|ipv4|ipv6|netfilter)_/, "net.$1.").replace(/^(kernel|vm|fs)_/, "$1.");
}

export function fold(title: string, body: HTMLElement, open = false): HTMLElement {
  return h("details", { class: "fold", attrs: { open } }, h("summary", {}, title), body);
}
