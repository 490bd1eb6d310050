// The order of lanes: from what is felt to what causes it, as one reads a node.

import type { Lane } from "../../api/types";

const NAMES: [group: string, name: string][] = [
  ["cores", "Cores"],
  ["network", "Network polling"],
  ["nic", "Network cards"],
  ["log", "Kernel log"],
  ["memcg", "Memory cgroups"],
  ["units", "Units"],
  ["containers", "Containers"],
  ["kernel", "Kernel"],
  ["pressure", "Pressure"],
  ["stacks", "Stacks"],
  ["gaps", "Gaps"],
];

export interface Group {
  id: string;
  name: string;
  lanes: Lane[];
}

export function groups(lanes: Lane[]): Group[] {
  const known = new Set(NAMES.map(([id]) => id));
  const others = [...new Set(lanes.map((lane) => lane.group))].filter((id) => !known.has(id));
  const order: [string, string][] = [...NAMES, ...others.map((id): [string, string] => [id, id])];
  return order
    .map(([id, name]) => ({ id, name, lanes: lanes.filter((lane) => lane.group === id) }))
    .filter((group) => group.lanes.length > 0);
}

/** Many cores get thin strips, so that a large node still fits a screen or two. */
const FEW_CORES = 16;

export function heightOf(lane: Lane, inGroup: number): number {
  if (lane.kind === "line") return 38;
  if (lane.kind === "events") return 22;
  return inGroup > FEW_CORES ? 7 : 16;
}
