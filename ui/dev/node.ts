// A node made up for tests and for work on the page without a server: 12 hours, 96 cores,
// and the founding incident on core 17. Not a capture: every figure is invented.

import type { Diagnosis, Exported, Lane, Samples, Source, Tile, TimelineEvent, Zombies } from "../src/api/types";
import { random } from "./random";

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;
export const FROM = 1_700_000_000 * SECOND;
export const TO = FROM + 12 * HOUR;
export const RESET = FROM + 7 * HOUR + 123 * SECOND;
export const GUILTY_CORE = 17;
export const CORES = 96;
const COLUMNS = 2000;
const STEP = Math.ceil((TO - FROM) / COLUMNS);

const SOURCE: Source = {
  id: "made",
  name: "made-up node",
  kind: "recording",
  live: false,
  from: FROM,
  to: TO,
  node: { name: "node-a", kernel: "5.4.0", boot_id: "0" },
  has_stacks: true,
  has_times: true,
  clock: "wall",
  progress: 1,
  notes: [],
};

function lane(id: string, group: string, label: string, kind: Lane["kind"], unit: Lane["unit"], max: number): Lane {
  return { id, group, group_title: group, label, unit, per_second: false, kind, max, subject: null, about: `${label}.` };
}

function tile(id: string, value: (time: number) => number | null, gaps: Tile["gaps"] = []): Tile {
  const values = Array.from({ length: COLUMNS }, (_, i) => value(FROM + i * STEP));
  return { lane: id, from: FROM, step: STEP, values, gaps };
}

function events(id: string, list: TimelineEvent[]): Tile {
  return {
    ...tile(id, (time) => list.filter((event) => event.at >= time && event.at < time + STEP).length),
    events: list,
  };
}

/** Core 17 is lost for a while before the reset; all others idle along. */
function busy(core: number, time: number, chance: () => number): number {
  if (core === GUILTY_CORE && time > RESET - 900 * SECOND && time < RESET + 60 * SECOND) return 0.93 + chance() * 0.07;
  return chance() * 0.25;
}

function coreLanes(): { lanes: Lane[]; tiles: Tile[] } {
  const chance = random(3);
  const lanes = [lane("worst", "cores", "worst core", "heat", "ratio", 1)];
  const tiles: Tile[] = [];
  for (let core = 0; core < CORES; core++) {
    lanes.push({
      ...lane(`core-${core}`, "cores", `core ${core}, busy`, "heat", "ratio", 1),
      subject: { kind: "cpu", name: String(core) },
    });
    const gap = core === 40 ? ([[FROM + 2 * HOUR, FROM + 3 * HOUR, "offline"]] as Tile["gaps"]) : [];
    tiles.push(
      tile(
        `core-${core}`,
        (time) => (gap.length > 0 && time >= gap[0][0] && time < gap[0][1] ? null : busy(core, time, chance)),
        gap,
      ),
    );
  }
  const worst = tile("worst", (time) =>
    Math.max(...tiles.map((one) => one.values[Math.floor((time - FROM) / STEP)] ?? 0)),
  );
  return { lanes, tiles: [worst, ...tiles] };
}

function event(at: number, kind: string, text: string, name: string): TimelineEvent {
  return { at, kind, text, subject: { kind: "device", name }, count: 1 };
}

/** 40 minutes of samples around the reset, on three cores. */
function samples(): Samples {
  const chance = random(11);
  const names = [
    "kubelet",
    "python3",
    "kubelet.service",
    "ray.service",
    "entry_SYSCALL_64",
    "vfs_read",
    "memcg_numa_stat_show",
    "mem_cgroup_node_nr_lru_pages",
    "main",
    "json.loads",
    "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100",
    "01234567-89ab-cdef-0123-456789abcdef",
  ];
  const made: Samples = {
    start: RESET - 1200 * SECOND,
    // A node boots at no whole second.
    zero: FROM - 5 * HOUR - 123_456,
    at: [],
    cpu: [],
    pid: [],
    tid: [],
    comm: [],
    unit: [],
    container: [],
    pod: [],
    weight: [],
    stack: [],
    names,
    stack_caller: [-1, 0, 1, 2, -1, 4],
    stack_name: [4, 5, 6, 7, 8, 9],
    stack_kind: [1, 1, 1, 1, 2, 2],
  };
  for (let tick = 0; tick < 2400 * 10; tick++) {
    const time = made.start + tick * 100_000;
    const lost = time > RESET - 900 * SECOND && time < RESET + 60 * SECOND;
    const guilty = lost && tick % 2 === 0;
    made.at.push(tick === 0 ? 0 : 100_000);
    made.cpu.push(guilty ? GUILTY_CORE : Math.floor(chance() * 3));
    made.pid.push(guilty ? 900 : 901);
    made.comm.push(guilty ? 0 : 1);
    made.tid.push(guilty ? 900 : 901 + (tick % 4 === 1 ? 1 : 0));
    made.unit.push(guilty ? 2 : 3);
    made.container.push(guilty ? -1 : 10);
    made.pod.push(guilty ? -1 : 11);
    made.weight.push(1);
    made.stack.push(guilty ? 3 : 5);
  }
  return made;
}

export function exported(): Exported {
  const cores = coreLanes();
  const dying = (time: number) => 20_000 + ((time - FROM) / HOUR) * 4_000;
  const lanes = [
    ...cores.lanes,
    lane("dying", "memcg", "dying cgroups", "line", "count", 68_000),
    lane("napi", "network", "polling delay", "line", "ns", 5e9),
    lane("nic", "nic", "card events", "events", "events", 1),
    lane("restarts", "units", "restarts", "events", "events", 40),
    lane("pressure", "pressure", "cpu pressure", "line", "ratio", 0.2),
  ];
  const restarts = Array.from({ length: 40 }, (_, i) =>
    event(FROM + i * 0.3 * HOUR, "unit_started", "ecs.service began a run", "ecs.service"),
  );
  const reset = event(RESET, "nic_reset", "eth0: NAPI handler has not been called, the device is reset", "eth0");
  const tiles = [
    ...cores.tiles,
    tile("dying", dying),
    tile("napi", (time) => (Math.abs(time - RESET) < 30 * SECOND ? 5e9 : 2e6)),
    events("nic", [reset]),
    events("restarts", restarts),
    tile("pressure", (time) => (time < FROM + HOUR ? null : 0.1), [
      [FROM, FROM + HOUR, "the kernel was started without psi=1"],
    ]),
  ];
  return {
    schema: "sexton.export/1",
    version: "0.0.0",
    source: SOURCE,
    diagnosis: diagnosis(),
    zombies: zombies(dying),
    lanes: { lanes, from: FROM, to: TO },
    tiles: { from: FROM, to: TO, tiles },
    heatmaps: [],
    flames: [],
    samples: samples(),
  };
}

const CHAIN: [id: string, kind: string, name: string, figure: string, sure: number][] = [
  ["UNIT002", "unit", "ecs.service", "31 containers an hour", 0.95],
  ["MCG001", "cgroup", "/ecs/<id>", "68,440 dying", 0.95],
  ["CPU002", "process", "kubelet", "91 % of core 17", 0.9],
  ["CPU001", "cpu", "17", "16 min at a stretch", 0.95],
  ["NET001", "cpu", "17", "polling waited 5.2 s", 0.9],
  ["NIC001", "device", "eth0", "reset once", 0.75],
];

function diagnosis(): Diagnosis {
  const ids = CHAIN.map(([code, , name]) => `${code}:${name}`);
  const findings = CHAIN.map(([code, kind, name, figure, confidence], i) => ({
    id: ids[i],
    code,
    subject: { kind, name },
    severity: i < 2 ? "warning" : "serious",
    confidence,
    title: `${name}: ${figure}`,
    figure,
    since: null,
    caused_by: i > 0 ? [ids[i - 1]] : [],
    evidence: [
      { stance: "for", text: `seen: ${figure}`, source: "made up", value: null, at: null },
      { stance: "missing", text: "the journal could not be read", source: "made up", value: null, at: null },
    ],
    remedies:
      i === 0 ? [{ kind: "stop", text: "stop the unit", command: "sudo systemctl disable --now ecs.service" }] : [],
  }));
  return {
    schema: "sexton.diagnosis/1",
    node: { name: "node-a", kernel: "5.4.0", boot_id: "0", cpus: CORES, memory_bytes: null, description: {} },
    window: { from: null, to: null, seconds: 43200 },
    verdict: {
      state: "cause-found",
      headline: "ecs.service churns containers; kubelet burns core 17; eth0 was reset",
      root: ids[0],
      confidence: 0.75,
      chain: ids,
      chains: [ids],
    },
    findings,
    links: ids.slice(1).map((effect, i) => ({ cause: ids[i], effect, confidence: 0.9, evidence: [] })),
    separations: [],
    explanations: [],
    forecast: [],
    not_judged: [],
    seen_by: [],
    gaps: [],
    times: {
      window: [FROM, TO],
      findings: { [ids[3]]: [[RESET - 900 * SECOND, RESET + 60 * SECOND]], [ids[5]]: [[RESET, RESET]] },
      links: ids.slice(1).map(() => [RESET - 10 * SECOND, RESET]),
      evidence: {},
    },
  };
}

function zombies(dying: (time: number) => number): Zombies {
  const at = Array.from({ length: 13 }, (_, i) => FROM + i * HOUR);
  return {
    at: TO,
    live: 240,
    dying: 68_440,
    leaked: 0,
    memory_bytes: 3.1e9,
    stat_read_ns: 5.1e9,
    origins: [
      {
        origin: "/ecs/<id>",
        example: "/ecs/0123",
        kind: "docker",
        unit: "ecs.service",
        image: "amazon/amazon-ecs-agent",
        live: 2,
        dying: 68_440,
        leaked: 0,
        pages: 120_000,
        pins: { file: 60_000, shmem: 8_000, anon: 400, other: 40 },
        held_by_children: 0,
        without_pin: 0,
        oldest_seconds: 1_200_000,
        files: [{ path: "/var/log/ecs/agent.log", kind: "file", zombies: 40_000 }],
      },
    ],
    units: [{ unit: "ecs.service", live: 2, dying: 68_440, leaked: 0, origins: 1 }],
    files: [{ path: "/var/log/ecs/agent.log", kind: "file", zombies: 40_000, origins: ["/ecs/<id>"] }],
    growth: { at, dying: at.map(dying), live: at.map(() => 240), per_day: 96_000 },
    reads: [],
    gaps: [],
  };
}
