// The one place that knows what is looked at. Views subscribe; the address follows.

import { START, type State, fromAddress, toAddress } from "./address";

type Key = keyof State;
type Listener = (state: State, changed: Set<Key>) => void;

/** Browsers refuse too many changes of the address in a short time. */
const ADDRESS_MS = 200;

export class Store {
  #state: State = { ...START };
  #listeners: Listener[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  get state(): State {
    return this.#state;
  }

  subscribe(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /** A step is something one wants to go back from; panning is not. */
  set(patch: Partial<State>, how: "step" | "glide" = "glide"): void {
    const left = toAddress(this.#state);
    const changed = this.#apply({ ...this.#state, ...patch });
    if (changed.size === 0) return;
    const isWaiting = this.#timer !== undefined;
    this.#forget();
    if (how === "step") {
      // What one goes back to is what was seen last.
      if (isWaiting) history.replaceState(null, "", left);
      history.pushState(null, "", toAddress(this.#state));
    } else {
      this.#timer = setTimeout(() => this.#show(), ADDRESS_MS);
    }
  }

  /** Takes the address over, now and whenever the user changes it. */
  followAddress(): void {
    const read = () => {
      // What was about to be written is of the entry that was left.
      this.#forget();
      this.#apply(fromAddress(location.hash));
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
    history.replaceState(null, "", toAddress(this.#state));
  }

  #apply(next: State): Set<Key> {
    const before = this.#state;
    const changed = new Set((Object.keys(next) as Key[]).filter((key) => !same(before[key], next[key])));
    if (changed.size > 0) {
      this.#state = next;
      for (const listener of this.#listeners) listener(next, changed);
    }
    return changed;
  }
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((part, i) => part === b[i]);
  return a === b;
}
