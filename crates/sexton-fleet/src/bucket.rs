//! The bucket: a folder, or a bucket of S3, GCS or Azure.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, parse_url_opts,
};
use sexton_lake::{Put, is_day};
use sexton_model::text::escape;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use url::Url;

/// Files that are fetched at once.
const AT_ONCE: usize = 16;
/// A file that is larger is none of ours.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// Bytes of what a server says that are repeated.
const MAX_REASON: usize = 300;
/// How long a listing or a put may take, with all that the library tries again: it would go on
/// for minutes with a bucket that is down.
const MAX_TIME: Duration = Duration::from_secs(45);

/// A bucket, and the folder in it.
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    folder: Path,
    url: String,
    runtime: Runtime,
}

/// A file in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the bucket's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Folders that are called `day=…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Days {
    /// Their dates, oldest first.
    pub dates: Vec<String>,
    /// What those are called that have no date: `old` of `day=old`.
    pub others: Vec<String>,
}

impl Bucket {
    /// Opens a bucket by its URL, or a folder by its path. What a cloud's client asks for is
    /// taken from the environment: `AWS_ENDPOINT`, `AWS_ACCESS_KEY_ID`, `GOOGLE_…`, `AZURE_…`.
    pub fn open(url: &str) -> Result<Self> {
        let parsed = match url.contains("://") {
            true => Url::parse(url).with_context(|| format!("{url} is not a URL"))?,
            false => folder_url(url)?,
        };
        let known = [
            "file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https",
        ];
        if !known.contains(&parsed.scheme()) {
            bail!("cannot use {url}: use file://, s3://, gs:// or az://");
        }
        let from_environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?.to_ascii_lowercase();
            let is_of_a_cloud = ["aws_", "google_", "azure_"]
                .iter()
                .any(|cloud| name.starts_with(cloud));
            Some((name, value.into_string().ok().filter(|_| is_of_a_cloud)?))
        });
        let (store, folder) = parse_url_opts(&parsed, from_environment)
            .with_context(|| format!("cannot use {url}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start the network thread")?;
        Ok(Self {
            store: store.into(),
            folder,
            url: url.to_owned(),
            runtime,
        })
    }

    /// Its address, as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its asynchronous work runs.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The days that it has.
    pub fn days(&self) -> Result<Days> {
        let days = self.days_below(&self.folder)?;
        if days.dates.is_empty() && days.others.is_empty() {
            bail!(
                "no reports in {}: nothing below it is called day=…; check the address, or push a report",
                self.url
            );
        }
        Ok(days)
    }

    /// The days that a folder has; none if there is no such folder.
    pub fn days_in(&self, folder: &str) -> Result<Days> {
        self.days_below(&self.full(folder))
    }

    fn days_below(&self, folder: &Path) -> Result<Days> {
        let listed = self.listed(folder)?;
        let names = listed.common_prefixes.iter().filter_map(|folder| {
            let name = folder.filename()?;
            name.strip_prefix("day=").map(str::to_owned)
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        let (dates, others) = names.into_iter().partition(|name| is_day(name));
        Ok(Days { dates, others })
    }

    /// The Parquet files of a day, in order.
    pub fn files_of(&self, day: &str) -> Result<Vec<Entry>> {
        self.files_in(&format!("day={day}"))
    }

    /// The Parquet files of a folder, in order.
    pub fn files_in(&self, folder: &str) -> Result<Vec<Entry>> {
        let listed = self.listed(&self.full(folder))?;
        let files = listed.objects.iter().filter_map(|object| {
            let name = object.location.filename()?;
            name.ends_with(".parquet").then(|| Entry {
                path: format!("{folder}/{name}"),
                bytes: object.size,
            })
        });
        let mut files: Vec<Entry> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn listed(&self, folder: &Path) -> Result<object_store::ListResult> {
        let listed = self.within(self.store.list_with_delimiter(Some(folder)));
        listed.map_err(|failed| {
            anyhow!(
                "cannot list {}: {}; check that the bucket exists and that you may read it",
                self.url,
                failed.reason()
            )
        })
    }

    /// Reads files, many at once. One that cannot be read has its reason in its place.
    pub fn get_all(&self, files: &[Entry]) -> Vec<Result<Bytes>> {
        let mut contents: Vec<Option<Result<Bytes>>> = files.iter().map(|_| None).collect();
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for (at, file) in files.iter().enumerate() {
                if file.bytes > MAX_FILE_BYTES {
                    contents[at] = Some(Err(anyhow!("it is larger than any file of reports")));
                    continue;
                }
                while tasks.len() >= AT_ONCE {
                    keep(&mut contents, tasks.join_next().await);
                }
                let (store, path) = (self.store.clone(), self.full(&file.path));
                tasks.spawn(async move { (at, fetched(&*store, &path).await) });
            }
            while let Some(done) = tasks.join_next().await {
                keep(&mut contents, Some(done));
            }
        });
        let missing = || Err(anyhow!("it was not fetched"));
        contents
            .into_iter()
            .map(|content| content.unwrap_or_else(missing))
            .collect()
    }

    /// Writes a file, unless there is one of that name.
    pub fn put_new(&self, path: &str, bytes: Vec<u8>) -> Result<Put> {
        self.put(path, bytes, PutMode::Create)
    }

    /// Writes a file, over one of that name if there is one.
    pub fn put_over(&self, path: &str, bytes: Vec<u8>) -> Result<Put> {
        self.put(path, bytes, PutMode::Overwrite)
    }

    fn put(&self, path: &str, bytes: Vec<u8>, mode: PutMode) -> Result<Put> {
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        let payload = PutPayload::from(bytes);
        let full = self.full(path);
        let put = self.store.put_opts(&full, payload, options);
        match self.within(put) {
            Ok(_) => Ok(Put::New),
            Err(Failed::Said(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                Ok(Put::AlreadyThere)
            }
            Err(failed) => Err(anyhow!(
                "cannot write {path} to {}: {}; check that the bucket exists and that you may write to it",
                self.url,
                failed.reason()
            )),
        }
    }

    fn within<T>(&self, work: impl Future<Output = object_store::Result<T>>) -> Result<T, Failed> {
        self.runtime.block_on(async {
            match tokio::time::timeout(MAX_TIME, work).await {
                Ok(done) => done.map_err(Failed::Said),
                Err(_) => Err(Failed::TimedOut),
            }
        })
    }

    fn full(&self, path: &str) -> Path {
        path.split('/')
            .fold(self.folder.clone(), |folder, part| folder.join(part))
    }
}

type Done = std::result::Result<(usize, Result<Bytes>), tokio::task::JoinError>;

fn keep(contents: &mut [Option<Result<Bytes>>], done: Option<Done>) {
    if let Some(Ok((at, content))) = done {
        contents[at] = Some(content);
    }
}

async fn fetched(store: &dyn ObjectStore, path: &Path) -> Result<Bytes> {
    let got = store
        .get(path)
        .await
        .map_err(|error| anyhow!(reason(&error)))?;
    let bytes = got.bytes().await;
    bytes.map_err(|error| anyhow!(reason(&error)))
}

/// Why something was not done.
enum Failed {
    Said(Error),
    TimedOut,
}

impl Failed {
    fn reason(&self) -> String {
        match self {
            Self::Said(error) => reason(error),
            Self::TimedOut => format!("no answer within {} s", MAX_TIME.as_secs()),
        }
    }
}

/// Why the bucket did not do it, in a line. The library says the same thing on each level, with
/// the whole answer of the server: only the innermost is taken, and of an answer in XML its code
/// and message.
fn reason(error: &Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(part, _)| part)
    };
    let said = match (part("Code"), part("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => text.clone(),
    };
    let said = escape(said.trim().as_bytes());
    said[..said.floor_char_boundary(MAX_REASON)].to_owned()
}

fn folder_url(path: &str) -> Result<Url> {
    let absolute = std::path::absolute(FilePath::new(path))
        .with_context(|| format!("{path} is not a path"))?;
    Url::from_directory_path(&absolute).map_err(|()| anyhow!("{path} is not a path"))
}
