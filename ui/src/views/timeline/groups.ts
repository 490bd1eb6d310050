// The order of lanes: from what is felt to what causes it, as one reads a node.

import type { Lane } from "../../api/types";

/** Groups that are not named here follow. What a group is called comes with its lanes. */
const ORDER = ["cores", "kernel", "network", "nic", "log", "memcg", "units", "containers", "pressure", "stacks", "gaps"];

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
  const titles = new Map(lanes.map((lane) => [lane.group, lane.group_title]));
  const others = [...titles.keys()].filter((id) => !ORDER.includes(id));
  const first: Group[] = [];
  const last: Group[] = [];
  for (const id of [...ORDER, ...others]) {
    const name = titles.get(id) ?? id;
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
