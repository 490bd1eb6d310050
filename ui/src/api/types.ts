// The shapes of crates/sexton-web/openapi.json. Times are microseconds.

/** From and to; to is not in it. */
export type Range = [from: number, to: number];

export interface Source {
  id: string;
  name: string;
  kind: "recording" | "profile";
  live: boolean;
  from: number;
  to: number;
  node: { name: string; kernel: string; boot_id: string } | null;
  has_stacks: boolean;
  has_times: boolean;
  clock: "wall" | "boot";
  /** How much of it has been read, 0 to 1. */
  progress?: number;
  notes: string[];
}

export interface Sources {
  sources: Source[];
  version: string;
}

export interface Subject {
  kind: string;
  name: string;
}

export interface Evidence {
  stance: "for" | "against" | "missing" | string;
  text: string;
  source: string;
  value: number | null;
  at?: string | null;
}

export interface Remedy {
  kind: string;
  text: string;
  command: string | null;
}

export interface Finding {
  id: string;
  code: string;
  subject: Subject;
  severity: string;
  confidence: number;
  title: string;
  figure: string;
  since: string | null;
  caused_by: string[];
  evidence: Evidence[];
  remedies: Remedy[];
}

export interface Link {
  cause: string;
  effect: string;
  confidence?: number;
  evidence: Evidence[];
}

export interface Explanation {
  name: string;
  outcome: string;
  evidence: Evidence[];
}

export interface Forecast {
  what: string;
  per_day: number;
  per_day_error: number;
  n_points: number;
  passes: { limit: string; in_days: number | null; range_days: [number, number] | null }[];
}

export interface Gap {
  sensor: string;
  why: string;
  text?: string;
  kind?: string;
  remedy: string | null;
}

export interface DiagnosisTimes {
  window: Range | null;
  findings: Record<string, Range[]>;
  links: (Range | null)[];
  evidence: Record<string, (number | null)[]>;
}

export interface Diagnosis {
  schema: string;
  node: {
    name: string;
    kernel: string;
    boot_id: string;
    cpus: number | null;
    memory_bytes: number | null;
    description: Record<string, string>;
  };
  window: { from: string | null; to: string | null; seconds: number | null };
  verdict: {
    state: "cause-found" | "symptoms-only" | "healthy" | "blind" | string;
    headline: string;
    root: string | null;
    confidence: number | null;
    chain: string[];
    chains: string[][];
  };
  findings: Finding[];
  links: Link[];
  separations: Link[];
  explanations: Explanation[];
  forecast: Forecast[];
  not_judged: { code: string; because: string }[];
  gaps: Gap[];
  times: DiagnosisTimes;
}

export type LaneUnit = "ratio" | "count" | "bytes" | "ns" | "s" | "events";

export interface Lane {
  id: string;
  group: string;
  group_title: string;
  label: string;
  unit: LaneUnit;
  kind: "heat" | "line" | "events";
  max: number;
  subject: Subject | null;
  about: string;
}

export interface Lanes {
  lanes: Lane[];
  from: number;
  to: number;
}

export interface TimelineEvent {
  at: number;
  kind: string;
  text: string;
  subject: Subject;
  count: number;
}

export type LaneGap = [from: number, to: number, why: string];

export interface Tile {
  lane: string;
  from: number;
  step: number;
  values: (number | null)[];
  mean?: (number | null)[];
  gaps: LaneGap[];
  events?: TimelineEvent[];
  events_left_out?: number;
}

export interface Tiles {
  from: number;
  to: number;
  tiles: Tile[];
}

export type HeatView = "offset" | "long";
export type HeatBy = "all" | "core" | "process" | "unit" | "function";

export interface Part {
  value: string;
  label: string;
  samples: number;
}

export interface HeatMap {
  from: number;
  to: number;
  view: HeatView;
  step: number;
  row_step: number;
  rows: number;
  columns: number;
  values: number[];
  max: number;
  total: number;
  parts: Part[];
  parts_left_out: number;
  events: TimelineEvent[];
  gaps: LaneGap[];
}

/** Parallel arrays: node 0 is everything, a caller comes before what it calls. */
export interface FlameNodes {
  parent: number[];
  name: number[];
  kind: number[];
  value: number[];
  base?: number[];
}

export interface Flame {
  from: number;
  to: number;
  event: string;
  samples: number;
  base_samples: number | null;
  total: number;
  base_total: number | null;
  names: string[];
  nodes: FlameNodes;
  cut: { nodes: number; below: number } | null;
  gaps: LaneGap[];
}

export interface PinFile {
  path: string;
  kind: string;
  zombies: number;
}

export interface Origin {
  origin: string;
  example: string | null;
  kind: string | null;
  unit: string | null;
  image: string | null;
  live: number | null;
  dying: number | null;
  leaked: number | null;
  pages: number | null;
  pins: { file: number | null; shmem: number | null; anon: number | null; other: number | null };
  held_by_children: number | null;
  without_pin: number | null;
  oldest_seconds: number | null;
  files: PinFile[];
}

export interface Zombies {
  at: number | null;
  live: number | null;
  dying: number | null;
  leaked: number | null;
  memory_bytes: number | null;
  stat_read_ns: number | null;
  origins: Origin[];
  units: { unit: string | null; live: number; dying: number; leaked: number; origins: number }[];
  files: { path: string; kind: string; zombies: number; origins: string[] }[];
  growth: { at: number[]; dying: (number | null)[]; live: (number | null)[]; per_day: number | null };
  reads: {
    at: number;
    file: string | null;
    dying: number | null;
    root_ns: number | null;
    leaf_ns: number | null;
    ancestor: string | null;
    ancestor_ns: number | null;
    ancestor_dying: number | null;
  }[];
  gaps: Gap[];
}

/** The samples inside an exported page; see docs/http.md. */
export interface Samples {
  start: number;
  at: number[];
  cpu: number[];
  pid: number[];
  comm: number[];
  unit: number[];
  weight: number[];
  stack: number[];
  names: string[];
  stack_caller: number[];
  stack_name: number[];
  stack_kind: number[];
}

export interface Exported {
  schema: "sexton.export/1";
  version: string;
  source: Source;
  diagnosis: Diagnosis | null;
  lanes: Lanes;
  tiles: Tiles;
  zombies: Zombies | null;
  heatmaps: { by: HeatBy; value: string | null; view: HeatView; heatmap: HeatMap }[];
  flames: {
    from: number;
    to: number;
    base_from: number | null;
    base_to: number | null;
    flame: Flame;
  }[];
  samples: Samples | null;
}
