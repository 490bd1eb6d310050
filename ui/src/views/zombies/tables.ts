// The dying ones by who made them, by unit, and by the file that pins them.

import type { Origin, Zombies } from "../../api/types";
import { h, place } from "../../dom/element";
import { count, length } from "../../time/format";

type Cell = HTMLElement | string;

export function originTable(zombies: Zombies): HTMLElement {
  const most = largest(zombies.origins.map((origin) => origin.dying));
  const rows = zombies.origins.map((origin) => [
    h("span", {}, h("code", {}, origin.origin), ...originNotes(origin)),
    bar(origin.dying, most),
    number(origin.live),
    pins(origin),
    origin.oldest_seconds === null ? "not seen" : length(origin.oldest_seconds * 1e6),
  ]);
  return table(["Who made them", "Dying", "Live", "What pins them", "Oldest"], rows);
}

function originNotes(origin: Origin): HTMLElement[] {
  const notes = [
    origin.unit && `unit ${origin.unit}`,
    origin.image && `image ${origin.image}`,
    origin.leaked ? `${count(origin.leaked)} leaked: live, empty and old` : "",
    origin.held_by_children ? `${count(origin.held_by_children)} held by their children` : "",
    ...origin.files.slice(0, 3).map((file) => `${count(file.zombies)} pinned by ${file.path}`),
  ];
  return notes.filter(Boolean).map((note) => h("span", "source", note as string));
}

const PINS: ["file" | "shmem" | "anon" | "other", string][] = [
  ["file", "of files"],
  ["shmem", "of shared memory"],
  ["anon", "anonymous"],
  ["other", "swapped or unevictable"],
];

function pins(origin: Origin): HTMLElement {
  const known = PINS.map(([kind, words]) => ({ kind, words, value: origin.pins[kind] })).filter(({ value }) => value);
  const total = known.reduce((sum, { value }) => sum + (value ?? 0), 0);
  if (total === 0)
    return h("span", "quiet", origin.without_pin ? `${count(origin.without_pin)} without a page` : "not seen");
  const parts = known.map(({ kind, value }) => {
    const part = h("span", `pin ${kind}`);
    place(part, { "flex-grow": String((value ?? 0) / total) });
    return part;
  });
  const parted = known.map(({ words, value }) => `${count(value ?? 0)} ${words}`).join(", ");
  const words = `pages: ${parted}`;
  return h("span", "pins", words, h("span", { class: "pin-bar", attrs: { "aria-hidden": "true" } }, ...parts));
}

export function unitTable(zombies: Zombies): HTMLElement {
  const most = largest(zombies.units.map((unit) => unit.dying));
  const rows = zombies.units.map((unit) => [
    unit.unit === null ? h("span", "quiet", "no unit") : h("code", {}, unit.unit),
    bar(unit.dying, most),
    number(unit.live),
    number(unit.leaked),
    number(unit.origins),
  ]);
  const listed = zombies.units.reduce((sum, unit) => sum + (unit.dying ?? 0), 0);
  const rest = (zombies.dying ?? 0) - listed;
  if (rest > 0) rows.push([h("span", "quiet", "in no origin that was named"), bar(rest, most), "", "", ""]);
  return table(["Unit", "Dying", "Live", "Leaked", "Kinds"], rows);
}

export function fileTable(zombies: Zombies): HTMLElement {
  const most = largest(zombies.files.map((file) => file.zombies));
  const rows = zombies.files.map((file) => [
    h("span", {}, h("code", {}, file.path), h("span", "source", file.kind)),
    bar(file.zombies, most),
    h("span", {}, ...file.origins.slice(0, 5).map((origin) => h("code", "source", origin))),
  ]);
  return table(["File", "Dying cgroups it pins", "Made by"], rows);
}

export function readTable(zombies: Zombies): HTMLElement {
  const time = (ns: number | null) => (ns === null ? "not seen" : length(ns / 1000));
  const rows = zombies.reads
    .slice(-20)
    .map((read) => [
      read.file === null ? "" : h("code", {}, read.file),
      number(read.dying),
      time(read.root_ns),
      time(read.leaf_ns),
      h("span", {}, time(read.ancestor_ns), read.ancestor !== null && h("code", "source", read.ancestor)),
    ]);
  return table(["File read", "Dying then", "At the root", "At a leaf", "At a parent of dying ones"], rows);
}

function largest(values: (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 1);
}

function number(value: number | null): string {
  return value === null ? "not seen" : count(value);
}

function bar(value: number | null, most: number): Cell {
  if (value === null) return "not seen";
  const shape = h("span", { class: "amount", attrs: { "aria-hidden": "true" } });
  place(shape, { "--share": String(value / most) });
  return h("span", "amount-cell", h("span", "number", count(value)), shape);
}

/** The rest is shown on request. */
const MOST_ROWS = 100;

function table(heads: string[], rows: Cell[][]): HTMLElement {
  const head = h("tr", {}, ...heads.map((words) => h("th", { attrs: { scope: "col" } }, words)));
  const row = (cells: Cell[]) =>
    h("tr", {}, ...cells.map((cell, i) => h("td", { attrs: { "data-head": heads[i] } }, cell)));
  const body = h("tbody", {}, ...rows.slice(0, MOST_ROWS).map(row));
  const wide = h("div", "wide", h("table", "records", h("thead", {}, head), body));
  const rest = rows.slice(MOST_ROWS);
  if (rest.length === 0) return wide;
  const show = () => {
    const first = row(rest[0]);
    first.tabIndex = -1;
    body.append(first, ...rest.slice(1).map(row));
    more.remove();
    first.focus();
  };
  const words = `Show ${count(rest.length)} more`;
  const more = h("button", { class: "small", attrs: { type: "button" }, on: { click: show } }, words);
  return h("div", {}, wide, more);
}
