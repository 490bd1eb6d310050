// One node: what it is, what it had, and the way to its own page.

import { isAborted } from "../api/client";
import { breakable, h, replace } from "../dom/element";
import { errorNotice } from "../dom/notice";
import { Latest } from "../dom/once";
import { count, dated } from "../time/format";
import * as api from "./api";
import type { Context } from "./page";

const HEADS = ["Finding", "Severity", "Since (UTC)", "Until (UTC)"];

export class NodeView {
  readonly element = h("section", { attrs: { id: "node", "aria-label": "Node", hidden: true } });
  #latest = new Latest();

  constructor(private context: Context) {}

  async load(): Promise<void> {
    const { node } = this.context.state;
    this.element.hidden = !node;
    if (!node) return replace(this.element);
    try {
      this.#show(await api.node(node, this.#latest.next()));
    } catch (error) {
      if (isAborted(error)) return;
      replace(this.element, errorNotice(error, () => void this.load()), this.#closer());
    }
  }

  #closer(): HTMLElement {
    return h("button", { class: "small", attrs: { type: "button" }, on: { click: () => this.context.store.set({ node: "" }, "step") } }, "Close");
  }

  #show(node: api.FleetNode): void {
    const facts = node.attributes.flatMap(({ name, value }) => [h("dt", {}, name), h("dd", {}, ...breakable(value))]);
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, node.name), node.link && away(node.link, "Open its page"), h("span", "buttons", this.#closer())),
      h(
        "div",
        "node-box",
        h("dl", {}, ...facts),
        node.findings.length === 0
          ? h("p", {}, "No finding in its reports of this time.")
          : h(
              "table",
              "records",
              h("caption", "off-screen", `Findings of ${node.name}`),
              h("thead", {}, h("tr", {}, ...HEADS.map((words) => h("th", { attrs: { scope: "col" } }, words)))),
              h("tbody", {}, ...node.findings.map(row)),
            ),
        node.left_out > 0 && h("p", "quiet", `${count(node.left_out)} more are not shown.`),
      ),
    );
  }
}

function row(finding: api.NodeFinding): HTMLElement {
  const cell = (head: number, ...children: (Node | string | null)[]) => h("td", { attrs: { "data-head": HEADS[head] } }, ...children);
  const until = finding.resolved === null ? (finding.life === "resolved" ? "resolved" : "still open in its last report") : dated(finding.resolved, "wall");
  const caused = finding.caused_by ? h("span", "source", `caused by ${finding.caused_by}`) : null;
  const words = h("span", {}, ...breakable(finding.title || finding.code), caused, finding.link ? h("span", "source", away(finding.link, "Open the incident")) : null);
  return h(
    "tr",
    {},
    cell(0, h("span", {}, h("span", "code", finding.code), " ", words)),
    cell(1, finding.severity),
    cell(2, dated(finding.since, "wall")),
    cell(3, until),
  );
}

/** A page of another server: it must not learn where the link was. */
function away(href: string, words: string): HTMLElement {
  return h("a", { attrs: { href, target: "_blank", rel: "noreferrer noopener" } }, words);
}
