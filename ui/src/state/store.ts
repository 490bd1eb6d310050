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
  /** Without what is being dragged, until the button is released. */
  #undrafted: State | undefined;

  get state(): State {
    return this.#state;
  }

  subscribe(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /** A step is something one wants to go back from; panning is not. A draft is seen by views
      and comes into the address by the step that ends it. */
  set(patch: Partial<State>, how: "step" | "glide" | "draft" = "glide"): void {
    const shown = this.#undrafted ?? this.#state;
    const left = toAddress(shown);
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
    return toAddress(this.#undrafted ?? this.#state);
  }

  /** Takes the address over, now and whenever the user changes it. */
  followAddress(): void {
    const read = () => {
      // What was about to be written is of the entry that was left.
      this.#forget();
      this.#undrafted = undefined;
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
    history.replaceState(null, "", this.#address());
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
