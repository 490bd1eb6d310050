// What is looked at, as text in the address: a link shows the same view.

import type { HeatBy, HeatView, Range } from "../api/types";

export type FlameTab = "flame" | "top";
export type ZombiesBy = "origin" | "unit" | "file";

export interface State {
  source: string | null;
  /** The window of every view; null is all of it. */
  window: Range | null;
  /** What the flame graph is of; null is the window. */
  selection: Range | null;
  /** What the selection is compared with. */
  base: Range | null;
  view: HeatView;
  by: HeatBy;
  value: string;
  finding: string | null;
  /** The link whose evidence is shown: `CAUSE>EFFECT`. */
  link: string | null;
  search: string;
  /** Flames grow upwards instead of hanging down. */
  upright: boolean;
  /** The frame that fills the flame graph, by the names of its callers and its own. */
  frame: string[];
  /** The flame graph, or its functions as a table. */
  tab: FlameTab;
  /** The function whose callers and callees are shown. */
  func: string;
  zombiesBy: ZombiesBy;
  /** The part of the page that is in sight. */
  section: string | null;
}

export const START: State = {
  source: null,
  window: null,
  selection: null,
  base: null,
  view: "offset",
  by: "all",
  value: "",
  finding: null,
  link: null,
  search: "",
  upright: false,
  frame: [],
  tab: "flame",
  func: "",
  zombiesBy: "origin",
  section: null,
};

const VIEWS: HeatView[] = ["offset", "long", "threads"];
const BYS: HeatBy[] = ["all", "core", "process", "thread", "unit", "container", "pod", "function"];
const TABS: FlameTab[] = ["flame", "top"];
/** Between names in the address: no name has it. */
const BETWEEN = "\u001f";
const LONGEST_FRAME = 2048;
const ZOMBIES: ZombiesBy[] = ["origin", "unit", "file"];

export function toAddress(state: State): string {
  const words = new URLSearchParams();
  const put = (name: string, value: string | null) => value && words.set(name, value);
  put("source", state.source);
  put("window", rangeText(state.window));
  put("selection", rangeText(state.selection));
  put("base", rangeText(state.base));
  put("view", state.view === START.view ? null : state.view);
  put("by", state.by === START.by ? null : state.by);
  put("value", state.value);
  put("finding", state.finding);
  put("search", state.search);
  put("upright", state.upright ? "1" : null);
  put("link", state.link);
  put("frame", frameText(state.frame));
  put("tab", state.tab === START.tab ? null : state.tab);
  put("func", state.func);
  put("section", state.section);
  put("zombies", state.zombiesBy === START.zombiesBy ? null : state.zombiesBy);
  return `#${words}`;
}

/** Anyone can write an address: what makes no sense is left at its start. */
export function fromAddress(hash: string): State {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  return {
    source: short(words.get("source"), 64) || null,
    window: rangeOf(words.get("window")),
    selection: rangeOf(words.get("selection")),
    base: rangeOf(words.get("base")),
    view: oneOf(VIEWS, words.get("view"), START.view),
    by: oneOf(BYS, words.get("by"), START.by),
    value: short(words.get("value"), 512),
    finding: short(words.get("finding"), 1024) || null,
    link: short(words.get("link"), 2048) || null,
    search: short(words.get("search"), 512),
    upright: words.get("upright") === "1",
    frame: short(words.get("frame"), LONGEST_FRAME).split(BETWEEN).filter(Boolean),
    tab: oneOf(TABS, words.get("tab"), START.tab),
    func: short(words.get("func"), 1024),
    section: short(words.get("section"), 32) || null,
    zombiesBy: oneOf(ZOMBIES, words.get("zombies"), START.zombiesBy),
  };
}

/** A stack that is too deep for an address is not in it: half of it would be another frame. */
function frameText(names: string[]): string | null {
  const text = names.join(BETWEEN);
  return text.length <= LONGEST_FRAME ? text : null;
}

function rangeText(range: Range | null): string | null {
  return range && `${Math.round(range[0])}-${Math.round(range[1])}`;
}

function rangeOf(text: string | null): Range | null {
  const found = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? "");
  if (!found) return null;
  const range: Range = [Number(found[1]), Number(found[2])];
  return range[0] < range[1] && range[1] <= Number.MAX_SAFE_INTEGER ? range : null;
}

function oneOf<T extends string>(known: T[], text: string | null, otherwise: T): T {
  return known.includes(text as T) ? (text as T) : otherwise;
}

function short(text: string | null, most: number): string {
  return (text ?? "").slice(0, most);
}
