// What a view says instead of showing nothing: what is the matter, and what to do.

import { Trouble } from "../api/client";
import { h } from "./element";

export function notice(
  kind: "empty" | "blind" | "error" | "busy",
  title: string,
  text = "",
  ...actions: HTMLElement[]
): HTMLElement {
  return h(
    "div",
    { class: `notice ${kind}`, attrs: { role: kind === "error" ? "alert" : "status" } },
    h("strong", {}, title),
    text && h("p", {}, text),
    actions.length > 0 && h("p", "actions", ...actions),
  );
}

export function errorNotice(error: unknown, again: () => void): HTMLElement {
  const text = error instanceof Trouble ? error.message : `Error in this page: ${String(error)}`;
  const button = h("button", { attrs: { type: "button" }, on: { click: again } }, "Try again");
  return notice("error", "Request failed", text, button);
}
