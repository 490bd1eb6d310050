// One lane on the page: its label and its canvas, drawn only while it is in sight.

import type { Lane, Range, Tile } from "../../api/types";
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

  /** What has come may show that its zero is none; of events, how many lie in the window. */
  tell(tile: Tile, window: Range, all: Range): void {
    const { lane } = this;
    if (lane.max === 0) this.#say(isUnseen(lane, tile) ? "not seen" : mostWords(lane));
    else if (lane.kind === "events") this.#say(eventCount(lane.max, tile, window, all));
  }

  #say(words: string): void {
    if (this.#most.textContent === words) return;
    this.#most.textContent = words;
    this.canvas.setAttribute("aria-label", `${this.lane.label}: ${this.lane.about}. ${words}`);
  }
}

function mostWords({ kind, unit, max, per_second }: Lane): string {
  if (kind === "events") return count(max);
  const words = quantity(max, unit, per_second);
  return max > 0 ? `max ${words}` : words;
}

/** `57` of all the time; `3 of 57` of a window. */
export function eventCount(all_of_it: number, tile: Tile, window: Range, all: Range): string {
  const isAll = window[0] <= all[0] && window[1] >= all[1];
  if (isAll) return count(all_of_it);
  const inside = (at: number) => at >= window[0] && at <= window[1];
  if (!tile.events_left_out) {
    const n = (tile.events ?? []).reduce((sum, event) => sum + (inside(event.at) ? event.count : 0), 0);
    return `${count(n)} of ${count(all_of_it)}`;
  }
  // Columns at the ends may lie half outside.
  const middle = (i: number) => tile.from + (i + 0.5) * tile.step;
  const n = tile.values.reduce<number>((sum, value, i) => sum + (inside(middle(i)) ? (value ?? 0) : 0), 0);
  return `~${count(n)} of ${count(all_of_it)}`;
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
