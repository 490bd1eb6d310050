// The colours that canvases need, read from the style sheet so that there is one list.

export interface Palette {
  theme: "dark" | "light";
  ink: string;
  quiet: string;
  line: string;
  paper: string;
  box: string;
  accent: string;
  mark: string;
  base: string;
  hatch: string;
  bad: string;
  warning: string;
  good: string;
}

export function readPalette(theme: "dark" | "light"): Palette {
  const styles = getComputedStyle(document.documentElement);
  const of = (name: string) => styles.getPropertyValue(`--${name}`).trim();
  return {
    theme,
    ink: of("ink"),
    quiet: of("quiet"),
    line: of("line"),
    paper: of("paper"),
    box: of("box"),
    accent: of("accent"),
    mark: of("mark"),
    base: of("base"),
    hatch: of("hatch"),
    bad: of("bad"),
    warning: of("warning"),
    good: of("good"),
  };
}
