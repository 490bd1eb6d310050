// The order of lanes: from what is felt to what causes it, as one reads a node.

import type { Lane } from "../../api/types";

const NAMES: [group: string, name: string][] = [
  ["cores", "Cores, busy"],
  ["kernel", "Cores, in the kernel"],
  ["network", "Network polling"],
  ["nic", "Network cards"],
  ["log", "Kernel log"],
  ["memcg", "Memory cgroups"],
  ["units", "Units"],
  ["containers", "Containers"],
  ["pressure", "Pressure"],
  ["stacks", "Stacks"],
  ["gaps", "Gaps"],
];

export interface Group {
  id: string;
  name: string;
  lanes: Lane[];
  /** Too many for labels: only every eighth has one. */
  thin: boolean;
}

/** Strips of single cores go below all else when there are more than this, and thin. */
const FEW_CORES = 16;

export function groups(lanes: Lane[]): Group[] {
  const known = new Set(NAMES.map(([id]) => id));
  const others = [...new Set(lanes.map((lane) => lane.group))].filter((id) => !known.has(id));
  const order: [string, string][] = [...NAMES, ...others.map((id): [string, string] => [id, id])];
  const first: Group[] = [];
  const last: Group[] = [];
  for (const [id, name] of order) {
    const all = lanes.filter((lane) => lane.group === id);
    const single = all.filter(isOneCore);
    const many = single.length > FEW_CORES;
    const rest = many ? all.filter((lane) => !isOneCore(lane)) : all;
    if (rest.length > 0) first.push({ id, name: many ? "Worst core" : name, lanes: rest, thin: false });
    if (many) last.push({ id: `each-${id}`, name: `${name}: all ${single.length}`, lanes: single, thin: true });
  }
  return [...first, ...last];
}

function isOneCore(lane: Lane): boolean {
  return lane.kind === "heat" && lane.subject?.kind === "cpu";
}

/** A strip of one core stands below what its group is called. */
export function labelOf(lane: Lane): string {
  return lane.subject?.kind === "cpu" ? lane.label.replace(/,.*/, "") : lane.label;
}

export function heightOf(lane: Lane, thin: boolean): number {
  // What stayed at nothing all the time needs no room to show it.
  if (lane.kind === "line") return lane.max > 0 ? 38 : 22;
  if (lane.kind === "events") return 22;
  return thin ? 7 : 16;
}
