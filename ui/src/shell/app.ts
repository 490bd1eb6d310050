// Puts the page together: header, views, keys; opens sources and follows live ones.

import type { Client } from "../api/client";
import type { Source, Sources } from "../api/types";
import { h, replace } from "../dom/element";
import { errorNotice, notice } from "../dom/notice";
import { fromAddress } from "../state/address";
import { Store } from "../state/store";
import { Theme } from "../theme/theme";
import { AgentView } from "../views/agent/agent";
import { FlameView } from "../views/flame/flame";
import { HeatMapView } from "../views/heatmap/heatmap";
import { Timeline } from "../views/timeline/timeline";
import { Verdict } from "../views/verdict/verdict";
import { ZombiesView } from "../views/zombies/zombies";
import { Context, type View } from "./context";
import { drops } from "./drop";
import { goTo, Header, SECTIONS } from "./header";
import { Help } from "./help";
import { keys } from "./keys";

/** How often a recording that still grows, or is still being read, is looked at again. */
const LIVE_MS = 5_000;
const READING_MS = 1_000;
/** Judging costs the server more, so it is asked for less often: every so many looks. */
const JUDGE_EVERY = 4;
/** How often, and after how long, one that has just begun is asked again. */
const YOUNG_TRIES = 10;
const YOUNG_MS = 300;
/** How long a page that is opened at a part of it is held there. */
const SETTLE_MS = 2_000;

export class App {
  #context: Context;
  #sources: Source[] = [];
  #verdict: Verdict;
  #timeline: Timeline;
  #flame: FlameView;
  #views: View[];
  #header: Header;
  #help = new Help();
  #toast = h("div", { class: "toast", attrs: { role: "status", hidden: true } });
  #main = h("main", {});

  constructor(
    private root: HTMLElement,
    private client: Client,
  ) {
    this.#context = new Context(client, new Store(), new Theme());
    this.#verdict = new Verdict(this.#context);
    this.#timeline = new Timeline(this.#context);
    this.#flame = new FlameView(this.#context);
    this.#views = [
      new AgentView(this.#context, (id) => void this.#openIncident(id)),
      this.#verdict,
      this.#timeline,
      new HeatMapView(this.#context),
      this.#flame,
      new ZombiesView(this.#context),
    ];
    this.#verdict.subscribe((diagnosis) => this.#timeline.judged(diagnosis));
    this.#header = new Header(this.#context, {
      choose: (id) => this.#context.store.set(fresh(id), "step"),
      open: (file) => void this.#openFile(file),
      help: () => this.#help.toggle(),
      exportPage: () => this.#export(),
    });
    this.#context.store.subscribe((state, changed) => {
      if (changed.has("source") && state.source) this.#open(state.source);
    });
    keys(this.#keys());
  }

  async start(): Promise<void> {
    replace(
      this.root,
      this.#header.element,
      this.#main,
      this.#help.element,
      this.#toast,
      this.client.served ? drops((file) => void this.#openFile(file)) : null,
    );
    try {
      const { sources, agent } = await this.#firstSources();
      this.#sources = sources;
      this.#context.hasAgent = agent;
    } catch (error) {
      replace(
        this.#main,
        title("sexton"),
        errorNotice(error, () => void this.start()),
      );
      return;
    }
    if (this.#sources.length === 0) {
      replace(
        this.#main,
        title("sexton"),
        notice(
          "empty",
          "No recording is open",
          "Start `sexton serve BUNDLE`, or drop a perf.data, perf script text, folded stacks or a packed bundle here.",
        ),
      );
      return;
    }
    await this.#find(fromAddress(location.hash).source);
    this.#context.store.followAddress();
    const asked = this.#context.state.source;
    if (!this.#sources.some((source) => source.id === asked)) {
      const gone = asked !== null;
      this.#context.store.set(gone ? fresh(this.#sources[0].id) : { source: this.#sources[0].id });
      if (gone) this.#say("That recording is no longer open; this one is shown instead.");
    }
    this.#goToSection();
    void this.#watch();
  }

  /** A recording that has just begun has not noted the time of day: what is asked in times
      since boot would mean nothing a moment later. */
  async #firstSources(): Promise<Sources> {
    for (let tried = 1; ; tried++) {
      const answer = await this.client.sources();
      const isYoung = answer.sources.some((source) => source.live && source.clock === "boot");
      if (!isYoung || tried === YOUNG_TRIES) return answer;
      await new Promise((wake) => setTimeout(wake, YOUNG_MS));
    }
  }

  /** A link may lead to an incident, which is opened when it is asked for. */
  async #find(id: string | null): Promise<void> {
    const isKnown = this.#sources.some((source) => source.id === id);
    if (id === null || isKnown || !this.#context.hasAgent) return;
    try {
      this.#sources = [...this.#sources, await this.client.source(id)];
    } catch {
      // It is not there any more: the page says so.
    }
  }

  async #openIncident(id: string): Promise<void> {
    await this.#find(id);
    if (!this.#sources.some((source) => source.id === id)) {
      this.#say("The agent does not keep that incident any more.");
      return;
    }
    this.#context.store.set(fresh(id), "step");
    scrollTo(0, 0);
  }

  /** Where the address was copied from. What is above it grows while it is read. */
  #goToSection(): void {
    const { section } = this.#context.state;
    if (!section) return;
    const until = performance.now() + SETTLE_MS;
    const stop = ["wheel", "pointerdown", "keydown"];
    let wanted = true;
    const leave = () => (wanted = false);
    for (const event of stop) addEventListener(event, leave, { once: true, passive: true });
    const step = () => {
      if (!wanted || performance.now() > until) return;
      goTo(section);
      setTimeout(step, 150);
    };
    step();
  }

  #open(id: string): void {
    const source = this.#sources.find((source) => source.id === id);
    if (!source) return;
    this.#context.source = source;
    this.#header.update(this.#sources);
    const notes = source.notes.length > 0 && notice("blind", "Parts of it could not be read", source.notes.join(" "));
    this.#main.className = source.kind;
    replace(this.#main, title(source.name), notes, ...this.#views.map((view) => view.element));
    for (const view of this.#views) view.open();
  }

  async #openFile(file: File): Promise<void> {
    this.#say(`Opening ${file.name}…`, true);
    try {
      const source = await this.client.open(file);
      this.#sources = [...this.#sources.filter((known) => known.id !== source.id), source];
      this.#toast.hidden = true;
      this.#context.store.set(fresh(source.id), "step");
      scrollTo(0, 0);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#say(message.startsWith(file.name) ? message : `${file.name}: ${message}`);
    }
  }

  async #watch(): Promise<void> {
    // Looked at often, asked seldom: a file may be dropped, and read, while nothing else is.
    for (let waited = READING_MS; ; waited += READING_MS) {
      await new Promise((wake) => setTimeout(wake, READING_MS));
      const reading = (this.#context.source?.progress ?? 1) < 1;
      if (!reading && waited < LIVE_MS) continue;
      waited = 0;
      await this.#follow();
    }
  }

  #looks = 0;

  /** A live source has grown: what shows its end follows, what was zoomed into stays. */
  async #follow(): Promise<void> {
    const reading = (this.#context.source?.progress ?? 1) < 1;
    if (document.hidden || this.#header.isPaused || !(this.#context.source?.live || reading)) return;
    try {
      this.#sources = (await this.client.sources()).sources;
      this.#header.answered(true);
    } catch {
      this.#header.answered(false);
      this.#say("The server does not answer; showing what it sent last.");
      return;
    }
    const before = this.#context.source;
    const now = this.#sources.find((source) => source.id === before.id);
    if (!now) return;
    const { window } = this.#context.state;
    const atEnd = window && window[1] >= before.to - 1000;
    this.#context.source = now;
    this.#header.update(this.#sources);
    if (window && atEnd) this.#context.setWindow([window[0] + now.to - before.to, window[1] + now.to - before.to]);
    this.#looks++;
    for (const view of this.#views) {
      const judges = reading || this.#looks % JUDGE_EVERY === 0;
      if (view !== this.#verdict || judges) view.grow?.();
    }
  }

  #export(): void {
    if (!this.client.served || !this.#context.source) return;
    const link = h("a", {
      attrs: {
        href: this.client.exportAddress(this.#context.source.id, this.#context.state.window),
        download: `sexton-${this.#context.source.name}.html`,
      },
    });
    document.body.append(link);
    link.click();
    link.remove();
    this.#say("Saved as a self-contained file: no server, no network.");
  }

  #say(words: string, stays = false): void {
    replace(
      this.#toast,
      words,
      h(
        "button",
        {
          class: "small",
          attrs: { type: "button", "aria-label": "Close" },
          on: { click: () => (this.#toast.hidden = true) },
        },
        "×",
      ),
    );
    this.#toast.hidden = false;
    if (!stays) setTimeout(() => (this.#toast.hidden = true), 8000);
  }

  #keys(): Record<string, () => void> {
    const { store, theme } = this.#context;
    const numbered = SECTIONS.filter(([id]) => id !== "agent");
    const sections = Object.fromEntries(numbered.map(([id], i) => [String(i + 1), () => goTo(id)]));
    const open = (act: () => void) => () => this.#context.source && act();
    return {
      ...sections,
      ArrowLeft: open(() => this.#timeline.pan(-0.2)),
      ArrowRight: open(() => this.#timeline.pan(0.2)),
      "+": open(() => this.#timeline.zoom(0.5)),
      "=": open(() => this.#timeline.zoom(0.5)),
      "-": open(() => this.#timeline.zoom(2)),
      "0": () => store.set({ window: null }, "step"),
      "/": open(() => this.#flame.focusSearch()),
      i: () => store.set({ upright: !store.state.upright }),
      w: open(() => this.#timeline.zoom(0.5)),
      s: open(() => this.#timeline.zoom(2)),
      a: open(() => this.#timeline.pan(-0.2)),
      d: open(() => this.#timeline.pan(0.2)),
      x: () => store.set({ base: null }, "step"),
      Escape: () => store.set({ selection: null, base: null, finding: null, link: null }, "step"),
      t: () => theme.toggle(),
      e: open(() => this.#export()),
      "?": () => this.#help.toggle(),
    };
  }
}

/** Another source: what was selected in the one before means nothing there. */
function fresh(source: string) {
  return {
    source,
    window: null,
    selection: null,
    base: null,
    finding: null,
    link: null,
    frame: [],
    func: "",
    section: null,
    by: "all" as const,
    value: "",
    search: "",
  };
}

/** What the page is about, for who cannot see its head; a verdict's headline says more. */
function title(name: string): HTMLElement {
  return h("h1", "off-screen", name);
}
