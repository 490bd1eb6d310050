// Asks `sexton serve`. Every question can be given up when the view has moved on.

import type { Client, Facet, FlameQuery, HeatQuery } from "./client";
import { Trouble } from "./client";
import type { Agent, Diagnosis, Flame, HeatBy, HeatMap, Lanes, Range, Source, Sources, Tiles, Zombies } from "./types";

const BASE = "api/v1";

/** Frames of a flame graph; the server leaves the lightest out beyond that. */
const MOST_FRAMES = 150_000;

/** How often a busy server is asked again, and how long to wait before that. */
const BUSY_TRIES = 4;
const BUSY_WAIT_MS = 250;

export class HttpClient implements Client {
  readonly served = true;

  sources(signal?: AbortSignal): Promise<Sources> {
    return ask("sources", new URLSearchParams(), signal);
  }

  source(id: string, signal?: AbortSignal): Promise<Source> {
    return ask(`sources/${encodeURIComponent(id)}`, new URLSearchParams(), signal);
  }

  agent(signal?: AbortSignal): Promise<Agent> {
    return ask("agent", new URLSearchParams(), signal);
  }

  diagnosis(id: string, signal?: AbortSignal): Promise<Diagnosis> {
    return ask(`sources/${id}/diagnosis`, new URLSearchParams(), signal);
  }

  lanes(id: string, signal?: AbortSignal): Promise<Lanes> {
    return ask(`sources/${id}/lanes`, new URLSearchParams(), signal);
  }

  tiles(id: string, lanes: string[], range: Range, width: number, signal?: AbortSignal): Promise<Tiles> {
    const query = window_(range);
    for (const lane of lanes) query.append("lane", lane);
    query.set("width", String(width));
    return ask(`sources/${id}/tiles`, query, signal);
  }

  heatmap(id: string, asked: HeatQuery, signal?: AbortSignal): Promise<HeatMap> {
    const query = window_(asked.range);
    query.set("view", asked.view);
    query.set("by", asked.facet.by);
    if (asked.facet.by !== "all" && asked.facet.value) query.set("value", asked.facet.value);
    query.set("rows", String(asked.rows));
    query.set("columns", String(asked.columns));
    return ask(`sources/${id}/heatmap`, query, signal);
  }

  flame(id: string, asked: FlameQuery, signal?: AbortSignal): Promise<Flame> {
    const query = asked.range ? window_(asked.range) : new URLSearchParams();
    query.set("nodes", String(MOST_FRAMES));
    narrow(query, asked.facet);
    if (asked.base) {
      query.set("base_from", String(Math.floor(asked.base[0])));
      query.set("base_to", String(Math.ceil(asked.base[1])));
    }
    return ask(`sources/${id}/flame`, query, signal);
  }

  zombies(id: string, signal?: AbortSignal): Promise<Zombies> {
    return ask(`sources/${id}/zombies`, new URLSearchParams(), signal);
  }

  async open(file: File): Promise<Source> {
    const name = new URLSearchParams({ name: file.name || "dropped" });
    const answer = await reach(`${BASE}/sources?${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream" },
      body: file,
    });
    return read(answer);
  }

  pprofAddress(id: string, asked: FlameQuery): string {
    const query = asked.range ? window_(asked.range) : new URLSearchParams();
    narrow(query, asked.facet);
    return `${BASE}/sources/${id}/profile.pb.gz?${query}`;
  }

  exportAddress(id: string, range: Range | null): string {
    const query = range ? `?${window_(range)}` : "";
    return `${BASE}/sources/${id}/export.html${query}`;
  }
}

function window_(range: Range): URLSearchParams {
  return new URLSearchParams({
    from: String(Math.max(0, Math.floor(range[0]))),
    to: String(Math.max(1, Math.ceil(range[1]))),
  });
}

/** A part of a heat map is named otherwise when asking for its flame graph. */
function narrow(query: URLSearchParams, facet: Facet): void {
  if (facet.by === "all" || !facet.value) return;
  const others: Partial<Record<HeatBy, string>> = { core: "cpu", process: "pid", thread: "tid" };
  query.set(others[facet.by] ?? facet.by, facet.value);
}

/** Asks once, and again if the server is busy. */
export async function ask<T>(path: string, query: URLSearchParams, signal?: AbortSignal): Promise<T> {
  const text = query.toString();
  const address = `${BASE}/${path}${text ? `?${text}` : ""}`;
  for (let tried = 1; ; tried++) {
    const answer = await reach(address, { signal: signal ?? null });
    if (answer.status !== 503 || tried === BUSY_TRIES) return read(answer);
    await new Promise((wake) => setTimeout(wake, BUSY_WAIT_MS * tried));
  }
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Trouble("The server does not answer. Is it still running?");
  }
}

async function read<T>(answer: Response): Promise<T> {
  if (answer.ok) return (await answer.json()) as T;
  throw new Trouble(await wordsOf(answer), answer.status);
}

async function wordsOf(answer: Response): Promise<string> {
  if (answer.status === 401) {
    return "This server needs its access token: open the address that the server printed.";
  }
  try {
    const problem = (await answer.json()) as { title?: string; detail?: string };
    return problem.detail || problem.title || `The server answered ${answer.status}.`;
  } catch {
    return `The server answered ${answer.status}.`;
  }
}
