// The flame graph of what is selected: zoom, search with share, compare, copy.

import { isAborted } from "../../api/client";
import type { Flame, Range } from "../../api/types";
import { copyButton } from "../../dom/copy";
import { h, place, replace } from "../../dom/element";
import { errorNotice, notice } from "../../dom/notice";
import { eachFrame, Latest, settled } from "../../dom/once";
import { surface } from "../../draw/surface";
import type { Context, View } from "../../shell/context";
import { count, percent, rangeWords, shortId } from "../../time/format";
import { Tooltip } from "../timeline/tooltip";
import { FlameBar } from "./bar";
import { depthAt, drawFlame, heightOf, type Picture, shareAt } from "./drawing";
import { moveFocus } from "./focus";
import { folded, type Layout, layout, nodeAt, shares, stackOf, totalWords, weightWords } from "./layout";
import { nodeOf, pathOf } from "./path";
import { type Found, search } from "./search";
import { TopTable } from "./table";

const ASK_MS = 150;
const MOST_PX = 560;
const LEAST_PX = 160;

export class FlameView implements View {
  readonly element = h("section", { class: "flame", attrs: { id: "flame", "aria-label": "Flame graph" } });
  #canvas = h("canvas", { attrs: { tabindex: "0", role: "img", "aria-label": "Flame graph" } });
  #space = h("div", "space");
  #scroller = h("div", "scroller", this.#canvas, this.#space);
  #about = h("p", { class: "frame-words", attrs: { "aria-live": "polite" } });
  #said = h("div", "said");
  #heading = h("span", "flame-words");
  #tooltip = new Tooltip();
  #bar: FlameBar;
  #top: TopTable;
  #latest = new Latest();
  #flame: Flame | null = null;
  #layout: Layout | null = null;
  #found: Found | null = null;
  #zoom = 0;
  #focus: number | null = null;
  #inSight = false;
  #stale = true;
  #draw = eachFrame(() => this.#paint());
  #ask = settled(ASK_MS, () => void this.#load());

  constructor(private context: Context) {
    this.#bar = new FlameBar(context, () => this.#zoomTo(0));
    this.#top = new TopTable(context);
    document.body.append(this.#tooltip.element);
    new IntersectionObserver(([entry]) => this.#sighted(entry.isIntersecting), { rootMargin: "300px" }).observe(
      this.element,
    );
    new ResizeObserver(() => this.#draw()).observe(this.#scroller);
    this.#scroller.addEventListener("scroll", () => this.#draw());
    context.theme.subscribe(() => {
      this.#bar.update(this.#flame, this.#found);
      this.#draw();
    });
    context.store.subscribe((state, changed) => {
      const asks = ["selection", "base", "by", "value"].some((key) => changed.has(key as "base"));
      if (asks || (changed.has("window") && !state.selection)) this.#moved();
      if (changed.has("search")) this.#search();
      if (changed.has("upright")) this.#turn();
      if (changed.has("frame")) this.#follow();
      if (changed.has("tab") || changed.has("func")) this.#tabs();
    });
    this.#pointer();
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  open(): void {
    this.#flame = this.#layout = this.#focus = null;
    this.#zoom = 0;
    if (!this.context.source.has_stacks) {
      replace(
        this.element,
        h("h2", {}, "Flame graph"),
        notice(
          "blind",
          "No stacks were sampled",
          "`sexton record` samples them as root, unless --no-stacks is given; or drop a perf.data here.",
        ),
      );
      return;
    }
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "Flame graph"), this.#heading, this.#bar.element),
      this.#said,
      this.#scroller,
      this.#about,
      this.#top.element,
    );
    this.#bar.update(null, null);
    this.#moved();
  }

  grow(): void {
    if (!this.context.state.selection) this.#moved();
  }

  focusSearch(): void {
    this.#bar.field.focus();
    this.#bar.field.select();
  }

  #sighted(inSight: boolean): void {
    this.#inSight = inSight;
    if (inSight && this.#stale) this.#ask();
  }

  #moved(): void {
    if (!this.#scroller.isConnected) return;
    this.#stale = true;
    if (this.#inSight) this.#ask();
  }

  async #load(): Promise<void> {
    const { client, source, state, looked } = this.context;
    if (!source.has_stacks) return;
    this.#stale = false;
    this.element.classList.add("asking");
    try {
      const range: Range | null = source.has_times ? looked : null;
      const facet = { by: state.by, value: state.value };
      this.#show(await client.flame(source.id, { range, base: state.base, facet }, this.#latest.next()));
    } catch (error) {
      if (!isAborted(error))
        replace(
          this.#said,
          errorNotice(error, () => this.#moved()),
        );
    } finally {
      this.element.classList.remove("asking");
    }
  }

  #show(flame: Flame): void {
    this.#flame = flame;
    this.#layout = layout(flame);
    this.#zoom = nodeOf(flame, this.context.state.frame);
    this.#focus = null;
    const cut =
      flame.cut &&
      `${count(flame.cut.nodes)} light frames are left out; none has more than ${percent(flame.cut.below / Math.max(1, flame.total))}.`;
    const empty = flame.total === 0 && !flame.base_total;
    replace(
      this.#said,
      empty
        ? notice(
            "empty",
            "No sample here",
            "Every core was idle, or nothing was sampled in this range. Select another one on the heat map.",
          )
        : cut && h("p", "quiet", cut),
    );
    this.#heading.textContent = this.#headingWords(flame);
    replace(this.#about);
    if (this.#zoom > 0) this.#describe(flame, this.#zoom);
    this.#search();
    this.#turn();
    this.#tabs();
  }

  /** The address says which frame; what is not in these samples shows all of them. */
  #follow(): void {
    if (!this.#flame) return;
    const node = nodeOf(this.#flame, this.context.state.frame);
    if (node !== this.#zoom) {
      this.#zoom = node;
      this.#focusOn(node);
    }
  }

  #tabs(): void {
    const { tab } = this.context.state;
    this.#scroller.hidden = this.#about.hidden = tab !== "flame";
    this.#top.element.hidden = tab !== "top";
    this.#bar.update(this.#flame, this.#found);
    if (this.#flame && tab === "top") this.#top.draw(this.#flame);
    if (tab === "flame") this.#draw();
  }

  #headingWords(flame: Flame): string {
    const { source, state } = this.context;
    const part = state.by === "container" ? shortId(state.value) : state.value;
    const what = state.by === "all" || !part ? "" : ` of ${state.by} ${part}`;
    const when = source.has_times ? `, ${rangeWords([flame.from, flame.to], source.clock)}` : "";
    const beside = state.base ? `, compared with ${rangeWords(state.base, source.clock)}` : "";
    return `${totalWords(flame)}${what}${when}${beside}`;
  }

  #search(): void {
    this.#found = this.#flame && search(this.#flame, this.context.state.search);
    if (this.#flame && this.context.state.tab === "top") this.#top.draw(this.#flame);
    this.#bar.update(this.#flame, this.#found);
    this.#draw();
  }

  /** Roots stay in sight whichever way the flames grow. */
  #turn(): void {
    if (!this.#layout) return;
    const full = heightOf(this.#layout);
    const shown = Math.min(MOST_PX, Math.max(LEAST_PX, full));
    place(this.#scroller, { height: `${shown}px` });
    place(this.#space, { height: `${Math.max(0, full - shown)}px` });
    this.#scroller.scrollTop = this.context.state.upright ? full : 0;
    this.#bar.update(this.#flame, this.#found);
    this.#draw();
  }

  #picture(): Picture | null {
    if (!this.#flame || !this.#layout) return null;
    const box = this.#scroller;
    const width = box.clientWidth;
    if (width === 0) return null;
    return {
      flame: this.#flame,
      layout: this.#layout,
      surface: { canvas: this.#canvas, width, height: box.clientHeight } as Picture["surface"],
      palette: this.context.theme.palette,
      found: this.#found,
      zoom: this.#zoom,
      focus: this.#focus,
      upright: this.context.state.upright,
      scrollTop: box.scrollTop,
    };
  }

  #paint(): void {
    const picture = this.#picture();
    if (!picture) return;
    picture.surface = surface(this.#canvas, picture.surface.width, picture.surface.height);
    drawFlame(picture);
    const widest = this.#layout?.levels[1]?.[0];
    const most = widest === undefined ? "" : ` Widest: ${this.#words(widest)}.`;
    this.#canvas.setAttribute(
      "aria-label",
      `Flame graph, ${this.#heading.textContent}.${most} Arrow keys move, Enter zooms, Backspace zooms out, c copies the stack.`,
    );
  }

  #hit(event: MouseEvent): number | null {
    const picture = this.#picture();
    if (!picture) return null;
    const box = this.#canvas.getBoundingClientRect();
    const depth = depthAt(picture, event.clientY - box.top);
    return nodeAt(picture.layout, depth, shareAt(picture, event.clientX - box.left));
  }

  #pointer(): void {
    this.#canvas.addEventListener("pointermove", (event) => {
      const node = this.#hit(event);
      this.#canvas.classList.toggle("pointing", node !== null);
      if (node === null || event.pointerType === "touch") this.#tooltip.hide();
      else
        this.#tooltip.show(
          event.clientX,
          event.clientY,
          h("strong", {}, this.#name(node)),
          h("div", {}, this.#shareWords(node)),
        );
    });
    this.#canvas.addEventListener("pointerleave", () => this.#tooltip.hide());
    this.#canvas.addEventListener("click", (event) => {
      const node = this.#hit(event);
      if (node !== null) this.#zoomTo(node);
    });
  }

  #zoomTo(node: number): void {
    this.#zoom = node;
    this.#focusOn(node);
    if (this.#flame) this.context.store.set({ frame: pathOf(this.#flame, node) }, "step");
  }

  #focusOn(node: number): void {
    this.#focus = node;
    if (this.#flame) this.#describe(this.#flame, node);
    this.#draw();
  }

  #name(node: number): string {
    return this.#flame ? this.#flame.names[this.#flame.nodes.name[node]] : "";
  }

  #shareWords(node: number): string {
    if (!this.#flame) return "";
    const { now, before } = shares(this.#flame, node);
    const kind = ["", ", kernel", ", user"][this.#flame.nodes.kind[node]] ?? "";
    if (before === null) return `${percent(now)}, ${weightWords(this.#flame, node)}${kind}`;
    const change = now - before;
    return `${percent(now)}, before ${percent(before)} (${change >= 0 ? "+" : "−"}${percent(Math.abs(change))})${kind}`;
  }

  #words(node: number): string {
    return `${this.#name(node)}, ${this.#shareWords(node)}`;
  }

  /** The chosen frame and its callers, each to be clicked. */
  #describe(flame: Flame, node: number): void {
    const path = stackOf(flame, node);
    const crumbs = path.map((at, i) =>
      h(
        "button",
        { class: "link", attrs: { type: "button" }, on: { click: () => this.#zoomTo(at) } },
        `${i > 0 ? "› " : ""}${this.#name(at)}`,
      ),
    );
    replace(
      this.#about,
      h("strong", {}, this.#name(node)),
      ` ${this.#shareWords(node)} `,
      copyButton(() => folded(flame, node), "Copy stack"),
      h(
        "button",
        {
          class: "small",
          title: "Count only samples with this function on the heat map",
          attrs: { type: "button" },
          on: { click: () => this.#onHeatMap(node) },
        },
        "On the heat map",
      ),
      h("span", "crumbs", ...crumbs),
    );
  }

  #onHeatMap(node: number): void {
    const name = this.#name(node).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    this.context.store.set({ by: "function", value: `^${name}$` }, "step");
    document.getElementById("heatmap")?.scrollIntoView();
  }

  #key(event: KeyboardEvent): void {
    if (!this.#flame || !this.#layout || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = moveFocus(this.#flame, this.#layout, this.#focus ?? this.#zoom, event.key, this.context.state.upright);
    if (next !== null) this.#focusOn(next);
    else if (event.key === "Enter" && this.#focus !== null) this.#zoomTo(this.#focus);
    else if (event.key === "Backspace") this.#zoomTo(Math.max(0, this.#flame.nodes.parent[this.#zoom]));
    else if (event.key === "c") this.#about.querySelector("button")?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
