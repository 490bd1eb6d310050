// Zoom and pan with wheel, mouse and fingers; a drag with Shift, or along the ruler, selects.

import type { Range } from "../../api/types";
import { span, zoomed } from "../../time/window";

export interface Stage {
  window(): Range;
  all(): Range;
  move(range: Range): void;
  /** While dragging, then once more with done. */
  select(range: Range, done: boolean): void;
  hover(time: number | null, event: PointerEvent | null): void;
  click(time: number, event: PointerEvent): void;
}

/** Less movement than this is a click. */
const CLICK_PX = 4;
const WHEEL_RATE = 0.0016;

export function gestures(plot: HTMLElement, ruler: HTMLElement, stage: Stage): void {
  const timeAt = (clientX: number) => {
    const box = plot.getBoundingClientRect();
    const [from, to] = stage.window();
    return from + ((clientX - box.left) / box.width) * (to - from);
  };
  for (const element of [plot, ruler]) {
    wheel(element, element === ruler, stage, timeAt);
    drags(element, element === ruler, stage, timeAt);
  }
  plot.addEventListener("dblclick", (event) => {
    stage.move(zoomed(stage.window(), 0.25, timeAt(event.clientX), stage.all()));
  });
}

/** Over the lanes a plain wheel still scrolls the page: nobody should be caught in here. */
function wheel(element: HTMLElement, isRuler: boolean, stage: Stage, timeAt: (x: number) => number): void {
  element.addEventListener(
    "wheel",
    (event) => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!sideways && !isRuler && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const window = stage.window();
      const by = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      if (sideways) {
        const pixels = (event.deltaX || event.deltaY) * by;
        const shift = (pixels / element.clientWidth) * span(window);
        stage.move([window[0] + shift, window[1] + shift]);
      } else {
        stage.move(zoomed(window, Math.exp(event.deltaY * by * WHEEL_RATE), timeAt(event.clientX), stage.all()));
      }
    },
    { passive: false },
  );
}

interface Drag {
  startX: number;
  lastX: number;
  startTime: number;
  selects: boolean;
  moved: boolean;
}

function drags(element: HTMLElement, isRuler: boolean, stage: Stage, timeAt: (x: number) => number): void {
  const fingers = new Map<number, number>();
  let drag: Drag | null = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    drag = {
      startX: event.clientX,
      lastX: event.clientX,
      startTime: timeAt(event.clientX),
      selects: isRuler || event.shiftKey,
      moved: false,
    };
  });
  element.addEventListener("pointermove", (event) => {
    stage.hover(timeAt(event.clientX), event);
    if (!drag || !fingers.has(event.pointerId)) return;
    if (fingers.size === 2) {
      // The finger that is lifted last neither clicks nor selects.
      drag.moved = true;
      drag.selects = false;
      pinch(fingers, event, stage, timeAt);
      return;
    }
    fingers.set(event.pointerId, event.clientX);
    drag.moved ||= Math.abs(event.clientX - drag.startX) > CLICK_PX;
    if (!drag.moved) return;
    if (drag.selects) stage.select(ordered(drag.startTime, timeAt(event.clientX)), false);
    else follow(drag, event.clientX, element, stage);
  });
  const end = (event: PointerEvent) => {
    fingers.delete(event.pointerId);
    if (drag && event.type === "pointerup") {
      const time = timeAt(event.clientX);
      if (!drag.moved) stage.click(time, event);
      else if (drag.selects) stage.select(ordered(drag.startTime, time), true);
    }
    drag = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => stage.hover(null, null));
}

function follow(drag: Drag, clientX: number, element: HTMLElement, stage: Stage): void {
  const window = stage.window();
  const shift = ((drag.lastX - clientX) / element.clientWidth) * span(window);
  drag.lastX = clientX;
  stage.move([window[0] + shift, window[1] + shift]);
}

function pinch(fingers: Map<number, number>, event: PointerEvent, stage: Stage, timeAt: (x: number) => number): void {
  const before = [...fingers.values()];
  fingers.set(event.pointerId, event.clientX);
  const after = [...fingers.values()];
  const [was, is] = [Math.abs(before[0] - before[1]), Math.abs(after[0] - after[1])];
  if (was < 8 || is < 8) return;
  stage.move(zoomed(stage.window(), was / is, timeAt((after[0] + after[1]) / 2), stage.all()));
}

function ordered(a: number, b: number): Range {
  return a <= b ? [a, b] : [b, a];
}
