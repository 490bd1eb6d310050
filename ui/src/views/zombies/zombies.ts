// Zombies: memory cgroups that are gone but which the kernel still holds.

import { isAborted } from "../../api/client";
import type { Zombies } from "../../api/types";
import { h, replace } from "../../dom/element";
import { errorNotice, notice } from "../../dom/notice";
import { Latest } from "../../dom/once";
import type { Context, View } from "../../shell/context";
import type { ZombiesBy } from "../../state/address";
import { bytes, count, dated, length } from "../../time/format";
import { growthChart } from "./growth";
import { fileTable, originTable, readTable, unitTable } from "./tables";

const BYS: [ZombiesBy, string, (zombies: Zombies) => HTMLElement][] = [
  ["origin", "By origin", originTable],
  ["unit", "By unit", unitTable],
  ["file", "By pinning file", fileTable],
];

export class ZombiesView implements View {
  readonly element = h("section", { class: "zombies", attrs: { id: "zombies", "aria-label": "Zombies" } });
  #latest = new Latest();
  #zombies: Zombies | null = null;
  #inSight = false;
  #stale = true;

  constructor(private context: Context) {
    new IntersectionObserver(([entry]) => this.#sighted(entry.isIntersecting), { rootMargin: "300px" }).observe(
      this.element,
    );
    context.theme.subscribe(() => this.#zombies && this.#draw(this.#zombies));
    context.store.subscribe((_, changed) => {
      if (changed.has("zombiesBy") && this.#zombies) this.#draw(this.#zombies);
    });
  }

  open(): void {
    this.#zombies = null;
    if (this.context.source.kind === "profile") {
      replace(this.element);
      return;
    }
    replace(this.element, h("h2", {}, "Zombies"), notice("busy", "Reading the census…"));
    this.grow();
  }

  grow(): void {
    this.#stale = true;
    if (this.#inSight) void this.#load();
  }

  #sighted(inSight: boolean): void {
    this.#inSight = inSight;
    if (inSight && this.#stale) void this.#load();
  }

  async #load(): Promise<void> {
    const { client, source } = this.context;
    if (source.kind === "profile") return;
    this.#stale = false;
    try {
      const zombies = await client.zombies(source.id, this.#latest.next());
      // Nothing new: what is open or selected in the tables stays so.
      if (JSON.stringify(zombies) === JSON.stringify(this.#zombies)) return;
      this.#zombies = zombies;
      this.#draw(zombies);
    } catch (error) {
      if (!isAborted(error))
        replace(
          this.element,
          h("h2", {}, "Zombies"),
          errorNotice(error, () => this.open()),
        );
    }
  }

  #draw(zombies: Zombies): void {
    const heading = h(
      "div",
      "bar-line",
      h("h2", {}, "Zombies"),
      h("span", "quiet", "memory cgroups that are gone but which the kernel still holds"),
    );
    if (zombies.at === null) {
      const why = zombies.gaps
        .map((gap) => `${gap.text ?? gap.why}${gap.remedy ? ` To see it: ${gap.remedy}` : ""}`)
        .join(" ");
      replace(
        this.element,
        heading,
        notice(
          "blind",
          "No census was taken",
          why || "The recording may be too short: the census is taken every 30 s.",
        ),
      );
      return;
    }
    const { zombiesBy } = this.context.state;
    const shown = BYS.find(([by]) => by === zombiesBy) ?? BYS[0];
    const tabs = BYS.map(([by, words]) =>
      h(
        "button",
        {
          class: "small",
          attrs: { type: "button", "aria-pressed": String(by === shown[0]) },
          on: { click: () => this.context.store.set({ zombiesBy: by }) },
        },
        words,
      ),
    );
    replace(
      this.element,
      heading,
      figures(this.context, zombies),
      zombies.growth.at.length > 1 && growthChart(this.context, zombies),
      h("div", { class: "toggle", attrs: { role: "group", "aria-label": "List them" } }, ...tabs),
      shown[2](zombies),
      zombies.reads.length > 0 &&
        h("details", "fold", h("summary", {}, "Cost of one read of a statistics file"), readTable(zombies)),
      zombies.gaps.length > 0 && gaps(zombies),
    );
  }
}

function figures(context: Context, zombies: Zombies): HTMLElement {
  const figure = (words: string, value: number | null, write: (value: number) => string) =>
    h("div", "number-box", h("strong", {}, value === null ? "not seen" : write(value)), h("span", {}, words));
  return h(
    "div",
    "numbers",
    figure("dying", zombies.dying, count),
    figure("live", zombies.live, count),
    figure("leaked", zombies.leaked, count),
    figure("held by the dying", zombies.memory_bytes, bytes),
    figure("a read of the root's memory.stat", readOf(zombies), (ns) => length(ns / 1000)),
    h("p", "quiet", `As of ${zombies.at === null ? "never" : dated(zombies.at, context.source.clock)}.`),
  );
}

/** The last of several reads in a row, as the table has it; else the one that the census took. */
function readOf(zombies: Zombies): number | null {
  const timed = zombies.reads.filter((read) => read.file === "memory.stat" && read.root_ns !== null);
  return timed[timed.length - 1]?.root_ns ?? zombies.stat_read_ns;
}

function gaps(zombies: Zombies): HTMLElement {
  const items = zombies.gaps.map((gap) =>
    h("li", {}, gap.text ?? gap.why, gap.remedy !== null && h("span", "source", `to see it: ${gap.remedy}`)),
  );
  return h("details", "fold", h("summary", {}, `Blind spots (${items.length})`), h("ul", "plain", ...items));
}
