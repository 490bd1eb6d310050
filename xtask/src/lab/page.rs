//! docs/matrix.md, from the cards of runs and from what it said before.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use sexton_lab::scenario::Scenario;

use super::before::{Before, asked, section, shown};
use super::card::Card;

pub(super) const NOT_PLAYED: &str = "not played";

const HEAD: &str = "\
# The matrix

Written by `cargo xtask lab matrix`. A scenario of `lab/scenarios` is made to happen on a machine,
with a real systemd and a real Docker or containerd, and sexton is started there, cold. Cells that
were not played yet say so. A cell is green when all of this is true: what was meant to happen did; state, exit code, root
and chain are those that the scenario's file says; nobody else is accused; the answer came within 60 s;
the recording alone, judged by an unprivileged user, gives the same verdict to the byte; `fix --apply`
freed what it should, left the node as the file says, and touched no unit but those it was meant for,
none at all on a healthy node; and, where the file asks for it, a second judgement did not find it
again, and `fix --undo` restored the node. The figure is the time from the start of `sexton diagnose` to its
answer, by the machine's own clock, of which 12 s are the watch here and 30 s in guests (40 s for `cron`; 20 s for `exits-well` here).
On machines \"without BPF\" the kernel refuses `bpf()` to sexton, as old kernels and strict set-ups do.
Nothing names dying cgroups there: a pile is that of a directory, or of the node. In namespaces sexton is
shown the cgroups of the whole kernel then, as on a node; what was dying before is not counted against `fix`.
What is different in an
emulated guest is told in [lab.md](lab.md). A cell with ° was played before the file of its scenario
was last changed, and held to what that asked then.
";

/// The whole page. What has no card stays as it was.
pub(super) fn page(
    scenarios: &[Scenario],
    places: &[String],
    cards: &[Card],
    before: &Before,
) -> String {
    let mut text = format!("{HEAD}\n{}", machines(places, cards, before));
    let _ = write!(text, "\n| scenario |");
    for place in places {
        let _ = write!(text, " {} |", shown(place));
    }
    let _ = writeln!(text, "\n| --- |{}", " --- |".repeat(places.len()));
    let (mut n_green, mut n_red, mut reds) = (0, 0, String::new());
    for scenario in scenarios {
        let _ = write!(text, "| `{}` |", scenario.name);
        for place in places {
            let card = find(cards, &scenario.name, place);
            let cell = card.map_or_else(|| kept(scenario, place, before), cell);
            let _ = write!(text, " {cell} |");
            n_green += usize::from(cell.starts_with(GREEN));
            if cell.starts_with(RED) {
                n_red += 1;
                let said = before.why(&scenario.name, place);
                let why = card.map_or_else(|| said.unwrap_or_default().to_owned(), why);
                let _ = writeln!(reds, "- `{}` on {}: {why}", scenario.name, shown(place));
            }
        }
        text.push('\n');
    }
    let n_cells = scenarios.len() * places.len();
    let n_not = n_cells - n_green - n_red;
    let _ = writeln!(
        text,
        "\n{n_green} of {n_cells} cells are green, {n_red} red, {n_not} not played."
    );
    if !reds.is_empty() {
        let _ = write!(text, "\n## Red, and why\n\n{reds}");
    }
    text += &titles(scenarios);
    if let Some(nights) = before.nights() {
        let _ = writeln!(text, "\n{}", section(nights));
    }
    text
}

const NIGHTS: &str = "

## Nights of random trouble

Written by `cargo xtask lab nights --write`. A night draws one to three troubles of `lab/troubles` and up to two
innocents, each with random parameters and a random moment around the start of the watch, and plays them all
in one systemd in namespaces. What had to be found must be worse than a note, except lines in the kernel log that
a program wrote, which sexton trusts less. Every other finding that is worse than a note accuses an innocent.
";

/// Writes what nights say into the page, and leaves the rest of it.
pub(super) fn write_nights(table: &str) -> Result<()> {
    let page = super::matrix::page();
    let text = super::matrix::before().with_nights(&format!("{NIGHTS}\n{table}"));
    std::fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))
}

/// What the page said of a cell that nobody has played since.
fn kept(scenario: &Scenario, place: &str, before: &Before) -> String {
    let said = before.cell(&scenario.name, place);
    match said {
        None => NOT_PLAYED.to_owned(),
        Some(said) if before.asked(scenario) || said.ends_with(OLDER) => said.to_owned(),
        Some(said) => format!("{said}{OLDER}"),
    }
}

fn find<'a>(cards: &'a [Card], scenario: &str, place: &str) -> Option<&'a Card> {
    let mut cards = cards.iter();
    cards.find(|card| card.scenario == scenario && card.place == place)
}

/// Of a cell that was played before its scenario was written as it is now.
const OLDER: &str = " °";

const GREEN: &str = "green";
const RED: &str = "**red**";

fn cell(card: &Card) -> String {
    let seconds = card
        .seconds
        .map_or_else(String::new, |seconds| format!(" {seconds:.0} s"));
    match card.is_good() {
        true => format!("{GREEN}{seconds}"),
        false => format!("{RED}{seconds}"),
    }
}

/// Which kernels these were, and when.
fn machines(places: &[String], cards: &[Card], before: &Before) -> String {
    let mut text = "| machine | kernel | played |\n| --- | --- | --- |\n".to_owned();
    let namespaces = places.first().map_or("", String::as_str);
    for place in places {
        let here = cards.iter().filter(|card| card.place == *place);
        let release = here.clone().find(|card| !card.release.is_empty());
        let how = match place.starts_with(namespaces) {
            true => "systemd in namespaces",
            false => "Debian guest, emulated, 2 cores, 2 GiB",
        };
        let (release, day) = match (release, here.map(|card| card.at).max()) {
            (Some(card), Some(at)) => (card.release.as_str(), day(at)),
            _ => {
                let (release, day) = before.machine(place).unwrap_or(("", "not yet"));
                (release, day.to_owned())
            }
        };
        let _ = writeln!(text, "| {}, {how} | {release} | {day} |", shown(place));
    }
    text
}

/// Why a cell is red.
fn why(card: &Card) -> String {
    let wrong = card.checks.iter().filter_map(|(what, why)| {
        let why = why.as_ref()?.replace('\n', " ");
        let why: String = why.chars().take(300).collect();
        Some(format!("{what}: {why}"))
    });
    let wrong: Vec<String> = wrong.collect();
    wrong.join("; ")
}

fn titles(scenarios: &[Scenario]) -> String {
    let mut text = "\n## Scenarios\n\n".to_owned();
    for scenario in scenarios {
        let _ = writeln!(text, "- `{}`: {}", scenario.name, scenario.title);
    }
    text.push('\n');
    for scenario in scenarios {
        let _ = writeln!(text, "{}", asked(scenario));
    }
    text
}

/// The day of a moment in seconds since 1970, in the Gregorian calendar: days are counted
/// from the first of March of year 0, so that leap days come last.
fn day(at: u64) -> String {
    let days = at / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year + era * 400, month + 3),
        _ => (year + era * 400 + 1, month - 9),
    };
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_that_of_the_calendar() {
        let check = |at, expected: &str| assert_eq!(day(at), expected);
        check(0, "1970-01-01");
        check(951_782_400, "2000-02-29");
        check(1_794_787_200, "2026-11-16");
    }

    fn played(place: &str, why: Option<&str>) -> Card {
        Card {
            scenario: "timer".into(),
            place: place.into(),
            key: String::new(),
            release: "6.1.0-54".into(),
            at: 1_794_787_200,
            seconds: Some(23.4),
            failed: None,
            checks: vec![("root".into(), why.map(str::to_owned))],
        }
    }

    /// The page of one scenario on two machines.
    fn page_of(cards: &[Card], before: &str) -> String {
        let file = crate::workspace::root().join("lab/scenarios/timer.toml");
        let scenario = Scenario::read(&file).expect("a scenario");
        let places = ["6.1-v2".to_owned(), "7-v2".to_owned()];
        page(&[scenario], &places, cards, &Before(before.to_owned()))
    }

    #[test]
    fn a_red_cell_says_why() {
        let text = page_of(&[played("6.1-v2", Some("it blames cron"))], "");
        for expected in [
            "| `timer` | **red** 23 s | not played |\n",
            "0 of 2 cells are green, 1 red, 1 not played",
            "- `timer` on 6.1 v2: root: it blames cron\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn what_was_played_elsewhere_stays() {
        let before = page_of(&[played("6.1-v2", Some("it blames cron"))], "");
        let text = page_of(&[played("7-v2", None)], &before);
        for expected in [
            "| `timer` | **red** 23 s | green 23 s |\n",
            "1 of 2 cells are green, 1 red, 0 not played",
            "- `timer` on 6.1 v2: root: it blames cron\n",
            "| 6.1 v2, systemd in namespaces | 6.1.0-54 | 2026-11-16 |\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(page_of(&[], &text), text);
        let mended = page_of(&[played("6.1-v2", None)], &text);
        assert!(mended.contains("2 of 2 cells are green") && !mended.contains("blames"));
    }

    #[test]
    fn nights_stay_when_the_page_is_written_and_are_replaced_by_others() {
        let cards = [played("6.1-v2", None)];
        let with = |page: String, nights: &str| Before(page).with_nights(nights);
        let first = with(page_of(&cards, ""), "\nthe first nights\n");
        assert!(first.contains("the first nights"), "{first}");
        assert_eq!(page_of(&cards, &first), first);
        let second = with(first, "\nother nights\n");
        assert!(second.contains("other nights") && !second.contains("first nights"));
    }

    #[test]
    fn what_was_played_of_an_older_scenario_is_marked() {
        let all = [played("6.1-v2", None), played("7-v2", None)];
        let older = page_of(&all, "").replace("<!-- timer ", "<!-- timer of old ");
        let marked = "| `timer` | green 23 s ° | green 23 s |\n";
        let text = page_of(&all[1..], &older);
        assert!(text.contains(marked), "{text}");
        assert!(text.contains("2 of 2 cells are green"), "{text}");
        assert_eq!(page_of(&[], &text), text);
    }
}
