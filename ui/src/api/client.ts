// What views ask for, whoever answers: a server, or the data inside an exported page.

import type {
  Agent,
  Diagnosis,
  Flame,
  HeatBy,
  HeatMap,
  HeatView,
  Lanes,
  Range,
  Source,
  Sources,
  Tiles,
  Zombies,
} from "./types";

/** Which samples a heat map or a flame graph is about. */
export interface Facet {
  by: HeatBy;
  value: string;
}

export interface HeatQuery {
  range: Range;
  view: HeatView;
  facet: Facet;
  rows: number;
  columns: number;
}

export interface FlameQuery {
  /** Null where samples have no times: all of them. */
  range: Range | null;
  base: Range | null;
  facet: Facet;
}

export interface Client {
  /** Whether files can be opened and pages exported: someone is there to answer. */
  readonly served: boolean;
  sources(signal?: AbortSignal): Promise<Sources>;
  /** One source; an incident of the agent is opened by this. */
  source(id: string, signal?: AbortSignal): Promise<Source>;
  agent(signal?: AbortSignal): Promise<Agent>;
  diagnosis(id: string, signal?: AbortSignal): Promise<Diagnosis>;
  lanes(id: string, signal?: AbortSignal): Promise<Lanes>;
  tiles(id: string, lanes: string[], range: Range, width: number, signal?: AbortSignal): Promise<Tiles>;
  heatmap(id: string, query: HeatQuery, signal?: AbortSignal): Promise<HeatMap>;
  flame(id: string, query: FlameQuery, signal?: AbortSignal): Promise<Flame>;
  zombies(id: string, signal?: AbortSignal): Promise<Zombies>;
  open(file: File): Promise<Source>;
  /** The samples of a flame graph as pprof. */
  pprofAddress(id: string, query: FlameQuery): string;
  exportAddress(id: string, range: Range | null): string;
}

/** What went wrong, and what to do about it where that is known. */
export class Trouble extends Error {
  constructor(
    message: string,
    readonly status: number | null = null,
  ) {
    super(message);
  }
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
