// What is under the pointer, in words.

import type { Lane, Tile, TimelineEvent } from "../../api/types";
import { h, place, replace } from "../../dom/element";
import { type Clock, moment, quantity } from "../../time/format";
import { type Mark } from "./drawing";
import { valueAt } from "./tiles";
import { subjectWords } from "../verdict/words";

const MOST_EVENTS = 6;

/** For the pointer alone: what it says, canvases and rows say by their labels, too. */
export class Tooltip {
  readonly element = h("div", { class: "tooltip", attrs: { "aria-hidden": "true", hidden: true } });

  constructor() {
    // What it was about has moved or gone.
    for (const event of ["pointerdown", "wheel", "keydown", "scroll"]) {
      addEventListener(event, () => this.hide(), { capture: true, passive: true });
    }
  }

  hide(): void {
    this.element.hidden = true;
  }

  show(x: number, y: number, ...words: (HTMLElement | string)[]): void {
    replace(this.element, ...words);
    this.element.hidden = false;
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.min(x + 14, innerWidth - offsetWidth - 8);
    const top = y + 18 + offsetHeight > innerHeight ? y - offsetHeight - 10 : y + 18;
    place(this.element, { left: `${Math.max(4, left)}px`, top: `${top}px` });
  }
}

export function laneWords(
  lane: Lane,
  tile: Tile | undefined,
  time: number,
  clock: Clock,
  mark: Mark | null,
): HTMLElement[] {
  const when = h("div", "quiet", moment(time, clock, 1000));
  const head = h("div", {}, h("strong", {}, lane.label));
  if (!tile) return [head, when];
  const gap = tile.gaps.find(([from, to]) => time >= from && time < to);
  if (mark) return [head, ...eventWords(mark, clock)];
  if (gap) return [head, h("div", {}, `not seen: ${gap[2]}`), when];
  const value = valueAt(tile, time);
  if (lane.kind === "events" && value === 0) return [head, h("div", {}, "none here"), when];
  return [head, h("div", {}, quantity(value, lane.unit, lane.per_second)), when];
}

function eventWords(mark: Mark, clock: Clock): HTMLElement[] {
  const shown = mark.events
    .slice(0, MOST_EVENTS)
    .map((event) =>
      h(
        "div",
        {},
        h("span", "quiet", `${moment(event.at, clock, 1000)} `),
        `${ofWhom(event)}${event.text}${event.count > 1 ? ` (${event.count} alike)` : ""}`,
      ),
    );
  const more = mark.events.length - shown.length;
  return more > 0 ? [...shown, h("div", "quiet", `and ${more} more`)] : shown;
}

/** What could not be seen of one core or file says the same of each. */
function ofWhom({ subject, text }: TimelineEvent): string {
  const isOfAll = subject.kind === "node" || subject.kind === "sensor" || subject.name === "";
  const words = subjectWords(subject);
  return isOfAll || text.includes(subject.name) ? "" : `${words}: `;
}
