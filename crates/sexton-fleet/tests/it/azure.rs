//! A bucket of Azure, as Azurite answers for one.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::*;

/// The account of every Azurite, and its key: its documentation has them.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container, as its owner would before there are reports.
const MAKE_CONTAINER: &str = r#"
const http = require("node:http"), crypto = require("node:crypto");
const [port, container, account, key] = process.argv.slice(1);
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02", "content-length": 0 };
const text = ["PUT", ...Array(11).fill(""), `x-ms-date:${headers["x-ms-date"]}`, `x-ms-version:${headers["x-ms-version"]}`,
  `/${account}/${account}/${container}`, "restype:container"].join("\n");
const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
headers.authorization = `SharedKey ${account}:${signature}`;
http.request({ port, method: "PUT", path: `/${account}/${container}?restype=container`, headers },
  (answer) => process.exit(answer.statusCode === 201 ? 0 : 1)).end();
"#;

/// The server, gone at the end of a test.
struct Azure {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Azure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `cargo xtask test setup` prepares with npm.
#[track_caller]
fn azurite() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let program = target.join("node/node_modules/.bin/azurite-blob");
    assert!(
        program.exists(),
        "sexton-missing: node: no azurite was prepared; run cargo xtask test setup"
    );
    program
}

impl Azure {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .unwrap()
            .port();
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("node")
            .arg(azurite())
            .args(["--blobHost", "127.0.0.1", "--silent", "--disableTelemetry"])
            .args(["--skipApiVersionCheck", "--blobPort"])
            .arg(port.to_string())
            .arg("--location")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            child,
            port,
            _folder: folder,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "Azurite never listened");
            thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn make_container(&self, name: &str) {
        let made = Command::new("node")
            .args(["-e", MAKE_CONTAINER, &self.port.to_string(), name])
            .args([ACCOUNT, KEY])
            .status();
        assert!(made.unwrap().success(), "no container");
    }

    fn fleet(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_sexton-fleet"))
            .args(args)
            .env_remove("SEXTON_LAKE")
            .env("SEXTON_NOW", NOW)
            .env("AZURE_STORAGE_USE_EMULATOR", "true")
            .env(
                "AZURITE_BLOB_STORAGE_URL",
                format!("http://127.0.0.1:{}", self.port),
            )
            .output()
            .unwrap()
    }
}

#[test]
fn a_container_of_azure_answers_as_a_folder_does() {
    let azure = Azure::start();
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), 300, 3, 21, "founding");
    let (_, expected) = compare(folder.path(), &["--bad", "nic_resets > 0"]);
    let (spool, url) = (folder.path().to_str().unwrap(), "az://reports/fleet");
    let push = ["push", "--spool", spool, "--lake", url, "--json"];
    let refused = azure.fleet(&push);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("ContainerNotFound"), "{said}");

    azure.make_container("reports");
    let sent = json(&azure.fleet(&push));
    assert!(sent["sent"].as_u64() > Some(0), "{sent}");
    assert_eq!(sent["already_there"], 0);
    // The same hours again: puts are conditional, and the first stay.
    simulate(folder.path(), 300, 3, 21, "founding");
    let again = json(&azure.fleet(&push));
    assert_eq!(again["already_there"], sent["sent"], "{again}");

    let compared = [
        "compare",
        "--bad",
        "nic_resets > 0",
        "--json",
        "--lake",
        url,
    ];
    assert_eq!(json(&azure.fleet(&compared)), expected);
}
