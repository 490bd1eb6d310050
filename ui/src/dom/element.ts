// Elements without markup: text from outside is only ever text.

type Child = Node | string | number | null | undefined | false;

interface Traits {
  class?: string;
  title?: string;
  /** Attributes by name; false and null are left out, true is an empty one. */
  attrs?: Record<string, string | number | boolean | null | undefined>;
  on?: Partial<{ [E in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[E]) => void }>;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  traits: Traits | string = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const given = typeof traits === "string" ? { class: traits } : traits;
  if (given.class) element.className = given.class;
  if (given.title) element.title = given.title;
  for (const [name, value] of Object.entries(given.attrs ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, listener] of Object.entries(given.on ?? {})) {
    element.addEventListener(name, listener as EventListener);
  }
  element.append(...present(children));
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...present(children));
}

function present(children: Child[]): (Node | string)[] {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "number" ? String(child) : child));
}

/** Sizes that depend on data go through here: the policy forbids style attributes. */
export function place(element: HTMLElement, styles: Record<string, string>): void {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
}

/** Long names may break after a sign, not within a word. */
export function breakable(text: string): (HTMLElement | string)[] {
  return text
    .split(/(?<=[_/:.])(?=\w)/)
    .flatMap((part, i) => (i === 0 ? [part] : [document.createElement("wbr"), part]));
}
