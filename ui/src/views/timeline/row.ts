// One lane on the page: its label and its canvas, drawn only while it is in sight.

import type { Lane, Tile } from "../../api/types";
import { h, place } from "../../dom/element";
import { count, quantity } from "../../time/format";

export class Row {
  readonly element: HTMLElement;
  readonly canvas = h("canvas", { attrs: { role: "img" } });
  #most = h("span", "most");
  inSight = false;

  constructor(
    readonly lane: Lane,
    readonly height: number,
    label: string,
  ) {
    const thin = height < 12;
    this.element = h(
      "div",
      {
        class: `lane ${lane.kind}${thin ? " thin" : ""}${lane.max > 0 ? "" : " nothing"}`,
        attrs: { "data-lane": lane.id },
      },
      h(
        "div",
        { class: "label", title: `${lane.label}. ${lane.about}` },
        label !== "" && h("span", {}, label),
        lane.kind !== "heat" && this.#most,
      ),
      this.canvas,
    );
    place(this.element, { height: `${height}px` });
    this.#say(mostWords(lane));
  }

  /** What has come may show that its zero is none. */
  take(tile: Tile): void {
    this.#say(this.lane.max === 0 && isUnseen(this.lane, tile) ? "not seen" : mostWords(this.lane));
  }

  #say(words: string): void {
    this.#most.textContent = words;
    this.canvas.setAttribute("aria-label", `${this.lane.label}: ${this.lane.about}. ${words}`);
  }
}

function mostWords({ kind, unit, max }: Lane): string {
  if (kind === "events") return count(max);
  return max > 0 ? `max ${quantity(max, unit)}` : quantity(max, unit);
}

/** Nothing was seen in all of the tile, or gaps cover so much of it that no event means little. */
export function isUnseen(lane: Lane, tile: Tile): boolean {
  if (tile.values.every((value) => value === null)) return true;
  if (lane.kind !== "events") return false;
  const long = tile.step * tile.values.length;
  const blind = tile.gaps.reduce(
    (sum, [from, to]) => sum + Math.max(0, Math.min(to, tile.from + long) - Math.max(from, tile.from)),
    0,
  );
  return blind > long / 2;
}
