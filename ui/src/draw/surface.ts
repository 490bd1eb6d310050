// A canvas that is as sharp as the screen, and follows the size of its place.

export interface Surface {
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
}

/** Makes the canvas fit and clears it; sizes are in CSS pixels from here on. */
export function surface(canvas: HTMLCanvasElement, width: number, height: number): Surface {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no 2d canvas");
  context.setTransform(w / width, 0, 0, h / height, 0, 0);
  context.clearRect(0, 0, width, height);
  return { canvas, context, width, height };
}
