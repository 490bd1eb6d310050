// The keyboard stays where it was when controls are drawn anew.

/** Draws, and gives the focus back to the control of the same `data-key`. */
export function keepingFocus(root: HTMLElement, draw: () => void): void {
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && root.contains(focused) ? focused.dataset.key : undefined;
  draw();
  if (key) root.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
}
