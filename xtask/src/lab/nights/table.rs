//! What many nights say, as a table for people.

use std::fmt::Write as _;

use sexton_lab::night::score::{Row, Total};

/// The table of nights from a first seed on, and those that were not good, with their seeds.
pub(super) fn table(total: &Total, first: u64, bad: &[(u64, String)]) -> String {
    let last = first + (total.n_nights as u64).saturating_sub(1);
    let all = total.all();
    let mut text = format!(
        "{} nights (seeds {first} to {last}): {} good. {} findings had to be made, {} were ({}); \
         {} innocent {} accused.\n\n\
         | code | had to be found | found | recall | true findings | innocent accused | precision |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
        total.n_nights,
        total.n_good,
        all.n_true,
        all.n_found,
        percent(all.recall()),
        all.n_wrong,
        if all.n_wrong == 1 { "was" } else { "were" },
    );
    for (code, row) in &total.codes {
        text += &line(code, row);
    }
    text += &line("all", &all);
    if !bad.is_empty() {
        text += "\nNights that were not good (each is played alone by its seed):\n\n";
        for (seed, why) in bad {
            let _ = writeln!(text, "- {seed}: {why}");
        }
    }
    text
}

fn line(code: &str, row: &Row) -> String {
    format!(
        "| {code} | {} | {} | {} | {} | {} | {} |\n",
        row.n_true,
        row.n_found,
        percent(row.recall()),
        row.n_right,
        row.n_wrong,
        percent(row.precision()),
    )
}

fn percent(part: Option<f64>) -> String {
    part.map_or("-".into(), |part| format!("{:.1} %", 100.0 * part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_lab::night::score::Score;

    #[test]
    fn a_table_has_a_row_for_each_code_and_the_seeds_of_what_failed() {
        let mut total = Total::default();
        total.add(&Score {
            found: vec!["UNIT001:a".into(), "MEM001:b".into()],
            missed: vec!["MEM001:c".into()],
            right: vec!["UNIT001:a".into()],
            accused: vec!["UNIT001:d (t)".into()],
            ..Score::default()
        });
        let text = table(&total, 7, &[(7, "missed MEM001:c".into())]);
        for expected in [
            "1 nights (seeds 7 to 7): 0 good. 3 findings had to be made, 2 were (66.7 %); 1 innocent was accused.",
            "| MEM001 | 2 | 1 | 50.0 % | 0 | 0 | - |\n",
            "| UNIT001 | 1 | 1 | 100.0 % | 1 | 1 | 50.0 % |\n",
            "| all | 3 | 2 | 66.7 % | 1 | 1 | 50.0 % |\n",
            "- 7: missed MEM001:c\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
