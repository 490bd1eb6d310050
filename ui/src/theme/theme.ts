// Light or dark: as the system says, until the user says otherwise.

import { type Palette, readPalette } from "./palette";

type Name = "dark" | "light";
const KEY = "sexton-theme";

export class Theme {
  #listeners: (() => void)[] = [];
  #system = matchMedia("(prefers-color-scheme: dark)");
  #chosen: Name | null = remembered();
  palette: Palette;

  constructor() {
    this.#system.addEventListener("change", () => this.#apply());
    this.palette = this.#paint();
  }

  get name(): Name {
    return this.#chosen ?? (this.#system.matches ? "dark" : "light");
  }

  subscribe(listener: () => void): void {
    this.#listeners.push(listener);
  }

  toggle(): void {
    this.#chosen = this.name === "dark" ? "light" : "dark";
    remember(this.#chosen);
    this.#apply();
  }

  #apply(): void {
    this.palette = this.#paint();
    for (const listener of this.#listeners) listener();
  }

  #paint(): Palette {
    document.documentElement.dataset.theme = this.name;
    return readPalette(this.name);
  }
}

// A page from disk may have no storage at all.
function remembered(): Name | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : null;
  } catch {
    return null;
  }
}

function remember(name: Name): void {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // It then holds for this visit only.
  }
}
