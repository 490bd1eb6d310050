//! The picture of a terminal in the README, made from a real run, so that it stays true.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p sexton picture` draws it again.

use std::fmt::Write as _;

use sexton_testkit::snapshot;

use crate::golden::root;
use crate::terminal::shown;

/// What is typed, and the recording that it is typed for.
const TYPED: &str = "sudo sexton diagnose";
const BUNDLE: &str = "fixtures/6.18-debian12/founding-inner-loop";

const COLUMNS: u16 = 80;
const ROW_PX: f64 = 18.0;
const COLUMN_PX: f64 = 8.4;
const MARGIN_PX: f64 = 16.0;

#[test]
fn the_picture_of_the_readme_is_what_a_terminal_shows() {
    let screen = shown(&root(), &["diagnose", BUNDLE], (COLUMNS, 24), &[]);
    let picture = root().join("docs/images/diagnose.svg");
    snapshot::check(&picture, &draw(&format!("$ {TYPED}\n{screen}")));
}

/// A run of characters that look alike.
struct Run {
    column: usize,
    text: String,
    look: String,
}

/// Draws what a terminal shows.
fn draw(screen: &str) -> String {
    let lines: Vec<Vec<Run>> = screen.trim_end().lines().map(runs).collect();
    let width = f64::from(COLUMNS) * COLUMN_PX + 2.0 * MARGIN_PX;
    let height = lines.len() as f64 * ROW_PX + 2.0 * MARGIN_PX;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{TYPED}\">\n\
         <style>text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;\
         white-space:pre;fill:#d8dee9}}.s1{{font-weight:bold}}.s2{{fill:#8a93a3}}.s31{{fill:#ff7b72}}\
         .s32{{fill:#7ee787}}.s33{{fill:#e3b341}}.s36{{fill:#79c0ff}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#161b22\"/>\n"
    );
    for (row, runs) in lines.iter().enumerate() {
        let y = MARGIN_PX + (row as f64 + 0.75) * ROW_PX;
        for run in runs {
            let x = MARGIN_PX + run.column as f64 * COLUMN_PX;
            let length = run.text.chars().count() as f64 * COLUMN_PX;
            // With its length given, columns stay aligned in any font.
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{}>{}</text>",
                run.look,
                escape(&run.text)
            )
            .expect("a string takes everything");
        }
    }
    svg + "</svg>\n"
}

/// The runs of a line, cut where the look changes; blanks at either end of one are not drawn.
fn runs(line: &str) -> Vec<Run> {
    let mut found = Vec::new();
    let (mut column, mut look) = (0, String::new());
    for (n, part) in line.split("\x1b[").enumerate() {
        let (codes, text) = match n {
            0 => (None, part),
            _ => part
                .split_once('m')
                .map_or((None, part), |(codes, text)| (Some(codes), text)),
        };
        if let Some(codes) = codes {
            let classes: Vec<String> = codes.split(';').map(|code| format!("s{code}")).collect();
            look = match codes {
                "0" => String::new(),
                _ => format!(" class=\"{}\"", classes.join(" ")),
            };
        }
        let blanks = text.chars().take_while(|c| *c == ' ').count();
        if !text.trim().is_empty() {
            found.push(Run {
                column: column + blanks,
                text: text.trim().to_owned(),
                look: look.clone(),
            });
        }
        column += text.chars().count();
    }
    found
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
