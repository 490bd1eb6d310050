//! Exported profiles, opened by the programs they are for: speedscope's own importer, the
//! loader of the Firefox Profiler, and `go tool pprof`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{stderr, stdout};
use crate::profile::{Folder, prepared, profile, text};

/// How long a program that is started may take until it answers. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Loads a file as speedscope's page does, in a page without a screen. The importer is done
/// when the page has a title; drawing then fails for want of WebGL.
const OPEN_IN_SPEEDSCOPE: &str = r"
const { JSDOM, VirtualConsole } = require('jsdom');
const fs = require('fs'), path = require('path');
const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release');
const script = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
const url = 'http://localhost/#localProfilePath=given-below';
const options = { url, runScripts: 'outside-only', pretendToBeVisual: true };
const page = new JSDOM('', { ...options, virtualConsole: new VirtualConsole() }).window;
page.TextDecoder = TextDecoder;
page.TextEncoder = TextEncoder;
page.HTMLCanvasElement.prototype.getContext = () => null;
page.matchMedia = () => ({ addListener() {}, removeListener() {} });
page.alert = (text) => { console.log('refused: ' + text); process.exit(1); };
const look = (error) => {
  if (page.document.title) { console.log(page.document.title); process.exit(0); }
  if (error) { console.log('broke: ' + error.message); process.exit(1); }
};
process.on('uncaughtException', look);
page.eval(fs.readFileSync(path.join(release, script), 'utf8'));
const file = fs.readFileSync(process.argv[1]);
const begin = setInterval(() => {
  if (!page.speedscope) return;
  clearInterval(begin);
  page.speedscope.loadFileFromBase64('given.json', file.toString('base64'));
  setInterval(look, 20);
}, 20);
";

fn open_in_speedscope(file: &str) -> Output {
    let modules = prepared("node", "node/node_modules/jsdom");
    Command::new("node")
        .args(["-e", OPEN_IN_SPEEDSCOPE, file])
        .env("NODE_PATH", modules.parent().expect("a folder of modules"))
        .output()
        .expect("node")
}

#[test]
fn speedscope_imports_it() {
    let folder = Folder::new("viewer-speedscope");
    let file = folder.join("s.json");
    text(&profile(
        "export",
        "fp.data",
        &["--format", "speedscope", "-o", &file],
    ));
    let output = open_in_speedscope(&file);
    assert!(output.status.success(), "{}", stdout(&output));
    assert_eq!(stdout(&output), "sexton - speedscope\n");
    // Something else is refused, so the above says something.
    std::fs::write(&file, "{\"a\": 1}").expect("a file");
    let output = open_in_speedscope(&file);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("Unrecognized format"),
        "{}",
        stdout(&output)
    );
}

/// The Firefox Profiler without its page: a process that holds one profile and is asked.
struct Firefox {
    script: PathBuf,
    home: String,
    daemon: Child,
}

impl Firefox {
    fn load(folder: &Folder, file: &str) -> Self {
        let package = "node/node_modules/@firefox-devtools/profiler-cli";
        let script = prepared("node", package).join("dist/profiler-cli.js");
        let home = folder.join("home");
        std::fs::create_dir_all(&home).expect("a folder");
        let daemon = Command::new("node")
            .arg(&script)
            .args(["--daemon", file, "--session", "test"])
            .env("HOME", &home)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("node");
        // Whoever asks before it listens takes its session for a dead one, and clears it up.
        let socket = Path::new(&home).join(".profiler-cli/test.sock");
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < PATIENCE, "it does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self {
            script,
            home,
            daemon,
        }
    }

    /// Asks until it has loaded the profile.
    fn ask(&self, args: &[&str]) -> Value {
        let began = Instant::now();
        loop {
            let output = Command::new("node")
                .arg(&self.script)
                .args(args)
                .args(["--session", "test", "--json"])
                .env("HOME", &self.home)
                .output()
                .expect("node");
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).expect("JSON");
            }
            assert!(began.elapsed() < PATIENCE, "{}", stderr(&output));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn the_firefox_profiler_loads_it() {
    let folder = Folder::new("viewer-firefox");
    let file = folder.join("f.json");
    text(&profile(
        "export",
        "fp.data",
        &["--event", "cpu-clock", "--format", "firefox", "-o", &file],
    ));
    let firefox = Firefox::load(&folder, &file);
    let said = firefox.ask(&["profile", "info"]);
    assert_eq!(said["processes"][0]["name"], "burn", "{said}");
    let functions = firefox.ask(&["thread", "functions"]).to_string();
    for function in ["burn_sixty", "burn_thirty"] {
        assert!(functions.contains(function), "{functions}");
    }
}

#[test]
fn go_tool_pprof_reads_it() {
    let has_go = Command::new("go").arg("version").output().is_ok();
    assert!(has_go, "sexton-missing: go: run cargo xtask test setup");
    let folder = Folder::new("viewer-pprof");
    let file = folder.join("p.pb.gz");
    text(&profile(
        "export",
        "fp.data",
        &["--event", "cpu-clock", "--format", "pprof", "-o", &file],
    ));
    let output = Command::new("go")
        .args(["tool", "pprof", "-sample_index=samples", "-top", &file])
        .env("HOME", folder.join("home"))
        .env("PPROF_TMPDIR", folder.join("home"))
        .output()
        .expect("go");
    let top = text(&output);
    assert!(top.contains("Type: samples"), "{top}");
    // Samples of a function and its share are the same as ours.
    let ours = text(&profile(
        "top",
        "fp.data",
        &["--event", "cpu-clock", "--json"],
    ));
    let ours: Value = serde_json::from_str(&ours).expect("JSON");
    let n = ours["samples"].as_u64().expect("a count");
    assert!(top.contains(&format!("{n} total")), "{n}: {top}");
}
