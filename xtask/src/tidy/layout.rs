//! Things are where the architecture says: `unsafe` behind its fence, every sensor in
//! the list, every BPF program with its header and its wrapper, every rule by itself, and
//! consent made where somebody gives it.

use super::{Complaint, tree::Tree};

/// The crates that may allow `unsafe`.
const UNSAFE: &[&str] = &[
    "crates/sexton-host/",
    "crates/sexton-bpf/",
    "crates/sexton-testkit/",
    "crates/sexton-kernel-tests/",
];

/// Put together from parts, so that this file does not hold what it looks for.
const ALLOWS_UNSAFE: &[&str] = &[
    concat!("allow(", "unsafe_code"),
    concat!("expect(", "unsafe_code"),
];

const SENSORS: &str = "crates/sexton-sensors/src";
const PROGRAMS: &str = "crates/sexton-bpf/src/prog";
const RULES: &str = "crates/sexton-analysis/src/rules";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    [
        unsafe_outside_its_fence(tree),
        sensors(tree),
        programs(tree),
        rules(tree),
        consent(tree),
    ]
    .concat()
}

fn unsafe_outside_its_fence(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let outside = |path: &str| !UNSAFE.iter().any(|fence| path.starts_with(fence));
    for file in tree
        .code()
        .filter(|file| file.is_rust() && outside(&file.path))
    {
        for (number, line) in file.lines() {
            if ALLOWS_UNSAFE
                .iter()
                .any(|attribute| line.contains(attribute))
            {
                let text = "`unsafe` is for sexton-host, sexton-bpf and the test crates: move the code there";
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

/// A sensor is a file that defines a `SPEC`; `lib.rs` lists it as `<stem>::SPEC`.
fn sensors(tree: &Tree) -> Vec<Complaint> {
    let lib_path = format!("{SENSORS}/lib.rs");
    let Some(lib) = tree.file(&lib_path) else {
        return Vec::new();
    };
    let mut complaints = Vec::new();
    let listed: Vec<(usize, &str)> = lib
        .lines()
        .flat_map(|(n, line)| listed(line).map(move |name| (n, name)))
        .collect();
    let mut defined = Vec::new();
    for file in tree
        .under(SENSORS)
        .filter(|file| file.is_rust() && file.path != lib_path)
    {
        let spec =
            |line: &str| line.contains("SensorSpec = SensorSpec {") || line.contains("static SPEC");
        let Some((number, _)) = file.lines_without_tests().find(|(_, line)| spec(line)) else {
            continue;
        };
        defined.push(file.stem());
        if !listed.iter().any(|(_, name)| *name == file.stem()) {
            let text = format!(
                "this sensor is not in the list: add `&{}::SPEC` to lib.rs",
                file.stem()
            );
            complaints.push(Complaint::new(&file.path, number, text));
        }
    }
    for (number, name) in listed {
        if !defined.contains(&name) {
            let text = format!(
                "the list names `{name}`, but {SENSORS}/{name}.rs defines no SPEC: add it or delist it"
            );
            complaints.push(Complaint::new(&lib_path, number, text));
        }
    }
    complaints
}

/// The `name` of every `name::SPEC` in a line of code.
fn listed(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    let starts = code.match_indices("::SPEC").map(|(at, _)| at);
    starts.filter_map(|at| {
        let name = code[..at]
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        name.filter(|name| !name.is_empty())
    })
}

fn programs(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for program in tree
        .under(PROGRAMS)
        .filter(|file| file.path.ends_with(".bpf.c"))
    {
        for (suffix, purpose) in [
            ("h", "for the types both sides use"),
            ("rs", "for its safe wrapper"),
        ] {
            let wanted = format!("{PROGRAMS}/{}.{suffix}", program.stem());
            if tree.file(&wanted).is_none() {
                let text = format!("this program needs {wanted} {purpose}");
                complaints.push(Complaint::new(&program.path, 1, text));
            }
        }
    }
    complaints
}

/// A rule names no other rule, and no list of rules: what two need is evidence, which they
/// share, and what joins two is a link.
fn rules(tree: &Tree) -> Vec<Complaint> {
    let rules: Vec<&str> = tree
        .under(RULES)
        .filter_map(|file| rule_of(&file.path))
        .collect();
    let mut complaints = Vec::new();
    for file in tree.under(RULES).filter(|file| file.is_rust()) {
        let own = rule_of(&file.path).unwrap_or_default();
        for (number, line) in file.lines() {
            let code = line.split("//").next().unwrap_or_default();
            let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let other = words.find(|word| *word != own && rules.contains(word));
            let text = match other {
                Some(other) => format!("this rule names the rule {other}"),
                None if reaches_for_rules(code, own) => "this rule reaches for other rules".into(),
                None => continue,
            };
            let text = format!("{text}: move what both need to evidence, or make it a link");
            complaints.push(Complaint::new(&file.path, number, text));
        }
    }
    complaints
}

/// The rule that a file below the folder of rules belongs to.
fn rule_of(path: &str) -> Option<&str> {
    let first = path.strip_prefix(RULES)?.strip_prefix('/')?;
    let first = first.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// Whether a line names something of the folder of rules that is not the rule's own.
fn reaches_for_rules(code: &str, own: &str) -> bool {
    let paths = code.match_indices("crate::rules");
    let mut rests = paths.map(|(at, found)| &code[at + found.len()..]);
    rests.any(|rest| match rest.strip_prefix("::") {
        Some(rest) => !rest.starts_with(own),
        None => true,
    })
}

/// Where a `Consent` is made: of a person's yes, and of what the configuration names.
const CONSENTS: [&str; 2] = [
    "crates/sexton/src/consent.rs",
    "crates/sexton/src/commands/agent/act.rs",
];

/// Put together from parts, so that this file does not hold what it looks for.
const MAKES_CONSENT: &str = concat!("Consent::", "given_by");

/// What changes a node wants a consent; made anywhere else it would be worth nothing.
fn consent(tree: &Tree) -> Vec<Complaint> {
    let is_free =
        |path: &str| CONSENTS.contains(&path) || path.starts_with("crates/sexton-kernel-tests/");
    let files = tree.code().filter(|file| file.is_rust());
    let mut complaints = Vec::new();
    for file in files.filter(|file| !is_free(&file.path)) {
        for (number, line) in file.lines_without_tests() {
            if line.contains(MAKES_CONSENT) {
                let text =
                    "consent is made in crates/sexton/src/consent.rs alone: take it from there";
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    #[test]
    fn unsafe_stays_behind_its_fence() {
        for attribute in ALLOWS_UNSAFE {
            let text = format!("//! A crate.\n#![{attribute}, reason = \"speed\")]\n");
            let tree = Tree::of(&[
                ("crates/sexton-host/src/lib.rs", &text),
                ("crates/sexton-bpf/src/lib.rs", &text),
                ("crates/sexton-testkit/src/lib.rs", &text),
                ("crates/sexton-hostile/src/lib.rs", &text),
                ("xtask/src/main.rs", &text),
            ]);
            check_complaints(
                check,
                &tree,
                &[
                    "crates/sexton-hostile/src/lib.rs:2: ",
                    "xtask/src/main.rs:2: ",
                ],
            );
        }
    }

    const SENSOR: &str = "//! Docs.\npub(crate) static SPEC: SensorSpec = SensorSpec {\n};\n";

    fn check_sensors(lib: &str, expected: &[&str]) {
        let tree = Tree::of(&[
            ("crates/sexton-sensors/src/lib.rs", lib),
            ("crates/sexton-sensors/src/memcg.rs", SENSOR),
            ("crates/sexton-sensors/src/shared.rs", "fn shared() {}\n"),
        ]);
        check_complaints(check, &tree, expected);
    }

    #[test]
    fn sensors_and_their_list_agree() {
        check_sensors("pub static ALL: &[&SensorSpec] = &[&memcg::SPEC];\n", &[]);
        check_sensors(
            "// not memcg::SPEC\n",
            &["crates/sexton-sensors/src/memcg.rs:2: this sensor"],
        );
        check_sensors(
            "&[\n    &memcg::SPEC,\n    &shared::SPEC, &gone::SPEC,\n]\n",
            &[
                "crates/sexton-sensors/src/lib.rs:3: the list names `gone`",
                "crates/sexton-sensors/src/lib.rs:3: the list names `shared`",
            ],
        );
    }

    #[test]
    fn a_program_comes_with_its_header_and_wrapper() {
        let tree = Tree::of(&[
            ("crates/sexton-bpf/src/prog/memcg_walk.bpf.c", ""),
            ("crates/sexton-bpf/src/prog/memcg_walk.h", ""),
            ("crates/sexton-bpf/src/prog/memcg_walk.rs", ""),
            ("crates/sexton-bpf/src/prog/pins.bpf.c", ""),
            ("crates/sexton-bpf/src/prog/kernel.h", ""),
        ]);
        let needs = "crates/sexton-bpf/src/prog/pins.bpf.c:1: this program needs crates/sexton-bpf/src/prog/pins";
        check_complaints(
            check,
            &tree,
            &[&format!("{needs}.h"), &format!("{needs}.rs")],
        );
    }
    #[test]
    fn consent_is_made_where_it_is_given() {
        let text = format!("fn f() {{\n    {MAKES_CONSENT}_the_user();\n}}\n");
        let in_a_test =
            format!("#[cfg(test)]\nmod tests {{\n    {MAKES_CONSENT}_the_user();\n}}\n");
        let tree = Tree::of(&[
            ("crates/sexton/src/consent.rs", &text),
            ("crates/sexton/src/commands/zombies.rs", &text),
            ("crates/sexton-remedy/src/fix.rs", &in_a_test),
        ]);
        check_complaints(check, &tree, &["crates/sexton/src/commands/zombies.rs:2: "]);
    }
    #[test]
    fn a_rule_stands_alone() {
        let tree = Tree::of(&[
            (
                "crates/sexton-analysis/src/rules/unit001_loop.rs",
                "mod part;\n// Unlike cpu001_core.\nuse crate::rules::unit001_loop::part::Part;\n",
            ),
            (
                "crates/sexton-analysis/src/rules/unit001_loop/part.rs",
                "use super::CODE;\nuse super::super::cpu001_core::CODE;\n",
            ),
            (
                "crates/sexton-analysis/src/rules/cpu001_core.rs",
                "use super::{\n    unit001_loop,\n};\nuse crate::rules::RULES;\nuse crate::rules;\n",
            ),
            (
                "crates/sexton-analysis/src/verdict.rs",
                "use crate::rules::cpu001_core::CODE;\n",
            ),
        ]);
        let rules = "crates/sexton-analysis/src/rules";
        check_complaints(
            check,
            &tree,
            &[
                &format!("{rules}/cpu001_core.rs:2: this rule names the rule unit001_loop"),
                &format!("{rules}/cpu001_core.rs:4: this rule reaches for other rules"),
                &format!("{rules}/cpu001_core.rs:5: this rule reaches for other rules"),
                &format!("{rules}/unit001_loop/part.rs:2: this rule names the rule cpu001_core"),
            ],
        );
    }
}
