// The one place that knows what is looked at. Views subscribe; the address follows.

import { START, type State, fromAddress, toAddress } from "./address";

/** What a page looks at, and how it is written in the address. */
export interface Codec<S> {
  start: S;
  toAddress(state: S): string;
  fromAddress(hash: string): S;
}

/** Browsers refuse too many changes of the address in a short time. */
const ADDRESS_MS = 200;

export class StoreOf<S extends object> {
  #state: S;
  #listeners: ((state: S, changed: Set<keyof S>) => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private codec: Codec<S>) {
    this.#state = { ...codec.start };
  }

  get state(): S {
    return this.#state;
  }

  subscribe(listener: (state: S, changed: Set<keyof S>) => void): void {
    this.#listeners.push(listener);
  }

  /** A step is something one wants to go back from; panning is not. */
  set(patch: Partial<S>, how: "step" | "glide" = "glide"): void {
    const left = this.codec.toAddress(this.#state);
    const changed = this.#apply({ ...this.#state, ...patch });
    if (changed.size === 0) return;
    const isWaiting = this.#timer !== undefined;
    this.#forget();
    if (how === "step") {
      // What one goes back to is what was seen last.
      if (isWaiting) history.replaceState(null, "", left);
      history.pushState(null, "", this.codec.toAddress(this.#state));
    } else {
      this.#timer = setTimeout(() => this.#show(), ADDRESS_MS);
    }
  }

  /** Takes the address over, now and whenever the user changes it. */
  followAddress(): void {
    const read = () => {
      // What was about to be written is of the entry that was left.
      this.#forget();
      this.#apply(this.codec.fromAddress(location.hash));
    };
    addEventListener("popstate", read);
    addEventListener("hashchange", read);
    read();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #show(): void {
    this.#forget();
    history.replaceState(null, "", this.codec.toAddress(this.#state));
  }

  #apply(next: S): Set<keyof S> {
    const before = this.#state;
    const changed = new Set((Object.keys(next) as (keyof S)[]).filter((key) => !same(before[key], next[key])));
    if (changed.size > 0) {
      this.#state = next;
      for (const listener of this.#listeners) listener(next, changed);
    }
    return changed;
  }
}

/** That of the node's page. */
export class Store extends StoreOf<State> {
  constructor() {
    super({ start: START, toAddress, fromAddress });
  }
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((part, i) => part === b[i]);
  return a === b;
}
