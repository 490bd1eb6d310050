//! docs/matrix.md, from the cards of runs.

use std::fmt::Write as _;

use sexton_lab::scenario::Scenario;

use super::card::Card;

const HEAD: &str = "\
# The matrix

Written by `cargo xtask lab matrix`. A scenario of `lab/scenarios` is made to happen on a machine,
with a real systemd and a real Docker or containerd, and sexton is started there, cold. Cells that
were not played yet say so. A cell is green when all of this is true: what was meant to happen did; state, exit code, root
and chain are those that the scenario's file says; nobody else is accused; the answer came within 60 s;
and, where the file asks for it, `fix --apply` left what it should, a second judgement did not find it
again, and `fix --undo` restored the node; and the recording alone, judged by an unprivileged user,
gives the same verdict to the byte. The figure is the time from the start of `sexton diagnose` to its
answer, by the machine's own clock, of which 12 s are the watch here and 30 s in guests (45 s for `cron`, 20 s for `exits-well`).
What is different in an
emulated guest is told in [lab.md](lab.md).
";

/// The whole page.
pub(super) fn page(scenarios: &[Scenario], places: &[String], cards: &[Card]) -> String {
    let mut text = format!("{HEAD}\n{}", machines(places, cards));
    let _ = write!(text, "\n| scenario |");
    for place in places {
        let _ = write!(text, " {} |", place.replace('-', " "));
    }
    let _ = writeln!(text, "\n| --- |{}", " --- |".repeat(places.len()));
    for scenario in scenarios {
        let _ = write!(text, "| `{}` |", scenario.name);
        for place in places {
            let _ = write!(text, " {} |", cell(find(cards, &scenario.name, place)));
        }
        text.push('\n');
    }
    let n_green = cards.iter().filter(|card| card.is_good()).count();
    let n_cells = scenarios.len() * places.len();
    let n_not = n_cells - cards.len();
    let _ = writeln!(
        text,
        "\n{n_green} of {n_cells} cells are green, {} red, {n_not} not played.",
        cards.len() - n_green
    );
    text + &reds(cards) + &titles(scenarios)
}

fn find<'a>(cards: &'a [Card], scenario: &str, place: &str) -> Option<&'a Card> {
    let mut cards = cards.iter();
    cards.find(|card| card.scenario == scenario && card.place == place)
}

fn cell(card: Option<&Card>) -> String {
    let Some(card) = card else {
        return "not played".to_owned();
    };
    let seconds = card
        .seconds
        .map_or_else(String::new, |seconds| format!(" {seconds:.0} s"));
    match card.is_good() {
        true => format!("green{seconds}"),
        false => format!("**red**{seconds}"),
    }
}

/// Which kernels these were, and when.
fn machines(places: &[String], cards: &[Card]) -> String {
    let mut text = "| machine | kernel | played |\n| --- | --- | --- |\n".to_owned();
    for (i, place) in places.iter().enumerate() {
        let here = cards.iter().filter(|card| card.place == *place);
        let release = here.clone().find(|card| !card.release.is_empty());
        let how = match i {
            0 => "systemd in namespaces",
            _ => "Debian guest, emulated, 2 cores, 2 GiB",
        };
        let (release, day) = match (release, here.map(|card| card.at).max()) {
            (Some(card), Some(at)) => (card.release.as_str(), day(at)),
            _ => ("", "not yet".to_owned()),
        };
        let _ = writeln!(
            text,
            "| {}, {how} | {release} | {day} |",
            place.replace('-', " ")
        );
    }
    text
}

/// Why each red cell is red.
fn reds(cards: &[Card]) -> String {
    let mut text = String::new();
    for card in cards.iter().filter(|card| !card.is_good()) {
        let wrong = card.checks.iter().filter_map(|(what, why)| {
            let why = why.as_ref()?.replace('\n', " ");
            let why: String = why.chars().take(300).collect();
            Some(format!("{what}: {why}"))
        });
        let wrong: Vec<String> = wrong.collect();
        let _ = writeln!(
            text,
            "- `{}` on {}: {}",
            card.scenario,
            card.place.replace('-', " "),
            wrong.join("; ")
        );
    }
    match text.is_empty() {
        true => text,
        false => format!("\n## Red, and why\n\n{text}"),
    }
}

fn titles(scenarios: &[Scenario]) -> String {
    let mut text = "\n## Scenarios\n\n".to_owned();
    for scenario in scenarios {
        let _ = writeln!(text, "- `{}`: {}", scenario.name, scenario.title);
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

    #[test]
    fn a_red_cell_says_why() {
        let card = Card {
            scenario: "timer".into(),
            place: "6.1-v2".into(),
            key: String::new(),
            release: "6.1.0-54".into(),
            at: 0,
            seconds: Some(23.4),
            failed: None,
            checks: vec![("root".into(), Some("it blames cron".into()))],
        };
        let file = crate::workspace::root().join("lab/scenarios/timer.toml");
        let scenario = Scenario::read(&file).expect("a scenario");
        let places = ["6.1-v2".to_owned(), "7-v2".to_owned()];
        let text = page(&[scenario], &places, std::slice::from_ref(&card));
        assert!(
            text.contains("0 of 2 cells are green, 1 red, 1 not played"),
            "{text}"
        );
        assert!(
            text.contains("`timer` on 6.1 v2: root: it blames cron"),
            "{text}"
        );
        assert_eq!(cell(Some(&card)), "**red** 23 s");
        assert_eq!(cell(None), "not played");
    }
}
