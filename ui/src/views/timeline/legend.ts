// What the colours of heat strips mean, and what hatched is.

import { h } from "../../dom/element";
import { css, ramp } from "../../draw/ramp";

export class Legend {
  #scale = h("span", { class: "scale", attrs: { "aria-hidden": "true" } });
  readonly element = h(
    "span",
    "legend",
    h("span", "key", "0 %", this.#scale, "100 %"),
    h("span", "key", h("span", { class: "swatch hatched", attrs: { "aria-hidden": "true" } }), "not seen"),
  );

  recolour(theme: "dark" | "light"): void {
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => css(ramp(theme, share)));
    this.#scale.style.setProperty("--ramp", stops.join(","));
  }
}
