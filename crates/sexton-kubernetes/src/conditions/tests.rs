//! Conditions from verdicts.

use super::*;
use crate::verdict::NotAssessed;
use sexton_model::finding::Severity;

const MINUTE: u64 = 60_000_000_000;
const LOOP: Family = Family::UnitLoop;

fn board() -> Board {
    Board::new(Hold::default(), "https://example.org/codes/", 0)
}

fn problem(code: &'static str, severity: Severity) -> Problem {
    Problem {
        id: format!("{code}:ecs.service"),
        code,
        family: LOOP,
        severity,
        title: "ecs.service restarts every 1.4 s".into(),
        root: None,
        pods: Vec::new(),
    }
}

fn at(minute: u64, problems: Vec<Problem>) -> Verdict {
    Verdict {
        at: Moment::from_ns(minute * MINUTE),
        wall_ns: minute * MINUTE,
        problems,
        ..Verdict::default()
    }
}

fn bad(minute: u64) -> Verdict {
    at(minute, vec![problem("UNIT001", Severity::Serious)])
}

fn told(board: &Board, kind: &str) -> Value {
    let patch = board.patch(0, &[]);
    let all = patch["status"]["conditions"]
        .as_array()
        .expect("a list")
        .clone();
    all.into_iter()
        .find(|it| it["type"] == kind)
        .expect("it is told")
}

#[test]
fn unknown_until_the_first_verdict() {
    let mut board = board();
    assert_eq!(board.status(LOOP), Status::Unknown);
    assert!(board.is_changed());
    board.told();
    board.take(&at(1, Vec::new()));
    assert_eq!(board.status(LOOP), Status::False);
    assert!(board.is_changed());
    board.told();
    board.take(&at(2, Vec::new()));
    assert!(!board.is_changed(), "nothing happened");
}

#[test]
fn a_problem_is_told_at_once_with_its_cause_and_its_page() {
    let mut board = board();
    let mut found = problem("UNIT001", Severity::Serious);
    found.root = Some("ecs.service has no business here".into());
    board.take(&at(1, vec![found]));
    let condition = told(&board, "SextonUnitLoop");
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "UNIT001");
    let message = condition["message"].as_str().expect("a text");
    assert_eq!(
        message,
        "ecs.service restarts every 1.4 s; root cause: ecs.service has no business here. \
         Runbook: https://example.org/codes/UNIT001.md"
    );
}

#[test]
fn it_is_false_only_after_it_was_clear_for_five_minutes() {
    let mut board = board();
    board.take(&bad(0));
    for minute in 1..6 {
        board.take(&at(minute, Vec::new()));
        assert_eq!(board.status(LOOP), Status::True, "minute {minute}");
    }
    board.take(&at(6, Vec::new()));
    assert_eq!(board.status(LOOP), Status::False);
}

#[test]
fn what_comes_back_is_held_for_longer() {
    let mut board = board();
    let mut minute = 0;
    let mut held = Vec::new();
    for _ in 0..6 {
        board.take(&bad(minute));
        let began = minute;
        while board.status(LOOP) == Status::True {
            minute += 1;
            board.take(&at(minute, Vec::new()));
        }
        held.push(minute - began - 1);
    }
    assert_eq!(held, [5, 10, 20, 40, 60, 60]);
}

#[test]
fn a_finding_that_comes_and_goes_within_minutes_changes_nothing() {
    let mut board = board();
    board.take(&bad(0));
    board.told();
    for minute in 1..60 {
        let verdict = if minute % 3 == 0 {
            bad(minute)
        } else {
            at(minute, Vec::new())
        };
        board.take(&verdict);
        assert!(!board.is_changed(), "minute {minute}");
    }
}

#[test]
fn the_reason_stays_while_its_finding_is_open() {
    let mut board = board();
    board.take(&bad(0));
    board.told();
    let both = vec![
        problem("UNIT002", Severity::Serious),
        problem("UNIT001", Severity::Serious),
    ];
    board.take(&at(1, both));
    assert!(!board.is_changed());
    let graver = vec![
        problem("UNIT002", Severity::Critical),
        problem("UNIT001", Severity::Serious),
    ];
    board.take(&at(2, graver));
    assert_eq!(told(&board, "SextonUnitLoop")["reason"], "UNIT002");
    assert!(board.is_changed());
}

fn blind(minute: u64) -> Verdict {
    Verdict {
        not_assessed: vec![NotAssessed {
            family: LOOP,
            code: "UNIT001",
            because: "the sensor units failed".into(),
            is_essential: true,
        }],
        ..at(minute, Vec::new())
    }
}

#[test]
fn blind_is_unknown_after_two_minutes_and_keeps_a_problem_until_then() {
    let mut board = board();
    board.take(&at(0, Vec::new()));
    board.take(&blind(1));
    board.take(&blind(2));
    assert_eq!(board.status(LOOP), Status::False);
    board.take(&blind(3));
    assert_eq!(board.status(LOOP), Status::Unknown);
    let condition = told(&board, "SextonUnitLoop");
    assert_eq!(
        condition["message"],
        "cannot assess UNIT001: the sensor units failed"
    );
}

/// Unknown between True and False shortens nothing: what counts is the time that was clear.
#[test]
fn a_problem_is_not_forgotten_while_blind() {
    let mut board = board();
    board.take(&bad(0));
    (1..=3).for_each(|minute| board.take(&blind(minute)));
    let condition = told(&board, "SextonUnitLoop");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("Unknown"), &json!("BlindAfterProblem"))
    );
    for minute in 4..9 {
        board.take(&at(minute, Vec::new()));
        let reason = &told(&board, "SextonUnitLoop")["reason"];
        assert_eq!(reason, "ClearAfterProblem", "minute {minute}");
    }
    board.take(&at(9, Vec::new()));
    assert_eq!(board.status(LOOP), Status::False);
    board.take(&blind(10));
    board.take(&blind(12));
    board.take(&at(13, Vec::new()));
    assert_eq!(board.status(LOOP), Status::False, "nothing was open");
}

#[test]
fn a_restart_while_blind_does_not_forget_a_problem() {
    for reason in ["BlindAfterProblem", "ClearAfterProblem"] {
        let mut board = board();
        let node = json!({ "status": { "conditions": [
            { "type": "SextonUnitLoop", "status": "Unknown", "reason": reason },
        ]}});
        board.resume(&node);
        for minute in 1..6 {
            board.take(&at(minute, Vec::new()));
            assert_eq!(board.status(LOOP), Status::Unknown, "minute {minute}");
        }
        board.take(&at(6, Vec::new()));
        assert_eq!(board.status(LOOP), Status::False);
    }
}

#[test]
fn clear_time_does_not_count_as_blind_nor_blind_time_as_clear() {
    let mut board = board();
    board.take(&bad(0));
    board.take(&at(1, Vec::new()));
    board.take(&at(3, Vec::new()));
    board.take(&blind(4));
    assert_eq!(board.status(LOOP), Status::True, "blind for an instant");
    board.take(&blind(5));
    // Two minutes were clear before, and none of the three in which it was blind.
    for minute in 6..9 {
        board.take(&at(minute, Vec::new()));
        assert_eq!(board.status(LOOP), Status::True, "minute {minute}");
    }
    board.take(&at(9, Vec::new()));
    assert_eq!(board.status(LOOP), Status::False);
}

#[test]
fn neither_the_wall_clock_nor_a_pause_makes_a_problem_old() {
    let mut board = board();
    board.take(&bad(0));
    board.take(&at(1, Vec::new()));
    let mut stepped = at(2, Vec::new());
    stepped.wall_ns += 60 * MINUTE;
    board.take(&stepped);
    assert_eq!(board.status(LOOP), Status::True);
    // The node slept, or this process was stopped.
    board.take(&at(62, Vec::new()));
    assert_eq!(board.status(LOOP), Status::True);
}

#[test]
fn a_reboot_is_no_proof() {
    let boot = |is_proved| BootProof {
        family: LOOP,
        code: "UNIT001",
        is_proved,
        text: "ecs.service is masked".into(),
    };
    let mut board = board();
    let mut verdict = at(0, Vec::new());
    verdict.boots = vec![boot(false)];
    board.take(&verdict);
    assert_eq!(board.status(LOOP), Status::Unknown);
    board.take(&bad(0));
    verdict.at = Moment::from_ns(20 * MINUTE);
    board.take(&verdict);
    assert_eq!(board.status(LOOP), Status::True, "no finding is no proof");
    for minute in 21..=26 {
        verdict.at = Moment::from_ns(minute * MINUTE);
        verdict.boots = vec![boot(true)];
        board.take(&verdict);
    }
    let condition = told(&board, "SextonUnitLoop");
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["reason"], "BootVerified");
    assert_eq!(
        condition["message"],
        "proved after the reboot: ecs.service is masked"
    );
}

#[test]
fn a_restart_keeps_what_was_true_and_knows_nothing_else() {
    let mut board = board();
    let node = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" },
        { "type": "SextonUnitLoop", "status": "True", "reason": "UNIT001", "message": "it loops",
          "lastTransitionTime": "2026-11-18T03:00:00Z" },
        { "type": "SextonCoreLost", "status": "False", "reason": "NoFinding" },
        { "type": "SextonOfAnotherVersion", "status": "True" },
    ]}});
    assert_eq!(board.resume(&node), ["SextonOfAnotherVersion"]);
    assert_eq!(board.status(LOOP), Status::True);
    assert_eq!(board.status(Family::CoreLost), Status::Unknown);
    let condition = told(&board, "SextonUnitLoop");
    assert_eq!(condition["lastTransitionTime"], "2026-11-18T03:00:00Z");
    assert_eq!(condition["message"], "it loops");
    let patch = board.patch(0, &["SextonOfAnotherVersion".into()]);
    let text = patch.to_string();
    assert!(
        text.contains(r#"{"$patch":"delete","type":"SextonOfAnotherVersion"}"#),
        "{text}"
    );
    assert!(!text.contains("Ready"), "{text}");
}
