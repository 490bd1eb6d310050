import type { Flame } from "../src/api/types";

export function manyFrames(): Flame;
