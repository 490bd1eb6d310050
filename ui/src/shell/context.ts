// What every view has in common: who answers, what is looked at, and the moves between views.

import type { Client } from "../api/client";
import type { Range, Source, Subject } from "../api/types";
import type { State } from "../state/address";
import type { Store } from "../state/store";
import type { Theme } from "../theme/theme";
import { around, within } from "../time/window";

const SECOND = 1_000_000;

export class Context {
  /** Set before any view is opened. */
  source!: Source;
  /** Whether an agent records what this server shows. */
  hasAgent = false;

  constructor(
    readonly client: Client,
    readonly store: Store,
    readonly theme: Theme,
  ) {}

  /** Whether the ring of the agent is looked at, and not an incident or a file. */
  get isOfAgent(): boolean {
    return this.hasAgent && this.source.id === "main";
  }

  get state(): State {
    return this.store.state;
  }

  get all(): Range {
    const { from, to } = this.source;
    return [from, Math.max(to, from + SECOND)];
  }

  get window(): Range {
    return this.state.window ? within(this.state.window, this.all) : this.all;
  }

  /** What the flame graph is of. */
  get looked(): Range {
    return this.state.selection ?? this.window;
  }

  setWindow(range: Range, how: "step" | "glide" = "glide"): void {
    const next = within(range, this.all);
    const whole = next[0] <= this.all[0] && next[1] >= this.all[1];
    this.store.set({ window: whole ? null : next }, how);
  }

  /** Moves everything to where something was seen. */
  show(range: Range, finding: string | null, subject?: Subject): void {
    const seen = guilty(range);
    const core = subject && (subject.kind === "core" || subject.kind === "cpu");
    const next = around(seen, this.all);
    const whole = next[0] <= this.all[0] && next[1] >= this.all[1];
    this.store.set(
      {
        window: whole ? null : next,
        selection: within(seen, this.all),
        base: null,
        finding,
        link: null,
        by: core ? "core" : "all",
        value: core ? subject.name : "",
      },
      "step",
    );
  }
}

/** A moment has no stacks; what led to it ran in the second before. */
export function guilty(range: Range): Range {
  return range[1] - range[0] >= 1000 ? range : [range[1] - SECOND, range[1]];
}

/** A part of the page that shows one source at a time. */
export interface View {
  readonly element: HTMLElement;
  open(): void;
  /** The source has grown. */
  grow?(): void;
}
