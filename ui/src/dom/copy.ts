// Copying: with the browser's clipboard where it is allowed, by a selection where not
// (a page from disk, or one without TLS).

import { h } from "./element";

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = h("textarea", { class: "off-screen", attrs: { readonly: true } });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** A button that copies, and says that it did. */
export function copyButton(text: () => string, words = "Copy"): HTMLButtonElement {
  const button = h("button", { class: "small", attrs: { type: "button" } }, words);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    button.textContent = (await copy(text())) ? "Copied" : "Press Ctrl-C";
    setTimeout(() => (button.textContent = words), 1500);
  });
  return button;
}
