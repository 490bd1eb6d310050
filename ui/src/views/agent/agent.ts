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

/** More are in the folds below. */
const FEW = 5;
const FEW_INCIDENTS = 3;

export class AgentView implements View {
  readonly element = h("section", { class: "agent", attrs: { id: "agent", "aria-label": "Agent" } });
  #latest = new Latest();
  #unfolded = new Set<string>();

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
      // What it said last stays, and the page says that the server is gone.
      if (isAborted(error) || this.element.childElementCount > 0) return;
      replace(
        this.element,
        errorNotice(error, () => void this.#load()),
      );
    }
  }

  #draw(agent: Agent): void {
    const focused = document.activeElement as HTMLElement | null;
    const key = this.element.contains(focused) ? focused?.dataset.key : undefined;
    for (const fold of this.element.querySelectorAll<HTMLDetailsElement>("details")) {
      const name = fold.dataset.fold ?? "";
      if (fold.open) this.#unfolded.add(name);
      else this.#unfolded.delete(name);
    }
    replace(
      this.element,
      h("div", "bar-line", h("h2", {}, "What the agent found"), h("span", "quiet", countWords(agent))),
      agent.ring.trouble !== null && h("p", "bad", `The agent cannot record: ${agent.ring.trouble}`),
      this.#incidents(agent),
      this.#lives(agent),
      ringWords(agent),
    );
    const again = [...this.element.querySelectorAll<HTMLElement>("[data-key]")].find((one) => one.dataset.key === key);
    if (key) again?.focus({ preventScroll: true });
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
    const lives = inOrder(agent.findings);
    const rest = lives.slice(FEW);
    const left = agent.findings_left_out > 0 && h("p", "quiet", `${count(agent.findings_left_out)} older ones are not shown.`);
    const more =
      rest.length > 0 &&
      h(
        "details",
        { class: "fold", attrs: { open: this.#unfolded.has("findings"), "data-fold": "findings" } },
        h("summary", { attrs: { "data-key": "more findings" } }, `More findings (${count(rest.length)})`),
        table(rest, "More findings"),
        left,
      );
    return h("div", {}, h("h3", {}, "Findings over time"), table(lives.slice(0, FEW), "Findings over time"), more);
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
      ? h(
          "button",
          {
            class: "link",
            title: "Show this time on the time line",
            attrs: { type: "button", "data-key": `${life.finding} ${life.opened}` },
            on: { click: show },
          },
          title,
        )
      : title;
    return h(
      "tr",
      `life ${life.worst}`,
      h("td", {}, h("span", "code", life.finding.split(":")[0]), " ", h("span", "severity", life.worst), " ", name),
      h("td", { class: "when", title: dated(life.opened, "wall") }, openedWords(life.opened, now)),
      h("td", "when", lifeWords(life, now)),
      h("td", { class: "span", attrs: { "aria-hidden": "true" } }, drawn(barOf(range, axis))),
    );
  }

  #incidents({ incidents, now }: Agent): HTMLElement {
    if (incidents.length === 0) {
      return h("p", "quiet", "No incident: no finding was serious or critical.");
    }
    const item = (incident: Incident) =>
      h(
        "li",
        incident.severity,
        h(
          "button",
          {
            class: "small",
            attrs: { type: "button", "data-key": incident.id, "aria-label": `Open the incident of ${dated(incident.opened, "wall")}` },
            on: { click: () => this.openIncident(incident.id) },
          },
          "Open",
        ),
        h(
          "span",
          {},
          h("span", "code", incident.finding.split(":")[0]),
          " ",
          h("span", "severity", incident.severity),
          " ",
          ...breakable(incident.title),
          h(
            "span",
            "source",
            `${dated(incident.opened, "wall")} UTC, ${ago(now - incident.opened)}; ${others(incident)}${bytes(incident.bytes)}${incident.is_whole ? "" : ", still being kept"}`,
          ),
        ),
      );
    const list = (some: Incident[]) => h("ul", "incidents", ...some.map(item));
    const rest = incidents.slice(FEW_INCIDENTS);
    const more =
      rest.length > 0 &&
      h(
        "details",
        { class: "fold", attrs: { open: this.#unfolded.has("incidents"), "data-fold": "incidents" } },
        h("summary", { attrs: { "data-key": "earlier incidents" } }, `Earlier incidents (${count(rest.length)})`),
        list(rest),
      );
    return h("div", {}, h("h3", {}, `Incidents (${count(incidents.length)})`), list(incidents.slice(0, FEW_INCIDENTS)), more);
  }
}

const GRAVEST = ["critical", "serious", "warning", "note"];

/** Those that are open first, of these the gravest, of these the newest. */
function inOrder(lives: Life[]): Life[] {
  const rank = (life: Life) => (life.over === null ? 0 : GRAVEST.length) + GRAVEST.indexOf(life.worst);
  return [...lives].sort((a, b) => rank(a) - rank(b) || b.opened - a.opened);
}

function countWords({ findings, incidents }: Agent): string {
  const open = findings.filter((life) => life.over === null).length;
  return `${plural(open, "finding")} open, ${count(findings.length - open)} over, ${plural(incidents.length, "incident")} kept`;
}

/** Of today, the time alone. */
function openedWords(opened: number, now: number): string {
  const [day, time] = dated(opened, "wall").split(" ");
  return day === dated(now, "wall").split(" ")[0] ? time : `${day.slice(5)} ${time}`;
}

const UNITS: [string, number][] = [
  ["s", 1e6],
  ["min", 60e6],
  ["h", 3600e6],
  ["days", 86_400e6],
];
const UNIT_UP_TO = 120;

/** In whole units: what was hours ago needs no seconds. */
function ago(us: number): string {
  const [unit, long] = UNITS.find(([, long]) => us < UNIT_UP_TO * long) ?? UNITS[UNITS.length - 1];
  return `${Math.round(us / long)} ${unit} ago`;
}

function others({ others }: Incident): string {
  return others === 0 ? "" : `with ${plural(others, "more finding")}; `;
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
