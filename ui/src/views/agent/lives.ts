// Where a finding lies on an axis of time, and how long it was there.

import type { Life, Range } from "../../api/types";
import { length } from "../../time/format";

export interface Bar {
  /** Shares of the axis. */
  left: number;
  width: number;
}

/** What of a range lies on the axis. */
export function barOf(range: Range, axis: Range): Bar {
  const long = Math.max(1, axis[1] - axis[0]);
  const share = (time: number) => Math.min(1, Math.max(0, (time - axis[0]) / long));
  const left = share(range[0]);
  return { left, width: share(range[1]) - left };
}

export function lifeWords(life: Life, now: number): string {
  if (life.over === null) return `${length(now - life.opened)}, still open`;
  const lasted = length(life.over - life.opened);
  return life.ended_by_reboot ? `${lasted}, until the reboot` : lasted;
}
