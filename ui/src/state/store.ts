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
  /** Without what is being dragged, until the button is released. */
  #undrafted: S | undefined;

  constructor(private codec: Codec<S>) {
    this.#state = { ...codec.start };
  }

  get state(): S {
    return this.#state;
  }

  subscribe(listener: (state: S, changed: Set<keyof S>) => void): void {
    this.#listeners.push(listener);
  }

  /** A step is something one wants to go back from; panning is not. A draft is seen by views
      and comes into the address by the step that ends it. */
  set(patch: Partial<S>, how: "step" | "glide" | "draft" = "glide"): void {
    const shown = this.#undrafted ?? this.#state;
    const left = this.codec.toAddress(shown);
    if (how === "draft") this.#undrafted = shown;
    else if (how === "step") this.#undrafted = undefined;
    else if (this.#undrafted) this.#undrafted = { ...this.#undrafted, ...patch };
    this.#apply({ ...this.#state, ...patch });
    if (this.#address() === left) return;
    const isWaiting = this.#timer !== undefined;
    this.#forget();
    if (how === "step") {
      // What one goes back to is what was seen last.
      if (isWaiting) history.replaceState(null, "", left);
      history.pushState(null, "", this.#address());
    } else {
      this.#timer = setTimeout(() => this.#show(), ADDRESS_MS);
    }
  }

  #address(): string {
    return this.codec.toAddress(this.#undrafted ?? this.#state);
  }

  /** Takes the address over, now and whenever the user changes it. */
  followAddress(): void {
    const read = () => {
      // What was about to be written is of the entry that was left.
      this.#forget();
      this.#undrafted = undefined;
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
    history.replaceState(null, "", this.#address());
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
