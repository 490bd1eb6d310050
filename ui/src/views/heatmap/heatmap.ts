// The heat map: when cores were busy. A drag selects what the flame graph is of; a drag
// with Shift or Ctrl, what that is compared with.

import { isAborted } from "../../api/client";
import type { HeatMap, Part, Range } from "../../api/types";
import { h, place, replace } from "../../dom/element";
import { errorNotice, notice } from "../../dom/notice";
import { eachFrame, Latest, settled } from "../../dom/once";
import { css, ramp } from "../../draw/ramp";
import { surface } from "../../draw/surface";
import type { Context, View } from "../../shell/context";
import { count, length, moment, plural, rangeWords } from "../../time/format";
import { Tooltip } from "../timeline/tooltip";
import { type Cell, cellAt, gridFor, rangeOfCell, rangeOfCells } from "./cells";
import { Controls } from "./controls";
import { cellImage, drawHeatMap, eventAt, heightOf, type Plot, plotOf } from "./drawing";

const ASK_MS = 120;

export class HeatMapView implements View {
  readonly element = h("section", { class: "heatmap", attrs: { id: "heatmap", "aria-label": "Heat map" } });
  #canvas = h("canvas", { attrs: { tabindex: "0", role: "img", "aria-label": "Heat map of samples" } });
  #place = h("div", "canvas-place", this.#canvas);
  #said = h("div", { class: "said", attrs: { "aria-live": "polite" } });
  #legend = h("span", "legend");
  #tooltip = new Tooltip();
  #controls: Controls;
  #latest = new Latest();
  #map: HeatMap | null = null;
  #image: HTMLCanvasElement | null = null;
  #cursor: Cell | null = null;
  #anchor: Cell | null = null;
  #inSight = false;
  #stale = true;
  /** The next drag is what to compare with: fingers have no Shift. */
  #compares = h("button", {
    class: "small compare",
    title: "The next drag is what the selection is compared with",
    attrs: { type: "button", "aria-pressed": "false" },
    on: { click: () => this.#setCompares(this.#compares.getAttribute("aria-pressed") !== "true") },
  });
  #draw = eachFrame(() => this.#paint());
  #ask = settled(ASK_MS, () => void this.#load());

  constructor(private context: Context) {
    this.#controls = new Controls(context);
    document.body.append(this.#tooltip.element);
    new IntersectionObserver(([entry]) => this.#sighted(entry.isIntersecting), { rootMargin: "200px" }).observe(
      this.element,
    );
    new ResizeObserver(() => this.#moved()).observe(this.#place);
    context.theme.subscribe(() => this.#recolour());
    context.store.subscribe((_, changed) => {
      if (["window", "view", "by", "value"].some((key) => changed.has(key as "window"))) this.#moved();
      if (changed.has("selection") || changed.has("base")) this.#draw();
    });
    this.#compares.textContent = "Compare";
    this.#drags();
    this.#keys();
  }

  open(): void {
    this.#map = this.#image = this.#cursor = null;
    const { source } = this.context;
    if (!source.has_stacks) {
      this.#only(
        notice(
          "blind",
          "No stacks were sampled",
          "`sexton record` samples them as root, unless --no-stacks is given; `sexton doctor` says what is missing here.",
        ),
      );
      return;
    }
    if (!source.has_times) {
      this.#only(notice("empty", "Folded stacks have no times", "The flame graph of all of them is below."));
      return;
    }
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "Heat map"), this.#controls.element),
      this.#place,
      h(
        "p",
        "hint",
        this.#legend,
        h(
          "span",
          "keys",
          h("b", {}, "Drag"),
          " for its flame graph; ",
          h("b", {}, "Shift+drag"),
          " another range for the difference. ",
        ),
        this.#compares,
      ),
      this.#said,
    );
    this.#controls.update(null);
    this.#recolour();
    this.#moved();
  }

  grow(): void {
    this.#moved();
  }

  #setCompares(on: boolean): void {
    this.#compares.setAttribute("aria-pressed", String(on));
  }

  #only(words: HTMLElement): void {
    replace(this.element, h("h2", {}, "Heat map"), words);
  }

  #sighted(inSight: boolean): void {
    this.#inSight = inSight;
    if (inSight && this.#stale) this.#ask();
  }

  #moved(): void {
    if (!this.#place.isConnected) return;
    this.#stale = true;
    this.#controls.update(this.#map);
    this.#draw();
    if (this.#inSight) this.#ask();
  }

  async #load(): Promise<void> {
    const { client, source, state, window } = this.context;
    if (!source.has_times || !source.has_stacks) return;
    this.#stale = false;
    const room = plotOf(this.#place.clientWidth, heightOf(null), state.view).width;
    try {
      const query = {
        range: window,
        view: state.view,
        facet: { by: state.by, value: state.value },
        ...gridFor(state.view, window, room),
      };
      this.#map = await client.heatmap(source.id, query, this.#latest.next());
      this.#cursor = null;
      replace(this.#said);
      if (this.#map.total === 0)
        replace(
          this.#said,
          notice("empty", "No sample in this window", "Idle cores are not counted. Zoom out, or count everything."),
        );
      this.#controls.update(this.#map);
      this.#recolour();
    } catch (error) {
      if (!isAborted(error))
        replace(
          this.#said,
          errorNotice(error, () => this.#moved()),
        );
    }
  }

  #recolour(): void {
    const theme = this.context.theme.name;
    this.#image = this.#map && cellImage(this.#map, theme);
    const scale = h("span", "scale");
    scale.style.setProperty("--ramp", [0, 0.25, 0.5, 0.75, 1].map((share) => css(ramp(theme, share))).join(","));
    const left = this.#map?.tracks_left_out ?? 0;
    const others = left > 0 && `; ${plural(left, "thread")} with fewer samples not shown`;
    replace(this.#legend, "0 ", scale, ` ${count(this.#map?.max ?? 0)} samples in a cell`, others);
    this.#draw();
  }

  #paint(): void {
    const width = this.#place.clientWidth;
    if (!this.#map || width === 0) return;
    const { state, theme, source } = this.context;
    const { selection, base } = state;
    place(this.#place, { "min-height": `${heightOf(this.#map)}px` });
    drawHeatMap(
      {
        map: this.#map,
        surface: surface(this.#canvas, width, heightOf(this.#map)),
        palette: theme.palette,
        clock: source.clock,
        selection,
        base,
        cursor: this.#cursor,
      },
      this.#image,
    );
    this.#canvas.setAttribute(
      "aria-label",
      `Heat map, ${rangeWords([this.#map.from, this.#map.to], source.clock)}, ${count(this.#map.total)} samples. Arrow keys move, Shift+arrows select, Enter shows the flame graph, b compares.`,
    );
  }

  /** Where the pointer is on the canvas, and where the cells are. */
  #at(event: MouseEvent, map: HeatMap): { x: number; y: number; plot: Plot } {
    const box = this.#canvas.getBoundingClientRect();
    const plot = plotOf(box.width, box.height, map.view);
    return { x: event.clientX - box.left, y: event.clientY - box.top, plot };
  }

  #cellOf(event: MouseEvent, map: HeatMap): Cell {
    const { x, y, plot } = this.#at(event, map);
    return cellAt(map, (x - plot.left) / plot.width, (y - plot.top) / plot.height);
  }

  /** The thread whose row the pointer is on. */
  #trackOf(event: MouseEvent, map: HeatMap): Part | undefined {
    return map.view === "threads" ? map.tracks[map.rows - 1 - this.#cellOf(event, map).row] : undefined;
  }

  #drags(): void {
    let start: Cell | null = null;
    let compares = false;
    /** What was chosen before: a touch may turn out to scroll the page. */
    let before: { selection: Range | null; base: Range | null } | null = null;
    this.#canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.#map) return;
      const { x, y, plot } = this.#at(event, this.#map);
      const hit = eventAt(this.#map, plot, x, y);
      if (hit) {
        this.context.show([hit.at, hit.at], this.context.state.finding);
        return;
      }
      const track = x < plot.left && this.#trackOf(event, this.#map);
      if (track) {
        this.context.store.set({ by: "thread", value: track.value }, "step");
        return;
      }
      this.#canvas.setPointerCapture(event.pointerId);
      start = this.#cellOf(event, this.#map);
      before = { selection: this.context.state.selection, base: this.context.state.base };
      const pressed = this.#compares.getAttribute("aria-pressed") === "true";
      compares = pressed || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey;
    });
    this.#canvas.addEventListener("pointermove", (event) => {
      if (!this.#map) return;
      if (start) this.#choose(rangeOfCells(this.#map, start, this.#cellOf(event, this.#map)), compares, "draft");
      this.#hover(event, this.#map);
    });
    this.#canvas.addEventListener("pointerup", (event) => {
      if (start && this.#map)
        this.#choose(rangeOfCells(this.#map, start, this.#cellOf(event, this.#map)), compares, "step");
      if (start) this.#setCompares(false);
      start = null;
    });
    this.#canvas.addEventListener("pointercancel", () => {
      if (start && before) this.context.store.set(before, "step");
      start = null;
    });
    this.#canvas.addEventListener("pointerleave", () => this.#tooltip.hide());
  }

  #choose(range: Range, compares: boolean, how: "step" | "glide" | "draft"): void {
    this.context.store.set(compares ? { base: range } : { selection: range }, how);
  }

  #hover(event: PointerEvent, map: HeatMap): void {
    if (event.pointerType === "touch") return;
    const { x, y, plot } = this.#at(event, map);
    const hit = eventAt(map, plot, x, y);
    const { clock } = this.context.source;
    const track = this.#trackOf(event, map);
    this.#canvas.classList.toggle("pointing", track !== undefined && x < plot.left);
    if (hit) {
      this.#tooltip.show(
        event.clientX,
        event.clientY,
        h("strong", {}, hit.text),
        h("div", "quiet", moment(hit.at, clock, 1000)),
      );
      return;
    }
    const cell = this.#cellOf(event, map);
    const range = rangeOfCell(map, cell);
    const gap = map.gaps.find(([from, to]) => range[0] >= from && range[1] <= to);
    if (gap) {
      const when = h("div", "quiet", moment(range[0], clock, 1000));
      this.#tooltip.show(event.clientX, event.clientY, h("strong", {}, "not seen"), h("div", {}, gap[2]), when);
      return;
    }
    if (track && x < plot.left) {
      const only = h("div", "quiet", "click: only this thread");
      const words = h("div", {}, `${count(track.samples)} samples in this window`);
      this.#tooltip.show(event.clientX, event.clientY, h("strong", {}, track.label), words, only);
      return;
    }
    const value = map.values[cell.row * map.columns + cell.column] ?? 0;
    this.#tooltip.show(
      event.clientX,
      event.clientY,
      track ? h("div", {}, track.label) : "",
      h("strong", {}, plural(value, "sample")),
      h("div", "quiet", `${moment(range[0], clock, 1000)}, ${length(range[1] - range[0])}`),
    );
  }

  #keys(): void {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    this.#canvas.addEventListener("keydown", (event) => {
      const map = this.#map;
      if (!map || map.columns === 0) return;
      const at = this.#cursor ?? { column: Math.floor(map.columns / 2), row: 0 };
      const step = steps[event.key];
      if (step) {
        const next = {
          column: Math.min(map.columns - 1, Math.max(0, at.column + step[0])),
          row: Math.min(map.rows - 1, Math.max(0, at.row + step[1])),
        };
        this.#anchor = event.shiftKey ? (this.#anchor ?? at) : null;
        this.#cursor = next;
        if (this.#anchor) this.#choose(rangeOfCells(map, this.#anchor, next), false, "glide");
        this.#draw();
      } else if (event.key === "Enter") {
        const column = { column: at.column, row: 0 };
        if (!this.#anchor)
          this.#choose(rangeOfCells(map, column, { column: at.column, row: map.rows - 1 }), false, "step");
      } else if (event.key === "b" && this.context.state.selection) {
        this.context.store.set({ base: this.context.state.selection, selection: null }, "step");
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
  }
}
