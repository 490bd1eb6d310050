// Times and quantities in words. Wall-clock times are shown in UTC, as logs of nodes are.

import type { LaneUnit, Range } from "../api/types";

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export type Clock = "wall" | "boot";

/** A moment, as precise as a step of that many microseconds needs. */
export function moment(us: number, clock: Clock, step: number): string {
  if (clock === "boot") return sinceStart(us, step);
  const date = new Date(Math.floor(us / 1000));
  const iso = date.toISOString();
  if (step >= DAY) return iso.slice(5, 10);
  if (step >= MINUTE) return iso.slice(11, 16);
  if (step >= SECOND) return iso.slice(11, 19);
  if (step >= 1000) return iso.slice(11, 23);
  const micro = Math.floor(us) % 1000;
  return iso.slice(11, 23) + String(micro).padStart(3, "0");
}

/** Hours, minutes and seconds: two moments of a long profile must not look the same. */
function sinceStart(us: number, step: number): string {
  const whole = Math.floor(us / SECOND);
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const part = Math.floor(us % SECOND);
  const digits = step >= SECOND ? "" : `.${String(part).padStart(6, "0").slice(0, step >= 1000 ? 3 : 6)}`;
  return `+${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}${digits}`;
}

/** The day and the time, for headings. */
export function dated(us: number, clock: Clock): string {
  if (clock === "boot") return sinceStart(us, SECOND);
  const iso = new Date(Math.floor(us / 1000)).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}`;
}

export function rangeWords(range: Range, clock: Clock): string {
  const long = range[1] - range[0];
  const step = long >= 10 * SECOND ? SECOND : 1000;
  return `${moment(range[0], clock, step)} to ${moment(range[1], clock, step)} (${length(long)})`;
}

/** How long, in the unit people would use. */
export function length(us: number): string {
  const size = Math.abs(us);
  if (size < 1000) return `${Math.round(us)} µs`;
  if (size < SECOND) return `${short(us / 1000)} ms`;
  if (size < 2 * MINUTE) return `${short(us / SECOND)} s`;
  if (size < 2 * HOUR) return `${short(us / MINUTE)} min`;
  if (size < 2 * DAY) return `${short(us / HOUR)} h`;
  return `${short(us / DAY)} days`;
}

function short(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** `1 restart`, `1,457 restarts`. */
export const plural = (n: number, thing: string, many = `${thing}s`): string => `${count(n)} ${n === 1 ? thing : many}`;

/** The id of a container as the programs of containers show it. */
export const shortId = (id: string): string => id.slice(0, 12);

export function percent(ratio: number): string {
  const value = ratio * 100;
  if (value !== 0 && Math.abs(value) < 0.1) return "< 0.1 %";
  return `${value.toFixed(Math.abs(value) < 9.95 ? 1 : 0)} %`;
}

/** As reports write sizes: `1,023 B`, `1.5 KiB`, `500 MiB`. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = value;
  let unit = 0;
  // What would be rounded to 1,024 of a unit is one of the next.
  while (size >= 1023.5 && value >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  const words = unit === 0 || size >= 99.95 ? count(size) : String(Number(size.toFixed(1)));
  return `${words} ${units[unit]}`;
}

/** As reports write rates: two digits, because it is reckoned from a short watch; three where
    the first is 1. */
export function perHour(rate: number): string {
  const whole = Math.round(Math.abs(rate));
  const digits = Math.floor(Math.log10(Math.max(1, whole)));
  const kept = whole < 2 * 10 ** digits ? 2 : 1;
  const step = 10 ** Math.max(0, digits - kept);
  return `${rate < 0 ? "−" : "+"}${count(Math.round(whole / step) * step)}/h`;
}

export function quantity(value: number | null, unit: LaneUnit, perSecond = false): string {
  const words = amount(value, unit);
  return perSecond && value !== null ? `${words}/s` : words;
}

function amount(value: number | null, unit: LaneUnit): string {
  if (value === null) return "not seen";
  switch (unit) {
    case "ratio":
      return percent(value);
    case "bytes":
      return bytes(value);
    case "ns":
      return length(value / 1000);
    case "s":
      return length(value * 1e6);
    default:
      return Number.isInteger(value) ? count(value) : short(value);
  }
}
