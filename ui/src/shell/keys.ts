// Keys that work anywhere on the page, except where one types.

export type KeyMap = Record<string, () => void>;

export function keys(map: KeyMap): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const act = map[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable], dialog[open]") !== null
  );
}
