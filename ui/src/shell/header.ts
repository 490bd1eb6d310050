// The head of the page: what is looked at, where to go, what can be done with it.

import type { Source } from "../api/types";
import { h, replace } from "../dom/element";
import { dated, length, percent } from "../time/format";
import type { Context } from "./context";

export const SECTIONS: [id: string, words: string][] = [
  ["agent", "Agent"],
  ["verdict", "Verdict"],
  ["timeline", "Time line"],
  ["heatmap", "Heat map"],
  ["flame", "Flame graph"],
  ["zombies", "Zombies"],
];

/** What the page opens at: without an agent, the verdict. */
const FIRST = ["agent", "verdict"];

/** A profile holds stacks alone. */
const OF_PROFILES = ["heatmap", "flame"];

interface Actions {
  choose(id: string): void;
  open(file: File): void;
  help(): void;
  exportPage(): void;
}

export class Header {
  readonly element = h("header", "top");
  #about = h("span", "about");
  #following = h("span", "following");
  #sources = h("span", "sources");
  #nav: HTMLElement;

  constructor(
    private context: Context,
    private actions: Actions,
  ) {
    const { client, theme } = context;
    const button = (words: string, title: string, press: () => void) =>
      h(
        "button",
        // A sign needs words beside it; a word is its own name.
        { class: "small", title, attrs: { type: "button", "aria-label": /\w/.test(words) ? null : title }, on: { click: press } },
        words,
      );
    const nav = h(
      "nav",
      { attrs: { "aria-label": "Views" } },
      ...SECTIONS.map(([id, words]) =>
        h("a", { attrs: { href: `#${id}`, "data-section": id }, on: { click: (event) => jump(event, id) } }, words),
      ),
    );
    replace(
      this.element,
      h(
        "div",
        "top-line",
        h("span", "brand", "sexton"),
        this.#sources,
        this.#about,
        this.#following,
        h("span", "grow"),
        h(
          "span",
          "buttons",
          client.served && this.#opener(),
          client.served && button("Export", "Save this page as one file (e)", () => actions.exportPage()),
          button("◐", "Light or dark (t)", () => theme.toggle()),
          button("?", "Keys and help (?)", () => actions.help()),
        ),
      ),
      nav,
    );
    watchSections(nav, (section) => context.source && context.store.set({ section }));
    this.#nav = nav;
    // What sticks below the head has to know how tall it is: its lines wrap.
    new ResizeObserver(() => {
      document.documentElement.style.setProperty("--head", `${this.element.offsetHeight}px`);
    }).observe(this.element);
  }

  update(sources: Source[]): void {
    const { source } = this.context;
    const select = h(
      "select",
      { attrs: { "aria-label": "Source" }, on: { change: () => this.actions.choose(select.value) } },
      ...sources.map((one) => h("option", { attrs: { value: one.id } }, one.name)),
    );
    select.value = source.id;
    for (const link of this.#nav.querySelectorAll<HTMLElement>("a")) {
      const id = link.dataset.section ?? "";
      link.hidden = id === "agent" ? !this.context.isOfAgent : source.kind === "profile" && !OF_PROFILES.includes(id);
    }
    replace(this.#sources, sources.length > 1 ? select : h("strong", {}, source.name));
    const kernel = source.node ? `${source.node.name}, Linux ${source.node.kernel}` : source.kind;
    const when =
      source.has_times || source.kind === "recording"
        ? `, ${dated(source.from, source.clock)}, ${length(source.to - source.from)}`
        : "";
    const read = source.progress ?? 1;
    const reading = read < 1 && ` (${percent(read)} of it read so far)`;
    replace(this.#about, kernel + when, reading);
    if (source.live !== this.#following.childElementCount > 0) {
      replace(this.#following, source.live && this.#follower());
    }
    document.title = `${source.node?.name ?? source.name}: sexton`;
  }

  /** Whether the page stays as it is while the node goes on. */
  isPaused = false;
  #isAnswered = true;
  #sayState = () => {};

  /** Whether the server still answers: what is shown is live only then. */
  answered(isAnswered: boolean): void {
    this.#isAnswered = isAnswered;
    this.#sayState();
  }

  #follower(): HTMLElement {
    const state = h("span", "live");
    const button = h("button", {
      class: "small",
      attrs: { type: "button" },
      on: {
        click: () => {
          this.isPaused = !this.isPaused;
          this.#sayState();
        },
      },
    });
    this.#sayState = () => {
      const now = this.#isAnswered ? "● live" : "no answer";
      state.textContent = this.isPaused ? "paused" : now;
      button.textContent = this.isPaused ? "Follow" : "Pause";
    };
    this.#sayState();
    return h("span", {}, state, " ", button);
  }

  #opener(): HTMLElement {
    const field = h("input", {
      class: "off-screen",
      attrs: { type: "file", tabindex: "-1", "aria-hidden": "true" },
      on: {
        change: () => {
          const file = field.files?.[0];
          if (file) this.actions.open(file);
          field.value = "";
        },
      },
    });
    const title = "Open a perf.data, perf script text, folded stacks or a packed bundle; or drop it on the page";
    return h(
      "span",
      {},
      h("button", { class: "small", title, attrs: { type: "button" }, on: { click: () => field.click() } }, "Open…"),
      field,
    );
  }
}

/** The address belongs to what is looked at, so links within the page only scroll. */
function jump(event: MouseEvent, id: string): void {
  event.preventDefault();
  goTo(id);
}

export function goTo(id: string): void {
  document.getElementById(id)?.scrollIntoView();
}

function watchSections(nav: HTMLElement, tell: (section: string | null) => void): void {
  const mark = () => {
    const middle = innerHeight * 0.4;
    const inSight = SECTIONS.filter(
      ([id]) => (document.getElementById(id)?.getBoundingClientRect().top ?? Infinity) <= middle,
    );
    const now = inSight[inSight.length - 1]?.[0] ?? FIRST[0];
    tell(FIRST.includes(now) ? null : now);
    for (const link of nav.querySelectorAll<HTMLElement>("a")) {
      if (link.dataset.section === now) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}
