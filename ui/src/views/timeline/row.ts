// One lane on the page: its label and its canvas, drawn only while it is in sight.

import type { Lane } from "../../api/types";
import { h, place } from "../../dom/element";
import { quantity } from "../../time/format";

export class Row {
  readonly element: HTMLElement;
  readonly canvas = h("canvas", { attrs: { role: "img" } });
  inSight = false;

  constructor(
    readonly lane: Lane,
    readonly height: number,
    labelled: boolean,
  ) {
    const most = lane.unit === "events" ? "" : quantity(lane.max, lane.unit);
    const thin = height < 12;
    this.canvas.setAttribute("aria-label", `${lane.label}: ${lane.about} Most: ${most || lane.max}`);
    this.element = h(
      "div",
      {
        class: `lane ${lane.kind}${thin ? " thin" : ""}${lane.max > 0 ? "" : " nothing"}`,
        attrs: { "data-lane": lane.id },
      },
      h(
        "div",
        { class: "label", title: `${lane.label}. ${lane.about}` },
        labelled && h("span", {}, lane.label),
        lane.kind === "line" && h("span", "most", lane.max > 0 ? `max ${most}` : most),
        lane.kind === "events" && h("span", "most", String(lane.max)),
      ),
      this.canvas,
    );
    place(this.element, { height: `${height}px` });
  }
}
