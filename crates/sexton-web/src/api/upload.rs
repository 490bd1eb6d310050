//! Opens a file that was dropped on the page.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use sexton_model::text::escape;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::params::Params;
use super::sources::source_view;
use crate::app::App;
use crate::http::{Body, Problem, Request, Response, blocking};
use crate::source::{Source, chain};

/// How packed bundles begin: a frame of zstd (RFC 8878, 3.1.1).
const PACKED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The longest name of a file.
pub(super) const MAX_NAME_CHARS: usize = 256;

/// What is written to the disk at once.
const PIECE_BYTES: usize = 256 << 10;

/// Takes a file and opens it.
pub(crate) async fn open(
    app: &Arc<App>,
    request: &Request,
    body: &mut Body,
) -> Result<Response, Problem> {
    let params = Params::new(&request.query);
    let name = params
        .text("name", MAX_NAME_CHARS)?
        .unwrap_or("dropped file");
    let name = escape(name.as_bytes());
    let kind = request.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/octet-stream") {
        return Err(Problem::new(415, "send it as application/octet-stream"));
    }
    let most = app.options.max_upload_bytes;
    match request.length {
        None => return Err(Problem::new(411, "say how long it is: Content-Length")),
        Some(0) => return Err(Problem::new(400, "the file is empty")),
        Some(length) if length > most => {
            let detail = format!("at most {most} bytes are taken: see --max-upload");
            return Err(Problem::new(413, detail));
        }
        Some(_) => {}
    }
    let make = || tempfile::Builder::new().prefix("sexton-dropped-").tempdir();
    let folder = blocking(move || make().map_err(no_room)).await?;
    let file = folder.path().join("file");
    save(body, &file).await?;
    let works_in = Arc::clone(app);
    let app = Arc::clone(app);
    let work = move || {
        let source = read(&app, &name, &file, folder)?;
        let view = source_view(&source);
        app.add(source);
        let mut response = Response::json(&view);
        response.status = 201;
        Ok(response)
    };
    works_in.workshop.work(work).await
}

/// Writes the body to a file, as it comes.
async fn save(body: &mut Body, path: &Path) -> Result<(), Problem> {
    let file = tokio::fs::File::create(path).await.map_err(no_room)?;
    let mut file = tokio::io::BufWriter::with_capacity(PIECE_BYTES, file);
    while let Some(bytes) = body.next().await.map_err(not_whole)? {
        file.write_all(&bytes).await.map_err(no_room)?;
    }
    file.shutdown().await.map_err(no_room)
}

fn not_whole(error: io::Error) -> Problem {
    let status = match error.kind() {
        io::ErrorKind::TimedOut => 408,
        _ => 400,
    };
    Problem::new(status, format!("the file did not come whole: {error}"))
}

fn no_room(error: io::Error) -> Problem {
    let detail = format!(
        "cannot keep the file in {}: {error}",
        std::env::temp_dir().display()
    );
    Problem::new(507, detail)
}

fn read(app: &App, name: &str, file: &Path, folder: TempDir) -> Result<Arc<Source>, Problem> {
    let unreadable = |why: String| Problem::new(422, format!("{name}: {why}"));
    let id = app.next_id();
    if is_packed(file) {
        let path = file.to_owned();
        let opened = Source::open(&id, name, &path, Some(folder), Vec::new(), true);
        return opened.map_err(|error| unreadable(without_path(&chain(&error), file)));
    }
    let bundle = folder.path().join("profile.bundle");
    let imported = (app.options.import)(file, &bundle);
    let imported = imported.map_err(|why| unreadable(without_path(&why, file)))?;
    // What it says is in the bundle now.
    let _ = std::fs::remove_file(file);
    let (notes, has_times) = (imported.notes, imported.has_times);
    let opened = Source::open(&id, name, &bundle, Some(folder), notes, has_times);
    opened.map_err(|error| unreadable(chain(&error)))
}

/// Where the file lies is nobody's business.
fn without_path(text: &str, file: &Path) -> String {
    text.replace(&file.display().to_string(), "the file")
}

fn is_packed(file: &Path) -> bool {
    let mut start = [0; PACKED.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == PACKED
}
