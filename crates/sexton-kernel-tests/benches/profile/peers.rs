//! Each program on the same recording, timed and metered.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;

/// The argument that makes this bench fold stacks with inferno.
pub(crate) const INFERNO: &str = "--inferno";

const METER: &str = env!("CARGO_BIN_EXE_meter");

/// Each is run so often; the one with the least CPU time counts, because the machine may have
/// other work.
pub(crate) const RUNS: usize = 3;

/// What one program took.
pub(crate) struct Figure {
    pub(crate) who: String,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
}

/// What all took.
pub(crate) struct Figures {
    pub(crate) n_samples: u64,
    pub(crate) data_bytes: u64,
    pub(crate) text_bytes: u64,
    pub(crate) bundle_bytes: u64,
    /// perf.data: perf script, then sexton's questions.
    pub(crate) of_data: Vec<Figure>,
    /// The text: inferno, FlameScope, then sexton.
    pub(crate) of_text: Vec<Figure>,
    pub(crate) absent: Vec<String>,
}

/// Folds a text with inferno, as its own program does.
pub(crate) fn run_inferno(file: &Path) -> Result<()> {
    let reader = BufReader::with_capacity(1 << 20, File::open(file)?);
    Ok(Folder::default().collapse(reader, io::sink())?)
}

/// What sexton is asked of perf.data.
const QUESTIONS: [(&str, &[&str]); 5] = [
    ("sexton profile heatmap", &["heatmap", "--format", "json"]),
    ("sexton profile flame", &["flame", "--format", "svg"]),
    (
        "sexton profile export (pprof)",
        &["export", "--format", "pprof"],
    ),
    (
        "sexton profile export (folded)",
        &["export", "--format", "folded"],
    ),
    ("sexton profile top", &["top"]),
];

/// Runs all of them.
pub(crate) fn measure(sexton: &Path, data: &Path, folder: &Path) -> Result<Figures> {
    let text = folder.join("script.txt");
    let data_arg = data.display().to_string();
    let text_arg = text.display().to_string();
    let perf = Path::new("perf");
    let mut of_data = vec![run("perf script", perf, &["script", "-i", &data_arg])?];
    write_text(data, &text)?;
    for (who, verb) in QUESTIONS {
        let args = [&["profile"], verb, &["--from", &data_arg]].concat();
        of_data.push(run(who, sexton, &args)?);
    }
    let mut absent = Vec::new();
    match samply(&data_arg, folder)? {
        Some(figure) => of_data.push(figure),
        None => absent.push("samply: it could not be built here".to_owned()),
    }
    let own = std::env::current_exe()?;
    let mut of_text = vec![run(
        "inferno-collapse-perf (library)",
        &own,
        &[INFERNO, &text_arg],
    )?];
    match flamescope(&text)? {
        Some(figure) => of_text.push(figure),
        None => absent.push("FlameScope: FLAMESCOPE names no checkout".to_owned()),
    }
    let folded = [
        "profile", "export", "--idle", "--format", "folded", "--from", &text_arg,
    ];
    of_text.push(run("sexton profile export (folded)", sexton, &folded)?);
    let heat = [
        "profile", "heatmap", "--format", "json", "--from", &text_arg,
    ];
    of_text.push(run("sexton profile heatmap", sexton, &heat)?);
    let n_samples = n_samples(sexton, &data_arg)?;
    let bundle_bytes = import(sexton, &data_arg, &folder.join("imported"))?;
    Ok(Figures {
        n_samples,
        data_bytes: data.metadata()?.len(),
        text_bytes: text.metadata()?.len(),
        bundle_bytes,
        of_data,
        of_text,
        absent,
    })
}

fn write_text(data: &Path, text: &Path) -> Result<()> {
    let status = Command::new("perf")
        .args(["script", "-i"])
        .arg(data)
        .stdout(File::create(text)?)
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.success(), "perf script failed");
    Ok(())
}

/// The best of some runs.
pub(crate) fn run(who: &str, program: &Path, args: &[&str]) -> Result<Figure> {
    let mut found = None;
    for _ in 0..RUNS {
        best(&mut found, run_once(who, program, args)?);
    }
    found.context("it was never run")
}

/// Keeps the better one.
pub(crate) fn best(best: &mut Option<Figure>, figure: Figure) {
    if best.as_ref().is_none_or(|best| figure.cpu < best.cpu) {
        *best = Some(figure);
    }
}

pub(crate) fn run_once(who: &str, program: &Path, args: &[&str]) -> Result<Figure> {
    let began = Instant::now();
    let output = Command::new(METER)
        .arg(program)
        .args(args)
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {who}"))?;
    let wall = began.elapsed();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
    let [cpu_us, peak_kib, exit] = numbers[..] else {
        anyhow::bail!("the meter said {said:?} of {who}");
    };
    ensure!(exit == 0, "{who} ended with {exit}");
    Ok(Figure {
        who: who.to_owned(),
        wall,
        cpu: Duration::from_micros(cpu_us),
        peak_bytes: peak_kib * 1024,
    })
}

fn samply(data: &str, folder: &Path) -> Result<Option<Figure>> {
    let Some(program) = std::env::var_os("SEXTON_BENCH_SAMPLY") else {
        return Ok(None);
    };
    let out = folder.join("samply.json.gz").display().to_string();
    let args = ["import", data, "--save-only", "-o", &out];
    run("samply import", &PathBuf::from(program), &args).map(Some)
}

/// Its parser and its heat map; only its web server is left out.
const RUN_FLAMESCOPE: &str = "
import importlib, json, os, sys, types
root, text = sys.argv[1:3]
sys.path.insert(0, root)
package = types.ModuleType('app')
package.__path__ = [os.path.join(root, 'app')]
sys.modules['app'] = package
package.config = importlib.import_module('app.config')
package.config.PROFILE_DIR = os.path.dirname(text)
from app.controllers.heatmap import generate_heatmap
json.dump(generate_heatmap(os.path.basename(text), 'perf'), open(os.devnull, 'w'))
";

fn flamescope(text: &Path) -> Result<Option<Figure>> {
    let Some(root) = std::env::var_os("FLAMESCOPE") else {
        return Ok(None);
    };
    let python = std::env::var_os("FLAMESCOPE_PYTHON").unwrap_or_else(|| "python3".into());
    let root = root.to_string_lossy().into_owned();
    let text = text.display().to_string();
    let args = ["-c", RUN_FLAMESCOPE, &root, &text];
    // Once: it takes longer than all others together.
    run_once("FlameScope's heat map", &PathBuf::from(python), &args).map(Some)
}

fn n_samples(sexton: &Path, data: &str) -> Result<u64> {
    let args = [
        "profile", "top", "--json", "--idle", "--event", "all", "--from", data,
    ];
    let output = Command::new(sexton)
        .args(args)
        .stderr(Stdio::null())
        .output()?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    json["samples"]
        .as_u64()
        .context("top says how many samples there are")
}

fn import(sexton: &Path, data: &str, bundle: &Path) -> Result<u64> {
    let status = Command::new(sexton)
        .args(["profile", "import", data, "-o"])
        .arg(bundle)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.success(), "sexton profile import failed");
    let files = std::fs::read_dir(bundle.join("stacks"))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}
