// Nodes by time: drag to zoom into rows, click one to see it.

import { isAborted } from "../api/client";
import { h, place, replace } from "../dom/element";
import { keepingFocus } from "../dom/focus";
import { errorNotice, notice } from "../dom/notice";
import { eachFrame, Latest } from "../dom/once";
import { count, dated, moment, percent } from "../time/format";
import * as api from "./api";
import type { Context } from "./page";
import { draw, HEIGHT, plotOf } from "./drawing";
import { BLIND, cellWords, colour, edges, isSeverity, NOT_SEEN, rowAt, SEVERITIES, severityWords, worst } from "./words";

/** Rows that are asked for: two pixels each. */
const ROWS = 248;
/** Nodes of the list below, which is for the keyboard too. */
const LISTED = 10;
/** A drag over fewer pixels is a click. */
const CLICK_PX = 4;

export class NodesView {
  readonly element = h("section", { class: "nodes", attrs: { id: "nodes", "aria-label": "Nodes" } });
  #latest = new Latest();
  #heat: api.Heat | null = null;
  #canvas = h("canvas", { attrs: { role: "img" } });
  #place = h("div", "canvas-place", this.#canvas);
  #words = h("span", "window-words");
  #zoom = h("span", "buttons");
  #list = h("div");
  #legend = h("div", "hint");
  #tip = h("div", { class: "tooltip", attrs: { hidden: true } });
  #drag: { from: number; to: number } | null = null;
  #body = h("div");

  constructor(private context: Context) {
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "Nodes by time"), this.#words, this.#zoom),
      this.#body,
      this.#tip,
    );
    const redraw = eachFrame(() => this.#draw());
    new ResizeObserver(redraw).observe(this.#place);
    context.theme.subscribe(() => this.#legends());
    context.theme.subscribe(redraw);
    this.#listen(redraw);
    this.#legends();
  }

  async load(): Promise<void> {
    const signal = this.#latest.next();
    const { state } = this.context;
    try {
      const heat = await api.heat(state, state.rows, ROWS, signal);
      const end = Math.min(heat.from + LISTED, heat.to);
      const single = heat.rows.slice(0, LISTED).every((row) => row.nodes === 1);
      const list = single ? heat : await api.heat(state, [heat.from, end], LISTED, signal);
      this.#heat = heat;
      this.#show(heat, list.rows.slice(0, LISTED));
    } catch (error) {
      if (isAborted(error)) return;
      replace(this.#body, errorNotice(error, () => void this.load()));
    }
  }

  #show(heat: api.Heat, first: api.Row[]): void {
    if (heat.total === 0) {
      replace(this.#body, notice("empty", "No node is like that", "Widen the filters above."));
      replace(this.#words);
      replace(this.#zoom);
      return;
    }
    const shown = heat.to - heat.from;
    const each = Math.ceil(shown / Math.max(1, heat.rows.length));
    const part = shown === heat.total ? `${count(heat.total)} nodes` : `nodes ${count(heat.from + 1)} to ${count(heat.to)} of ${count(heat.total)}`;
    replace(this.#words, each > 1 ? `${part}, about ${count(each)} in a row` : part);
    this.#zooms(heat);
    if (this.#place.parentElement !== this.#body) replace(this.#body, this.#place, this.#legend, this.#list);
    replace(this.#list, groupsTable(heat), this.#table(first));
    const bad = heat.groups.reduce((sum, group) => sum + group.bad, 0);
    this.#canvas.setAttribute("aria-label", `Nodes by time: ${part}; ${count(bad)} of ${count(heat.total)} were serious or critical`);
    this.#draw();
  }

  #zooms(heat: api.Heat): void {
    const size = heat.to - heat.from;
    const go = (from: number, to: number) => {
      const first = Math.max(0, Math.min(from, heat.total - 1));
      const last = Math.max(first + 1, Math.min(to, heat.total));
      this.context.store.set({ rows: first === 0 && last === heat.total ? null : [first, last] }, "step");
    };
    const button = (words: string, title: string, off: boolean, press: () => void) =>
      h("button", { class: "small", title, attrs: { type: "button", disabled: off, "data-key": words }, on: { click: press } }, words);
    const draw = () => replace(
      this.#zoom,
      button("All", "All nodes (Esc)", size === heat.total, () => go(0, heat.total)),
      button("Zoom in", "The first quarter of these nodes", size <= 1, () => go(heat.from, heat.from + Math.ceil(size / 4))),
      button("Zoom out", "Four times as many nodes", size === heat.total, () => go(heat.from - Math.ceil(1.5 * size), heat.to + Math.ceil(1.5 * size))),
      button("Previous", "The nodes before these", heat.from === 0, () => go(heat.from - size, heat.from)),
      button("Next", "The nodes after these", heat.to === heat.total, () => go(heat.to, heat.to + size)),
    );
    keepingFocus(this.#zoom, draw);
  }

  #table(rows: api.Row[]): HTMLElement {
    return h(
      "table",
      "records",
      h("caption", "off-screen", "The first nodes of those that are shown"),
      h("thead", {}, h("tr", {}, ...["Node", "Worst", "Hours at worst", "Last report"].map((words) => h("th", { attrs: { scope: "col" } }, words)))),
      h("tbody", {}, ...rows.map((row) => this.#row(row))),
    );
  }

  #row(row: api.Row): HTMLElement {
    const { fleet } = this.context;
    const most = worst(row.cells);
    const hours = ([...row.cells].filter((sign) => sign === most).length * fleet.step) / 3.6e9;
    const last = row.cells.length - 1 - [...row.cells].reverse().findIndex((sign) => sign !== NOT_SEEN);
    const open = () => this.context.store.set({ node: row.names[0] }, "step");
    const cell = (head: string, ...children: (Node | string)[]) => h("td", { attrs: { "data-head": head } }, ...children);
    return h(
      "tr",
      {},
      cell("Node", h("button", { class: "link", attrs: { type: "button" }, on: { click: open } }, row.names[0])),
      cell("Worst", h("span", isSeverity(most) ? `severity-${most}` : "", severityWords(most))),
      cell("Hours at worst", count(hours)),
      cell("Last report", `${moment(fleet.from + last * fleet.step, "wall", 6e7)} UTC`),
    );
  }

  #draw(): void {
    const width = this.#place.clientWidth;
    if (!this.#heat || width < 120) return;
    const { fleet, theme } = this.context;
    draw(this.#canvas, width, theme.palette, fleet, this.#heat);
    if (!this.#drag) return;
    const pen = this.#canvas.getContext("2d");
    const plot = plotOf(width);
    if (!pen) return;
    pen.strokeStyle = theme.palette.mark;
    pen.lineWidth = 2;
    const [top, bottom] = [this.#drag.from, this.#drag.to].sort((a, b) => a - b);
    pen.strokeRect(plot.left, top, plot.width, bottom - top);
  }

  #legends(): void {
    const { theme } = this.context;
    const key = (sign: string, words: string) => {
      const swatch = h("span", "swatch");
      place(swatch, { background: isSeverity(sign) ? colour(theme.name, sign) : `repeating-linear-gradient(45deg, var(--hatch) 0 1px, ${sign === BLIND ? "var(--line)" : "transparent"} 1px 4px)` });
      return h("span", "key", swatch, words);
    };
    replace(
      this.#legend,
      h("span", "legend", ...SEVERITIES.map((words, i) => key(String(i), words)), key(BLIND, severityWords(BLIND)), key(NOT_SEEN, severityWords(NOT_SEEN))),
      h("span", {}, "A row of several nodes has the worst of them. Drag over rows to zoom, click for more."),
    );
  }

  #listen(redraw: () => void): void {
    const canvas = this.#canvas;
    const y = (event: PointerEvent) => event.clientY - canvas.getBoundingClientRect().top;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      canvas.setPointerCapture(event.pointerId);
      this.#drag = { from: y(event), to: y(event) };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.#drag) {
        this.#drag.to = y(event);
        redraw();
      }
      this.#point(event);
    });
    canvas.addEventListener("pointerleave", () => (this.#tip.hidden = true));
    canvas.addEventListener("pointercancel", () => (this.#drag = null));
    canvas.addEventListener("pointerup", () => this.#drop());
    canvas.addEventListener("click", (event) => {
      // A finger only taps: its drag scrolls the page.
      if ((event as PointerEvent).pointerType === "touch") this.#choose(event.clientY - canvas.getBoundingClientRect().top);
    });
  }

  #drop(): void {
    const drag = this.#drag;
    this.#drag = null;
    if (!drag || !this.#heat) return;
    if (Math.abs(drag.to - drag.from) < CLICK_PX) return this.#choose(drag.to);
    const rows = [drag.from, drag.to].sort((a, b) => a - b).map((y) => this.#rowAt(y));
    const [first, last] = [rows[0] ?? 0, rows[1] ?? this.#heat.rows.length - 1];
    this.#into(this.#heat.rows[first], this.#heat.rows[last]);
  }

  #choose(y: number): void {
    const at = this.#rowAt(y);
    const row = at === null ? undefined : this.#heat?.rows[at];
    if (!row) return;
    if (row.nodes === 1) this.context.store.set({ node: row.names[0] }, "step");
    else this.#into(row, row);
  }

  #into(first: api.Row, last: api.Row): void {
    this.context.store.set({ rows: [first.first, last.first + last.nodes] }, "step");
  }

  #rowAt(y: number): number | null {
    if (!this.#heat) return null;
    const plot = plotOf(this.#place.clientWidth);
    return rowAt(edges(this.#heat.rows), (y - plot.top) / plot.height);
  }

  #point(event: PointerEvent): void {
    const box = this.#canvas.getBoundingClientRect();
    const plot = plotOf(this.#place.clientWidth);
    const { fleet } = this.context;
    const at = this.#rowAt(event.clientY - box.top);
    const column = Math.floor(((event.clientX - box.left - plot.left) / plot.width) * fleet.columns_of_time);
    const row = at === null ? undefined : this.#heat?.rows[at];
    this.#tip.hidden = !row || column < 0 || column >= fleet.columns_of_time;
    if (this.#tip.hidden || !row) return;
    replace(this.#tip, `${cellWords(row, column)}; ${dated(fleet.from + column * fleet.step, "wall").slice(0, 16)} UTC`);
    const left = Math.min(event.clientX + 14, innerWidth - this.#tip.offsetWidth - 8);
    const top = event.clientY - box.top > HEIGHT / 2 ? event.clientY - this.#tip.offsetHeight - 10 : event.clientY + 14;
    place(this.#tip, { left: `${Math.max(4, left)}px`, top: `${top}px` });
  }
}

/** How many nodes of each group are bad: what a spared group is seen by. */
function groupsTable(heat: api.Heat): HTMLElement | null {
  if (!heat.groups.some((group) => group.value !== null)) return null;
  const row = (group: api.Group) => {
    const share = group.nodes > 0 ? group.bad / group.nodes : 0;
    const bar = h("span", "amount");
    place(bar, { "--share": String(share) });
    return h(
      "tr",
      {},
      h("td", { attrs: { "data-head": "Group" } }, group.value),
      h("td", { attrs: { "data-head": "Nodes" } }, count(group.nodes)),
      h("td", { attrs: { "data-head": "Bad" } }, h("span", "amount-cell", `${count(group.bad)} (${percent(share)})`, bar)),
    );
  };
  return h(
    "table",
    "records groups",
    h("caption", "off-screen", "Groups of nodes, and how many of each were serious or critical"),
    h("thead", {}, h("tr", {}, ...["Group", "Nodes", "Serious or critical"].map((words) => h("th", { attrs: { scope: "col" } }, words)))),
    h("tbody", {}, ...heat.groups.map(row)),
  );
}
