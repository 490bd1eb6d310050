// What the agent keeps and found: the first screen where one records the node.

import "./agent.css";
import { isAborted } from "../../api/client";
import type { Agent, Incident, Life, Range } from "../../api/types";
import { breakable, h, place, replace } from "../../dom/element";
import { errorNotice } from "../../dom/notice";
import { Latest } from "../../dom/once";
import type { Context, View } from "../../shell/context";
import { bytes, count, dated, length, percent, plural } from "../../time/format";
import { around, overlap } from "../../time/window";
import { type Bar, barOf, lifeWords } from "./lives";

/** More are in the fold below. */
const FEW = 5;

export class AgentView implements View {
  readonly element = h("section", { class: "agent", attrs: { id: "agent", "aria-label": "Agent" } });
  #latest = new Latest();
  #isUnfolded = false;

  constructor(
    private context: Context,
    private openIncident: (id: string) => void,
  ) {}

  open(): void {
    replace(this.element);
    this.grow();
  }

  grow(): void {
    // Of another source, such as an incident of it, there is nothing to say.
    if (this.context.client.served && this.context.isOfAgent) void this.#load();
  }

  async #load(): Promise<void> {
    try {
      this.#draw(await this.context.client.agent(this.#latest.next()));
    } catch (error) {
      if (isAborted(error)) return;
      replace(
        this.element,
        errorNotice(error, () => void this.#load()),
      );
    }
  }

  #draw(agent: Agent): void {
    const fold = this.element.querySelector<HTMLDetailsElement>("details");
    this.#isUnfolded = fold?.open ?? this.#isUnfolded;
    replace(
      this.element,
      h("h2", {}, "What the agent found"),
      ringWords(agent),
      agent.ring.trouble !== null && h("p", "bad", `The agent cannot record: ${agent.ring.trouble}`),
      this.#lives(agent),
      this.#incidents(agent.incidents),
    );
  }

  #lives(agent: Agent): HTMLElement {
    if (agent.findings.length === 0) return h("p", {}, "No finding in the ring.");
    const axis: Range = [agent.ring.from ?? agent.started, agent.now];
    const table = (lives: Life[], caption: string) =>
      h(
        "table",
        "lives",
        h("caption", "off-screen", caption),
        h(
          "thead",
          {},
          h("tr", {}, ...["Finding", "Opened (UTC)", "Lasted"].map((words) => h("th", { attrs: { scope: "col" } }, words)), axisCell(axis)),
        ),
        h("tbody", {}, ...lives.map((life) => this.#row(life, axis, agent.now))),
      );
    const rest = agent.findings.slice(FEW);
    const left = agent.findings_left_out > 0 && h("p", "quiet", `${count(agent.findings_left_out)} older ones are not shown.`);
    const more =
      rest.length > 0 &&
      h(
        "details",
        { class: "fold", attrs: { open: this.#isUnfolded } },
        h("summary", {}, `Earlier findings (${count(rest.length)})`),
        table(rest, "Earlier findings"),
        left,
      );
    return h("div", {}, table(agent.findings.slice(0, FEW), "The latest findings"), more);
  }

  #row(life: Life, axis: Range, now: number): HTMLElement {
    const { all } = this.context;
    const range: Range = [life.opened, Math.max(life.over ?? now, life.opened + 1)];
    const seen = overlap(range, all);
    const title = h("span", {}, ...breakable(life.title));
    const show = () => {
      if (seen) this.context.setWindow(around(seen, all), "step");
      document.getElementById("timeline")?.scrollIntoView();
    };
    const name = seen
      ? h("button", { class: "link", title: "Show this time on the time line", attrs: { type: "button" }, on: { click: show } }, title)
      : title;
    return h(
      "tr",
      `life ${life.worst}`,
      h("td", {}, h("span", "code", life.finding.split(":")[0]), " ", h("span", "severity", life.worst), " ", name),
      h("td", "when", dated(life.opened, "wall")),
      h("td", "when", lifeWords(life, now)),
      h("td", { class: "span", attrs: { "aria-hidden": "true" } }, drawn(barOf(range, axis))),
    );
  }

  #incidents(incidents: Incident[]): HTMLElement {
    if (incidents.length === 0) {
      return h("p", "quiet", "No incident: no finding was serious or critical.");
    }
    const items = incidents.map((incident) =>
      h(
        "li",
        incident.severity,
        h(
          "button",
          {
            class: "small",
            attrs: { type: "button", "aria-label": `Open the incident of ${dated(incident.opened, "wall")}` },
            on: { click: () => this.openIncident(incident.id) },
          },
          "Open",
        ),
        h("span", "when", ` ${dated(incident.opened, "wall")} `),
        h("span", "code", incident.finding.split(":")[0]),
        " ",
        h("span", "severity", incident.severity),
        " ",
        ...breakable(incident.title),
        h("span", "quiet", ` ${others(incident)}${bytes(incident.bytes)}${incident.is_whole ? "" : ", still being kept"}`),
      ),
    );
    return h("div", {}, h("h3", {}, `Incidents (${count(incidents.length)})`), h("ul", "incidents", ...items));
  }
}

function others({ others }: Incident): string {
  return others === 0 ? "" : `and ${plural(others, "more finding")}; `;
}

function ringWords({ ring, now, cpu_ratio, memory_bytes }: Agent): HTMLElement {
  const since = ring.from === null ? "nothing yet" : `${dated(ring.from, "wall")} UTC until now (${length(now - ring.from)})`;
  const cost = `${cpu_ratio === null ? "" : `${percent(cpu_ratio)} of a core, `}${bytes(memory_bytes)} of memory`;
  return h(
    "p",
    "quiet",
    `Ring: ${since}, ${plural(ring.boots, "boot")}, ${bytes(ring.bytes)} of ${bytes(ring.max_bytes)}. The agent uses ${cost}.`,
  );
}

function axisCell(axis: Range): HTMLElement {
  const words = [h("span", {}, dated(axis[0], "wall").slice(5, 16)), h("span", {}, "now")];
  return h("td", { class: "span axis", attrs: { "aria-hidden": "true" } }, h("span", "ends", ...words));
}

function drawn({ left, width }: Bar): HTMLElement {
  const bar = h("span", "bar");
  place(bar, { left: `${left * 100}%`, width: `max(3px, ${width * 100}%)` });
  return h("span", "track", bar);
}
