// The time line: one axis, a lane for everything that was watched.

import { isAborted } from "../../api/client";
import type { Diagnosis, Range } from "../../api/types";
import { h, replace } from "../../dom/element";
import { errorNotice, notice } from "../../dom/notice";
import { eachFrame, Latest, settled } from "../../dom/once";
import { surface } from "../../draw/surface";
import type { Context, View } from "../../shell/context";
import { dated, moment, rangeWords } from "../../time/format";
import { panned, span, zoomed } from "../../time/window";
import { drawLane, type Mark, MARK_PX, marks } from "./drawing";
import { gestures } from "./gestures";
import { groups, heightOf, labelOf } from "./groups";
import { Legend } from "./legend";
import { Overlay } from "./overlay";
import { Row } from "./row";
import { drawRuler } from "./ruler";
import { ROOM, TileStore } from "./tiles";
import { laneWords, Tooltip } from "./tooltip";

const MINUTE = 60_000_000;
const RULER_PX = 30;
/** Wait for a pan to slow down before asking. */
const ASK_MS = 90;
/** Set once, when there is something to see: what `cargo xtask bench page` measures. */
const FIRST_LANES = "sexton:lanes";

export class Timeline implements View {
  readonly element = h("section", { class: "timeline", attrs: { id: "timeline", "aria-label": "Time line" } });
  #rows: Row[] = [];
  #tiles = new TileStore();
  #latest = new Latest();
  #legend = new Legend();
  #overlay = new Overlay();
  #tooltip = new Tooltip();
  #ruler = h("canvas", { class: "ruler", attrs: { tabindex: "0", role: "img" } });
  #plot = h("div", "plot");
  #lanes = h("div", "lanes");
  #said = h("p", { class: "said", attrs: { "aria-live": "polite" } });
  #words = h("span", "window-words");
  #found: Range[] = [];
  #sight: IntersectionObserver;
  #draw = eachFrame(() => this.#paint());
  #ask = settled(ASK_MS, () => void this.#load());

  constructor(private context: Context) {
    this.#sight = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: "120px" });
    new ResizeObserver(() => this.#moved()).observe(this.#plot);
    context.theme.subscribe(() => {
      this.#tiles.repaint();
      this.#legend.recolour(context.theme.name);
      this.#draw();
    });
    context.store.subscribe((_, changed) => {
      if (changed.has("window")) this.#moved();
      if (changed.has("selection") || changed.has("base") || changed.has("finding")) this.#draw();
    });
    document.body.append(this.#tooltip.element);
    gestures(this.#plot, this.#ruler, this.#stage());
  }

  /** Where the findings were seen; drawn for the one that is chosen. */
  judged(diagnosis: Diagnosis | null): void {
    this.#times = diagnosis?.times.findings ?? {};
    this.#draw();
  }
  #times: Record<string, Range[]> = {};
  #isDrawn = false;

  open(): void {
    this.#tiles.clear();
    this.#rows = [];
    this.#sight.disconnect();
    replace(this.#said);
    const { source } = this.context;
    if (source.kind === "profile") {
      replace(this.element);
      return;
    }
    replace(this.element, h("h2", {}, "Time line"), notice("busy", "Reading the lanes…"));
    void this.#openLanes();
  }

  grow(): void {
    if (this.#rows.length === 0) this.open();
    this.#tiles.outdate();
    this.#moved();
  }

  async #openLanes(): Promise<void> {
    try {
      const { lanes } = await this.context.client.lanes(this.context.source.id);
      if (lanes.length === 0) {
        replace(
          this.element,
          h("h2", {}, "Time line"),
          notice(
            "blind",
            "Nothing was recorded",
            "Run `sexton doctor` on the node: it says which sensors work there, and what to type for the others.",
          ),
        );
        return;
      }
      this.#build(groups(lanes));
    } catch (error) {
      replace(
        this.element,
        h("h2", {}, "Time line"),
        errorNotice(error, () => this.open()),
      );
    }
  }

  #build(all: ReturnType<typeof groups>): void {
    const blocks = all.map((group) => {
      const rows = group.lanes.map((lane, i) => {
        const label = group.thin && i % 8 !== 0 ? "" : labelOf(lane);
        return new Row(lane, heightOf(lane, group.thin), label);
      });
      this.#rows.push(...rows);
      return h(
        "details",
        {
          class: "group",
          attrs: { open: group.id !== "stacks", "data-group": group.id },
          on: { toggle: () => this.#moved() },
        },
        h("summary", {}, group.name),
        ...rows.map((row) => row.element),
      );
    });
    replace(this.#lanes, ...blocks, h("div", "over", h("div", "label"), this.#plotCell()));
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "Time line"), this.#words, this.#legend.element, this.#buttons()),
      h(
        "div",
        "ruler-line",
        h("div", "label quiet", this.context.source.clock === "wall" ? "UTC" : "since start"),
        this.#ruler,
      ),
      this.#lanes,
      this.#said,
    );
    this.#legend.recolour(this.context.theme.name);
    for (const row of this.#rows) this.#sight.observe(row.element);
    this.#moved();
  }

  /** One element over all lanes takes the pointer, so that a drag may leave a lane. */
  #plotCell(): HTMLElement {
    replace(this.#plot, this.#overlay.element);
    return this.#plot;
  }

  #buttons(): HTMLElement {
    const button = (words: string, title: string, press: () => void) =>
      h(
        "button",
        {
          class: "small",
          title,
          attrs: { type: "button", "aria-label": /\w/.test(words) ? null : title },
          on: { click: press },
        },
        words,
      );
    const last = (words: string, minutes: number) =>
      button(words, `The last ${words}`, () => {
        const [from, to] = this.context.all;
        this.context.setWindow([Math.max(from, to - minutes * MINUTE), to], "step");
      });
    const isLong = span(this.context.all) > 5 * MINUTE || this.context.source.live;
    return h(
      "span",
      "buttons",
      isLong && last("5 min", 5),
      isLong && last("1 h", 60),
      button("←", "Earlier (left arrow)", () => this.pan(-0.5)),
      button("→", "Later (right arrow)", () => this.pan(0.5)),
      button("+", "Zoom in (+)", () => this.zoom(0.5)),
      button("−", "Zoom out (-)", () => this.zoom(2)),
      button("All", "All of it (0)", () => this.context.store.set({ window: null }, "step")),
    );
  }

  pan(share: number): void {
    this.context.setWindow(panned(this.context.window, share, this.context.all));
  }

  zoom(factor: number): void {
    const { window, all, state } = this.context;
    const inside = state.selection && state.selection[0] >= window[0] && state.selection[1] <= window[1];
    const at = inside && state.selection ? (state.selection[0] + state.selection[1]) / 2 : (window[0] + window[1]) / 2;
    this.context.setWindow(zoomed(window, factor, at, all));
  }

  #stage(): Parameters<typeof gestures>[2] {
    return {
      window: () => this.context.window,
      all: () => this.context.all,
      move: (range) => this.context.setWindow(range),
      select: (range, done) => {
        if (range[1] - range[0] >= 1) this.context.store.set({ selection: range }, done ? "step" : "draft");
      },
      hover: (time, event) => this.#hover(time, event),
      click: (time, event) => this.#click(time, event),
    };
  }

  #rowAt(event: PointerEvent): Row | undefined {
    return this.#rows.find((row) => {
      if (!row.inSight) return false;
      const box = row.canvas.getBoundingClientRect();
      return box.height > 0 && event.clientY >= box.top && event.clientY < box.bottom;
    });
  }

  #markAt(row: Row, event: PointerEvent): Mark | null {
    const kept = this.#tiles.get(row.lane.id);
    if (row.lane.kind !== "events" || !kept || kept.tile.events_left_out) return null;
    const box = row.canvas.getBoundingClientRect();
    const near = marks({ surface: { width: box.width }, window: this.context.window }, kept.tile)
      .map((mark) => ({ mark, away: Math.abs(mark.x - (event.clientX - box.left)) }))
      .sort((a, b) => a.away - b.away)[0];
    return near && near.away <= MARK_PX ? near.mark : null;
  }

  #hover(time: number | null, event: PointerEvent | null): void {
    const { window, source } = this.context;
    this.#overlay.cursor(time === null ? null : (time - window[0]) / span(window));
    const row = event && this.#rowAt(event);
    if (!row || time === null || event.pointerType === "touch") {
      this.#tooltip.hide();
      return;
    }
    const mark = this.#markAt(row, event);
    this.#plot.classList.toggle("pointing", mark !== null);
    this.#tooltip.show(
      event.clientX,
      event.clientY,
      ...laneWords(row.lane, this.#tiles.get(row.lane.id)?.tile, time, source.clock, mark),
    );
  }

  /** An event leads to the second before it; anything else to the second it lies in. */
  #click(time: number, event: PointerEvent): void {
    const row = this.#rowAt(event);
    const mark = row && this.#markAt(row, event);
    if (!mark) return;
    const first = mark.events[0];
    const { clock } = this.context.source;
    this.context.show([first.at, first.at], this.context.state.finding);
    replace(
      this.#said,
      h("strong", {}, `${dated(first.at, clock)} ${first.subject.name}: `),
      `${first.text} `,
      h(
        "span",
        "quiet",
        `The second before it, ${moment(first.at - 1_000_000, clock, 1000)} on, is selected; its flame graph is below.`,
      ),
    );
    void time;
  }

  #seen(entries: IntersectionObserverEntry[]): void {
    for (const entry of entries) {
      const row = this.#rows.find((row) => row.element === entry.target);
      if (row) row.inSight = entry.isIntersecting;
    }
    this.#moved();
  }

  #moved(): void {
    if (this.#rows.length === 0) return;
    this.#draw();
    this.#ask();
  }

  async #load(): Promise<void> {
    const { window, all, source, client } = this.context;
    const width = Math.max(100, Math.round(this.#plot.clientWidth));
    const wanted = this.#rows
      .filter((row) => row.inSight && !this.#tiles.serves(row.lane.id, window, all, width))
      .map((row) => row.lane.id);
    if (wanted.length === 0) return;
    const room = span(window) * ROOM;
    const range: Range = [Math.max(all[0], window[0] - room), Math.min(all[1], window[1] + room)];
    const columns = Math.min(4096, Math.max(1, Math.round((span(range) / span(window)) * width)));
    try {
      const { tiles } = await client.tiles(source.id, wanted.slice(0, 256), range, columns, this.#latest.next());
      for (const tile of tiles) {
        this.#tiles.put(tile);
      }
      this.#draw();
    } catch (error) {
      if (!isAborted(error))
        replace(
          this.#said,
          errorNotice(error, () => this.#moved()),
        );
    }
  }

  #paint(): void {
    const { window, all, state, source, theme } = this.context;
    const width = this.#ruler.parentElement ? this.#plot.clientWidth : 0;
    if (width === 0) return;
    this.#words.textContent = rangeWords(window, source.clock);
    drawRuler(surface(this.#ruler, width, RULER_PX), window, source.clock, theme.palette);
    this.#ruler.setAttribute("aria-label", `Time axis, ${rangeWords(window, source.clock)}`);
    this.#found = (state.finding && this.#times[state.finding]) || [];
    this.#overlay.draw(window, state.selection, state.base, this.#found);
    for (const row of this.#rows) {
      if (!row.inSight) continue;
      const scene = { surface: surface(row.canvas, width, row.height), window, palette: theme.palette };
      const kept = this.#tiles.get(row.lane.id);
      if (!kept) continue;
      drawLane(scene, row.lane, kept);
      row.tell(kept.tile, window, all);
      if (!this.#isDrawn) performance.mark(FIRST_LANES);
      this.#isDrawn = true;
    }
  }
}
