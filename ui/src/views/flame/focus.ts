// Moving from frame to frame with the arrow keys.

import type { Flame } from "../../api/types";
import { indexAt, type Layout, nodeAt } from "./layout";

/** The frame that an arrow key leads to, or null for other keys. */
export function moveFocus(flame: Flame, layout: Layout, from: number, key: string, upright: boolean): number | null {
  switch (key) {
    case upright ? "ArrowUp" : "ArrowDown":
      return firstChild(layout, from) ?? from;
    case upright ? "ArrowDown" : "ArrowUp":
      return Math.max(0, flame.nodes.parent[from]);
    case "ArrowLeft":
      return beside(layout, from, -1);
    case "ArrowRight":
      return beside(layout, from, 1);
    default:
      return null;
  }
}

/** The widest: children lie in that order. */
function firstChild(layout: Layout, node: number): number | null {
  const child = nodeAt(layout, layout.depth[node] + 1, layout.x[node]);
  return child !== null && layout.x[child] >= layout.x[node] ? child : null;
}

function beside(layout: Layout, node: number, step: number): number {
  const level = layout.levels[layout.depth[node]];
  const index = indexAt(level, layout.x, layout.x[node]) + step;
  return level[index] ?? node;
}
