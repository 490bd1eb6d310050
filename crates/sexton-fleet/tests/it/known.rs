//! Values of an independent implementation: scipy 1.17.1 and statsmodels 0.15.0.

use sexton_fleet::stats::adjust::q_values;
use sexton_fleet::stats::fisher::{self, Counts};
use sexton_fleet::stats::odds::Odds;
use sexton_fleet::stats::ranks;
use sexton_fleet::stats::special::{Factorials, chi_squared_tail};

type Known = ((u64, u64, u64, u64), f64, f64, f64, f64);

/// A table, `scipy.stats.fisher_exact`, and `statsmodels` `Table2x2`: odds ratio and its
/// interval. Tables with an empty cell were given to it with a half added to each.
const TABLES: &[Known] = &[
    (
        (3, 1, 1, 3),
        4.857142857143e-01,
        9.0,
        0.3666369319,
        220.9270069,
    ),
    (
        (8, 2, 1, 5),
        3.496503496503e-02,
        20.0,
        1.416185139,
        282.448946,
    ),
    (
        (0, 10, 10, 0),
        1.082508822447e-05,
        0.002267573696,
        4.10295071e-05,
        0.1253217704,
    ),
    (
        (12, 5, 29, 2),
        8.026855207410e-02,
        0.1655172414,
        0.02812383715,
        0.9741187535,
    ),
    (
        (1, 9, 11, 3),
        2.759456185220e-03,
        0.0303030303,
        0.002671575637,
        0.3437198755,
    ),
    (
        (250, 50, 100, 600),
        1.640039095825e-99,
        30.0,
        20.71889362,
        43.43861293,
    ),
    (
        (40, 60, 400, 9500),
        1.181414344520e-28,
        15.83333333,
        10.48267025,
        23.91513215,
    ),
    (
        (5, 995, 60, 98940),
        4.979976669070e-04,
        8.286432161,
        3.320685417,
        20.67794727,
    ),
    (
        (612, 3, 90, 300),
        1.429625249217e-168,
        680.0,
        213.478745,
        2166.023601,
    ),
    ((7, 7, 7, 7), 1.0, 1.0, 0.2272752345, 4.39995146),
    ((0, 5, 3, 2000), 1.0, 51.96103896, 2.390245709, 1129.569885),
    (
        (9000, 1000, 300, 89700),
        0.0,
        2691.0,
        2360.998994,
        3067.12583,
    ),
    (
        (1200, 800, 39000, 59000),
        1.844156136492e-72,
        2.269230769,
        2.073154582,
        2.48385158,
    ),
];

#[track_caller]
fn assert_close(ours: f64, theirs: f64, relative: f64) {
    let off = (ours - theirs).abs();
    assert!(
        off <= relative * theirs.abs() + 1e-300,
        "{ours} is not {theirs}"
    );
}

#[test]
fn fisher_and_odds_ratios() {
    let factorials = Factorials::up_to(100_000);
    for ((a, b, c, d), p, ratio, low, high) in TABLES {
        let counts = Counts {
            bad_with: *a,
            bad_without: *b,
            good_with: *c,
            good_without: *d,
        };
        assert_close(fisher::p_value(counts, &factorials), *p, 1e-8);
        let odds = Odds::of(counts);
        assert_close(odds.ratio, *ratio, 1e-8);
        assert_close(odds.low, *low, 1e-8);
        assert_close(odds.high, *high, 1e-8);
    }
}

#[test]
fn every_small_table_has_the_p_of_its_definition() {
    let factorials = Factorials::up_to(24);
    for bad in 1..9u64 {
        for good in 1..9u64 {
            for with in 0..=bad + good {
                let least = with.saturating_sub(good);
                let tables = least..=with.min(bad);
                let chance = |bad_with: u64| {
                    let ways = factorials.ln_choose(with, bad_with)
                        + factorials.ln_choose(bad + good - with, bad - bad_with);
                    (ways - factorials.ln_choose(bad + good, bad)).exp()
                };
                for bad_with in tables.clone() {
                    let seen = chance(bad_with) * (1.0 + 1e-7);
                    let as_unlikely = tables.clone().map(chance).filter(|p| *p <= seen);
                    let counts = Counts {
                        bad_with,
                        bad_without: bad - bad_with,
                        good_with: with - bad_with,
                        good_without: good + bad_with - with,
                    };
                    let expected = as_unlikely.sum::<f64>().min(1.0);
                    assert_close(fisher::p_value(counts, &factorials), expected, 1e-9);
                }
            }
        }
    }
}

#[test]
fn no_table_has_a_smaller_p_than_the_smallest() {
    let factorials = Factorials::up_to(24);
    for (bad, good) in (1..10u64).flat_map(|bad| (1..10).map(move |good| (bad, good))) {
        let tables = (0..=bad).flat_map(|a| (0..=good).map(move |b| (a, b)));
        let p_values = tables.map(|(bad_with, good_with)| {
            let counts = Counts {
                bad_with,
                bad_without: bad - bad_with,
                good_with,
                good_without: good - good_with,
            };
            fisher::p_value(counts, &factorials)
        });
        let least = p_values.fold(1.0, f64::min);
        assert_close(fisher::smallest_p(bad, good, &factorials), least, 1e-9);
    }
    // 12 things on five bad and five good nodes: none of them can be told from chance.
    assert!(fisher::smallest_p(5, 5, &factorials) * 12.0 > 0.05);
}

#[test]
fn mann_whitney() {
    // `scipy.stats.mannwhitneyu(method="asymptotic", use_continuity=True)`.
    let ours: [(&[f64], &[f64], f64, f64); 3] = [
        (
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
            4.5,
            2.172211982051e-02,
        ),
        (
            &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0],
            49.5,
            2.703441406548e-01,
        ),
        (
            &[3.5, 9.25, 7.0, 7.0],
            &[1.0, 1.0, 2.5, 6.0, 7.0],
            17.0,
            1.038619484261e-01,
        ),
    ];
    for (bad, good, u, p) in ours {
        let shift = ranks::shift(bad, good).unwrap();
        let all = (bad.len() * good.len()) as f64;
        assert_close(shift.superiority * all, u, 1e-12);
        assert_close(shift.p, p, 1e-9);
    }
}

#[test]
fn tail_of_chi_squared() {
    // `scipy.stats.chi2.sf`.
    for (x, degrees, p) in [
        (0.5, 1.0, 4.795001221870e-01),
        (3.841458820694124, 1.0, 5.0e-02),
        (40.0, 1.0, 2.539628589471e-10),
        (12.3, 3.0, 6.423057576578e-03),
        (700.0, 2.0, 9.929590396265e-153),
        (1400.0, 1.0, 2.101014516264e-306),
        (5.0, 8.0, 7.575761331331e-01),
    ] {
        assert_close(chi_squared_tail(x, degrees), p, 1e-8);
    }
}

#[test]
fn benjamini_hochberg() {
    // The example of Benjamini and Hochberg's paper, with `statsmodels` `multipletests`.
    let p = [
        0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216, 0.222, 0.251, 0.269,
        0.275, 0.34, 0.341, 0.384, 0.569, 0.594, 0.696, 0.762, 0.94, 0.942, 0.975, 0.986,
    ];
    let expected = [
        0.025,
        0.1,
        0.21,
        0.21,
        0.21,
        0.25,
        0.264_285_714_3,
        0.491_071_428_6,
    ];
    for (ours, theirs) in q_values(&p, 0).into_iter().zip(expected) {
        assert_close(ours, theirs, 1e-9);
    }
    // The order of the input does not matter.
    let reversed: Vec<f64> = p.iter().rev().copied().collect();
    let mut back = q_values(&reversed, 0);
    back.reverse();
    assert_eq!(back, q_values(&p, 0));
}
