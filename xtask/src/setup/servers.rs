//! What tests of the fleet ask beside DuckDB: moto, which answers as S3 does, and the engine of
//! ClickHouse. Each has a Python of its own, because they bring many packages.

use super::python;
use crate::workspace;

struct Server {
    folder: &'static str,
    package: &'static str,
    module: &'static str,
    why: &'static str,
}

const SERVERS: [Server; 2] = [
    Server {
        folder: "python-moto",
        package: "moto[server]",
        module: "moto.server",
        why: "tests of the fleet write to its S3",
    },
    Server {
        folder: "python-chdb",
        package: "chdb",
        module: "chdb",
        why: "ClickHouse answers as sexton fleet sql does",
    },
];

/// Prepares them in the target directory when they are not there. What fails here is not an
/// error: the test that needs it then does not run, and says so.
pub(crate) fn prepare() {
    for server in SERVERS {
        let folder = workspace::target_dir().join(server.folder);
        if python::has(&folder, server.module) {
            continue;
        }
        eprintln!(
            "set-up: installs {} into {}: {}",
            server.package,
            folder.display(),
            server.why
        );
        if let Err(error) = python::install(&folder, &[server.package]) {
            eprintln!("set-up: no {}: {error:#}", server.package);
        }
    }
}
