// The words of a verdict: the same as in the terminal.

import type { Subject } from "../../api/types";

export const STATES: Record<string, { word: string; sign: string }> = {
  "cause-found": { word: "Root cause found", sign: "●" },
  "symptoms-only": { word: "Symptoms found, root cause unknown", sign: "◐" },
  healthy: { word: "Healthy", sign: "✓" },
  blind: { word: "Cannot tell", sign: "?" },
};

export const STANCES: [stance: string, heading: string, sign: string][] = [
  ["for", "Evidence for", "+"],
  ["against", "Evidence against", "−"],
  ["missing", "Missing", "?"],
];

export const REMEDIES: [kind: string, heading: string][] = [
  ["stop", "Stop it now"],
  ["clean-up", "Clean up"],
  ["prevent", "Prevent it"],
  ["look", "Investigate"],
];

export function confidenceWord(ratio: number): string {
  if (ratio >= 0.9) return "certain";
  return ratio >= 0.7 ? "likely" : "possible";
}

export function subjectWords({ kind, name }: Subject): string {
  if (kind === "node") return "this node";
  if (kind === "cpu") return `core ${name}`;
  return name;
}

/** A number and its unit stay on one line. */
export function unbroken(text: string): string {
  return text.replace(/(\d) (?=(?:%|[nµm]?s|min|h|[KMGT]?i?B|times)(?![\w/]))/g, "$1\u00a0");
}
