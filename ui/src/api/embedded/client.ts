// Answers from the data inside the page, in the server's place.

import type { Client, FlameQuery, HeatQuery } from "../client";
import { Trouble } from "../client";
import type {
  Agent,
  Diagnosis,
  Exported,
  Flame,
  HeatMap,
  Lanes,
  Range,
  Source,
  Sources,
  Tiles,
  TimelineEvent,
  Zombies,
} from "../types";
import { countCells } from "./count";
import { fold } from "./fold";
import { type Columns, columns } from "./samples";

const NOT_KEPT =
  "This file does not hold the samples of that range: there were too many. Open the bundle with `sexton serve`.";

export class EmbeddedClient implements Client {
  readonly served = false;
  #columns: Columns | null;

  constructor(private data: Exported) {
    this.#columns = data.samples && columns(data.samples);
  }

  async sources(): Promise<Sources> {
    return { sources: [{ ...this.data.source, live: false }], version: this.data.version, agent: false };
  }

  async source(): Promise<Source> {
    return { ...this.data.source, live: false };
  }

  async agent(): Promise<Agent> {
    throw new Trouble("A page from disk has no agent.");
  }

  async diagnosis(): Promise<Diagnosis> {
    return held(this.data.diagnosis, "verdict");
  }

  async lanes(): Promise<Lanes> {
    return this.data.lanes;
  }

  /** All of it, however little is asked for: it is here already. */
  async tiles(_id: string, lanes: string[], range: Range): Promise<Tiles> {
    const wanted = new Set(lanes);
    return {
      from: range[0],
      to: range[1],
      tiles: this.data.tiles.tiles.filter((tile) => wanted.has(tile.lane)),
    };
  }

  async heatmap(_id: string, query: HeatQuery): Promise<HeatMap> {
    const events = this.#events(query.range);
    if (this.#columns) return { ...countCells(this.#columns, query), events };
    const { by, value } = query.facet;
    const kept = this.data.heatmaps.find(
      (one) => one.view === query.view && one.by === by && (one.value ?? "") === value,
    );
    if (!kept) throw new Trouble(NOT_KEPT);
    return kept.heatmap;
  }

  async flame(_id: string, query: FlameQuery): Promise<Flame> {
    if (this.#columns) return fold(this.#columns, query);
    if (query.facet.value) throw new Trouble(NOT_KEPT);
    const alike = (from: number | null, to: number | null, range: Range | null) =>
      range ? from === range[0] && to === range[1] : from === null;
    const kept = this.data.flames.find(
      (one) =>
        (query.range === null || alike(one.from, one.to, query.range)) && alike(one.base_from, one.base_to, query.base),
    );
    if (!kept) throw new Trouble(NOT_KEPT);
    return kept.flame;
  }

  async zombies(): Promise<Zombies> {
    return held(this.data.zombies, "census");
  }

  async open(): Promise<Source> {
    throw new Trouble("A page from disk cannot open files. `sexton serve` can.");
  }

  pprofAddress(): string {
    return "";
  }

  exportAddress(): string {
    return "";
  }

  /** The events that the server would put on a heat map. */
  #events(range: Range): TimelineEvent[] {
    const kept = this.data.heatmaps.find((one) => one.by === "all")?.heatmap.events ?? [];
    return kept.filter((event) => event.at >= range[0] && event.at < range[1]);
  }
}

function held<T>(value: T | null, name: string): T {
  if (value === null) throw new Trouble(`This file holds no ${name}.`);
  return value;
}
