// The fleet page: its head, filters and views.

import { copyButton } from "../dom/copy";
import { h, replace } from "../dom/element";
import { errorNotice, notice } from "../dom/notice";
import { keys } from "../shell/keys";
import { StoreOf } from "../state/store";
import { Theme } from "../theme/theme";
import { count, dated } from "../time/format";
import * as api from "./api";
import { CausesView } from "./causes";
import { CompareView } from "./compare";
import { Filters } from "./filters";
import { NodeView } from "./node";
import { NodesView } from "./nodes";
import { CODEC, type State, type Store } from "./state";

/** How often the page asks whether the bucket was read again. */
const LOOK_MS = 30_000;

/** What every view has in common. */
export interface Context {
  readonly theme: Theme;
  readonly store: Store;
  readonly state: State;
  readonly fleet: api.Fleet;
}

/** What a view shows that depends on the nodes that are chosen. */
const CHOICE: (keyof State)[] = ["where", "name", "code", "severity"];

export class FleetPage {
  readonly theme = new Theme();
  readonly store: Store = new StoreOf(CODEC);
  fleet!: api.Fleet;
  #filters = new Filters(this);
  #nodes = new NodesView(this);
  #node = new NodeView(this);
  #causes = new CausesView(this);
  #compare = new CompareView(this);
  #about = h("span", "about");
  #notes = h("div");
  #main = h("main");

  constructor(private root: HTMLElement) {}

  get state(): State {
    return this.store.state;
  }

  async start(): Promise<void> {
    replace(this.root, this.#header(), this.#main);
    try {
      this.fleet = await api.fleet();
    } catch (error) {
      replace(this.#main, errorNotice(error, () => void this.start()));
      return;
    }
    replace(
      this.#main,
      h("h1", "off-screen", "The fleet"),
      this.#notes,
      this.#filters.element,
      this.#nodes.element,
      this.#node.element,
      this.#causes.element,
      this.#compare.element,
    );
    this.store.followAddress();
    this.store.subscribe((_, changed) => this.#follow(changed));
    this.#all();
    keys({
      t: () => this.theme.toggle(),
      Escape: () => this.store.set(this.state.node ? { node: "" } : { rows: null }, "step"),
    });
    setInterval(() => void this.#look(), LOOK_MS);
  }

  #header(): HTMLElement {
    const toggle = h(
      "button",
      { class: "small", title: "Light or dark (t)", attrs: { type: "button", "aria-label": "Light or dark (t)" }, on: { click: () => this.theme.toggle() } },
      "◐",
    );
    const link = copyButton(() => location.href, "Copy link");
    return h(
      "header",
      "top",
      h("div", "top-line", h("span", "brand", "sexton fleet"), this.#about, h("span", "grow"), h("span", "buttons", link, toggle)),
      h("nav", { attrs: { "aria-label": "Views" } }, ...["nodes", "causes", "compare"].map(jump)),
    );
  }

  #follow(changed: Set<keyof State>): void {
    const has = (...keys: (keyof State)[]) => keys.some((key) => changed.has(key));
    if (has(...CHOICE, "by", "sort")) this.#filters.update();
    if (has(...CHOICE, "by", "sort", "rows")) void this.#nodes.load();
    if (has(...CHOICE)) void this.#causes.load();
    if (has("node")) void this.#openNode();
    if (has("bad", "good", "compared")) void this.#compare.load();
  }

  async #openNode(): Promise<void> {
    await this.#node.load();
    if (this.state.node) this.#node.element.scrollIntoView({ block: "nearest" });
  }

  /** Everything, as after the bucket was read. */
  #all(): void {
    this.#say();
    this.#filters.update();
    void this.#nodes.load();
    void this.#node.load();
    void this.#causes.load();
    void this.#compare.load();
  }

  async #look(): Promise<void> {
    if (document.hidden) return;
    try {
      const before = this.fleet;
      this.fleet = await api.fleet();
      if (this.fleet.read_at !== before.read_at) this.#all();
      else this.#say();
    } catch {
      replace(this.#notes, notice("blind", "The server does not answer", "This page shows what it sent last."));
    }
  }

  #say(): void {
    const { fleet } = this;
    const read = dated(fleet.read_at, "wall");
    replace(
      this.#about,
      `${fleet.lake}, ${count(fleet.nodes)} nodes, ${count(fleet.bad)} serious or critical, ${count(fleet.reports)} reports, last ${fleet.hours} h; read ${read} UTC`,
    );
    document.title = `${count(fleet.bad)} of ${count(fleet.nodes)} nodes: sexton fleet`;
    replace(
      this.#notes,
      fleet.not_read_since && notice("blind", "The bucket could not be read again", `${fleet.not_read_since}. This page shows what was read ${read} UTC.`),
      fleet.problems.length > 0 && notice("blind", "Problems of the bucket", fleet.problems.join("; ")),
    );
  }
}

function jump(id: string): HTMLElement {
  const go = (event: MouseEvent) => {
    event.preventDefault();
    document.getElementById(id)?.scrollIntoView();
  };
  const words = id[0].toUpperCase() + id.slice(1);
  return h("a", { attrs: { href: `#${id}` }, on: { click: go } }, words);
}
