// Work that is put off until it is worth doing.

/** At most one call a frame, however often it is asked for. */
export function eachFrame(work: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

/** Only the last call of a flurry. */
export function settled<A extends unknown[]>(ms: number, work: (...args: A) => void): (...args: A) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
}

/** A question at a time: a new one gives up the one before. */
export class Latest {
  #running: AbortController | null = null;

  next(): AbortSignal {
    this.#running?.abort();
    this.#running = new AbortController();
    return this.#running.signal;
  }
}
