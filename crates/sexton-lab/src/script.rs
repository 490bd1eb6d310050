//! The shell script that plays a scenario: the same in namespaces and in guests.

use std::fmt::Write as _;

use crate::scenario::{Engine, Fix, Scenario};

pub(crate) const PRELUDE: &str = include_str!("script/prelude.sh");

/// For shell that must hold, which has a shell of its own.
pub(crate) const PROOFS: &str = include_str!("script/proofs.sh");

/// Where the job puts what is brought back.
pub const OUT: &str = "out";

/// How fast things go where it is played.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long sexton watches.
    pub watch_seconds: u32,
    /// An emulator takes many seconds for each container.
    pub is_emulated: bool,
    /// The kernel refuses BPF to sexton.
    pub refuses_bpf: bool,
}

/// Containers that must have died before the watch, so that what they left is a pile: more
/// than `growing_floor` of MCG001. A loop pauses this long between two of them. The log of a
/// kernel that scenarios share has OOM kills of earlier ones: only those of the watch count.
const ENOUGH: &str = "enough=34\npause=0.3\npause_in_watch=0.3\npolicy='--policy policy.toml'\n\
    printf '[rules.MEM001]\\nbefore = 0\\n' > policy.toml\n";

/// In an emulator so many take a quarter of an hour. There fewer are enough, and sexton is
/// told by a policy that on this fleet fewer are a pile. They must be older than a minute too,
/// and while a loop pauses the clock of an emulator leaps.
const ENOUGH_EMULATED: &str = "enough=13\npause=5\npause_in_watch=1\npolicy='--policy policy.toml'\n\
    printf '[rules.MCG001]\\ngrowing_floor = 10\\n' > policy.toml\n";

/// Shell after which `$sexton` is sexton that the kernel refuses `bpf()`, by a seccomp filter, and
/// nothing else is refused it. Perl is in every Debian, so that no program has to be built for it.
pub const WITHOUT_BPF: &str = concat!(
    include_str!("script/without-bpf.sh"),
    include_str!("script/whole-node.sh"),
    "sexton='sh ./whole-node perl ./without-bpf ./sexton'\n"
);

/// The script of one scenario.
pub fn script(scenario: &Scenario, pace: Pace) -> String {
    let watch_seconds = pace.watch_seconds;
    let enough = match pace.is_emulated && scenario.engine.is_some() {
        true => ENOUGH_EMULATED,
        false => ENOUGH,
    };
    let sexton = match pace.refuses_bpf {
        true => WITHOUT_BPF,
        false => "sexton=./sexton\n",
    };
    let mut text = format!(
        "{enough}{sexton}{PRELUDE}\ncat > proofs <<'END_OF_PROOFS'\n{PROOFS}\nEND_OF_PROOFS\n"
    );
    for (name, unit) in &scenario.units {
        text += &unit_file(name, unit);
    }
    text += "systemctl daemon-reload\n";
    match scenario.engine {
        Some(Engine::Docker) => text += "engine docker\n",
        Some(Engine::Containerd) => text += "engine containerd\n",
        None => (),
    }
    let is_pile = |id: &String| id.starts_with("MCG001:");
    let ripen = match pace.is_emulated && scenario.expect.chain.iter().any(is_pile) {
        true => "ripen\n",
        false => "",
    };
    // Without BPF there are only counts, and those are of all who use this kernel.
    let count = match pace.refuses_bpf {
        true => "$sexton zombies --json > out/zombies.json || true\n",
        false => "",
    };
    let _ = write!(
        text,
        "{count}say 'making the trouble'\nmark setup\n{}\n{ripen}echo $pause_in_watch > pause\nmark ready\n\
         say 'watching for {} s'\n",
        scenario.setup, watch_seconds
    );
    if !scenario.meanwhile.is_empty() {
        let _ = write!(text, "({}\n) & beside=$!\n", scenario.meanwhile);
    }
    let _ = writeln!(text, "judge {watch_seconds}");
    if !scenario.meanwhile.is_empty() {
        text += "wait $beside\n";
    }
    let _ = write!(
        text,
        "holds happened <<'END_OF_PROOF'\n{}\nEND_OF_PROOF\n",
        scenario.happened
    );
    text += &fixing(&scenario.fix);
    let _ = write!(
        text,
        "say 'ending it'\n{}\nend_engine\nmark end\n",
        scenario.end
    );
    text
}

/// Shell that writes a unit file. A here-document takes any text but its own end.
pub(crate) fn unit_file(name: &str, unit: &str) -> String {
    format!("cat > /usr/local/lib/systemd/system/{name} <<'END_OF_UNIT'\n{unit}\nEND_OF_UNIT\n")
}

fn fixing(fix: &Fix) -> String {
    let mut text = format!(
        "say \"sexton fix {0} --apply\"\nfix {0}\nholds fixed <<'END_OF_PROOF'\n{1}\nEND_OF_PROOF\n",
        fix.args, fix.holds
    );
    if fix.verify {
        text += "say 'judging again'\nverify\n";
    }
    if !fix.undone.is_empty() {
        let _ = write!(
            text,
            "say 'sexton fix --undo'\nundo\nholds undone <<'END_OF_PROOF'\n{}\nEND_OF_PROOF\n",
            fix.undone
        );
    }
    text
}
