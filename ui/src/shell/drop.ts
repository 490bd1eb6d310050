// A file that is dropped anywhere on the page is opened.

import { h } from "../dom/element";

export function drops(open: (file: File) => void): HTMLElement {
  const veil = h("div", { class: "veil", attrs: { role: "status", hidden: true } }, h("p", {}, "Drop the file to open it"));
  const hasFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    veil.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    veil.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file) open(file);
  });
  return veil;
}
