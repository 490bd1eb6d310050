//! OCI layouts and what `docker save` writes, as a folder or in a tar.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use sexton_host::{Kind, Root};

use super::Opened;
use super::oci_digest::{blob_path, check, damaged, digest_of};
use super::tar::{Layers, Sort};
use crate::bytes::{Bytes, Shared};
use crate::error::ImageError;
use crate::gaps::Gaps;

/// The largest of these files that registries take is 4 MiB.
const JSON_BYTES_MAX: u64 = 4 << 20;

/// Docker stops at 127.
const N_LAYERS_MAX: usize = 1_000;

/// An index that points to an index that points to a manifest.
const N_INDEXES_MAX: usize = 3;

const INDEX: &str = "/index.json";
const DOCKER_MANIFEST: &str = "/manifest.json";

#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    layers: Vec<Descriptor>,
    config: Option<Descriptor>,
}

/// What an image says of itself: one digest of each layer, not compressed.
#[derive(Debug, Deserialize)]
struct Config {
    rootfs: Rootfs,
}

#[derive(Debug, Deserialize)]
struct Rootfs {
    #[serde(default)]
    diff_ids: Vec<String>,
}

/// Where a layer is, and what it must be.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    digest: Option<String>,
    size: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
struct Descriptor {
    #[serde(rename = "mediaType", default)]
    media_type: String,
    digest: String,
    size: Option<u64>,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// One image of `docker save`.
#[derive(Debug, Deserialize)]
struct Saved {
    #[serde(rename = "RepoTags")]
    tags: Option<Vec<String>>,
    #[serde(rename = "Config")]
    config: Option<String>,
    #[serde(rename = "Layers")]
    layers: Vec<String>,
}

/// Whether a tree holds an image rather than a system.
pub(super) fn is_image(root: &dyn Root) -> bool {
    let is_file = |path: &str| {
        root.link_meta(Path::new(path))
            .is_ok_and(|meta| meta.kind == Kind::File)
    };
    (is_file("/oci-layout") && is_file(INDEX))
        || (is_file(DOCKER_MANIFEST) && saved(root).is_ok_and(|images| !images.is_empty()))
}

/// Whether a file in a tar may be a layer, whose content must be kept however long.
pub(super) fn is_blob_name(path: &[u8]) -> bool {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    path.starts_with(b"blobs/sha") || path.ends_with(b"/layer.tar")
}

/// Puts the layers of the image one over the other.
pub(super) fn open(root: Arc<dyn Root>, gaps: &mut Gaps) -> Result<Opened, ImageError> {
    let (layers, what) = if root.link_meta(Path::new(INDEX)).is_ok() {
        (oci_layers(root.as_ref(), gaps)?, "OCI image")
    } else {
        (docker_layers(root.as_ref(), gaps)?, "docker save")
    };
    if layers.len() > N_LAYERS_MAX {
        return Err(damaged(format!("{} layers", layers.len())));
    }
    let mut stack = Layers::default();
    for layer in &layers {
        let blob = Blob::open(&root, &layer.path).map_err(|error| {
            damaged(format!(
                "the layer {} cannot be read: {error}",
                layer.path.display()
            ))
        })?;
        if let Some(digest) = &layer.digest {
            check(&blob, digest, layer.size)?;
        }
        let blob: Shared = Arc::new(blob);
        stack.add(&blob, Sort::Layer, gaps).map_err(damaged)?;
    }
    let what = format!("{what}, {} layers", layers.len());
    Ok((Box::new(stack.finish().map_err(damaged)?), what))
}

fn json<T: serde::de::DeserializeOwned>(root: &dyn Root, path: &Path) -> Result<T, ImageError> {
    let name = path.display();
    let text = root
        .read(path, JSON_BYTES_MAX)
        .map_err(|error| damaged(format!("cannot read {name}: {error}")))?;
    serde_json::from_slice(&text)
        .map_err(|error| damaged(format!("cannot make sense of {name}: {error}")))
}

/// The same, of a blob that must be what its descriptor says.
fn json_blob<T: serde::de::DeserializeOwned>(
    root: &dyn Root,
    blob: &Descriptor,
) -> Result<T, ImageError> {
    let path = blob_path(&blob.digest)?;
    let text = root
        .read(&path, JSON_BYTES_MAX)
        .map_err(|error| damaged(format!("cannot read {}: {error}", path.display())))?;
    check(&text, &blob.digest, blob.size)?;
    serde_json::from_slice(&text)
        .map_err(|error| damaged(format!("cannot make sense of {}: {error}", path.display())))
}

/// An image names each of its layers twice; one that is named once was dropped or added.
fn check_count(n_layers: usize, config: &Config) -> Result<(), ImageError> {
    let n_named = config.rootfs.diff_ids.len();
    match n_layers == n_named {
        true => Ok(()),
        false => Err(damaged(format!(
            "it has {n_layers} layers, and its configuration names {n_named}"
        ))),
    }
}

fn saved(root: &dyn Root) -> Result<Vec<Saved>, ImageError> {
    json(root, Path::new(DOCKER_MANIFEST))
}

fn docker_layers(root: &dyn Root, gaps: &mut Gaps) -> Result<Vec<Layer>, ImageError> {
    let images = saved(root)?;
    let n_images = images.len();
    let first = images
        .into_iter()
        .next()
        .ok_or_else(|| damaged("no image"))?;
    if n_images > 1 {
        let tag = first.tags.and_then(|tags| tags.into_iter().next());
        let tag = tag.unwrap_or_else(|| "without a tag".into());
        gaps.add(format!(
            "it holds {n_images} images; only the first is read: {tag}"
        ));
    }
    let config = first
        .config
        .as_deref()
        .map(|path| Path::new("/").join(path));
    let config: Option<Config> = match config {
        Some(path) => Some(json(root, &path)?),
        None => None,
    };
    if let Some(config) = &config {
        check_count(first.layers.len(), config)?;
    }
    let diff_id = |n: usize| config.as_ref()?.rootfs.diff_ids.get(n).cloned();
    let layers = first.layers.iter().enumerate();
    Ok(layers
        .map(|(n, path)| Layer {
            path: Path::new("/").join(path),
            // A layer is named by its own digest, or is not compressed and has that of the
            // configuration.
            digest: digest_of(path).or_else(|| diff_id(n)),
            size: None,
        })
        .collect())
}

fn oci_layers(root: &dyn Root, gaps: &mut Gaps) -> Result<Vec<Layer>, ImageError> {
    let mut index: Index = json(root, Path::new(INDEX))?;
    for _ in 0..N_INDEXES_MAX {
        let chosen = choose(index.manifests, gaps)?;
        if chosen.media_type.contains("index") || chosen.media_type.contains("manifest.list") {
            index = json_blob(root, &chosen)?;
            continue;
        }
        let manifest: Manifest = json_blob(root, &chosen)?;
        if let Some(config) = &manifest.config {
            check_count(manifest.layers.len(), &json_blob(root, config)?)?;
        }
        let layers = manifest.layers.into_iter();
        return layers
            .map(|layer| {
                Ok(Layer {
                    path: blob_path(&layer.digest)?,
                    digest: Some(layer.digest),
                    size: layer.size,
                })
            })
            .collect();
    }
    Err(damaged("indexes within indexes within indexes"))
}

/// The image for this machine's architecture, else the first that is one.
fn choose(manifests: Vec<Descriptor>, gaps: &mut Gaps) -> Result<Descriptor, ImageError> {
    let is_known = |descriptor: &Descriptor| match &descriptor.platform {
        Some(platform) => platform.os != "unknown",
        None => true,
    };
    let images: Vec<Descriptor> = manifests.into_iter().filter(is_known).collect();
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let is_ours = |image: &&Descriptor| {
        image
            .platform
            .as_ref()
            .is_some_and(|platform| platform.architecture == here)
    };
    let chosen = images.iter().find(is_ours).or(images.first());
    let chosen = chosen
        .cloned()
        .ok_or_else(|| damaged("the index names no image"))?;
    if images.len() > 1 {
        gaps.add(format!(
            "it holds {} images; only one is read: {}",
            images.len(),
            sexton_model::text::escape(chosen.digest.as_bytes())
        ));
    }
    Ok(chosen)
}

/// A file of a tree, as bytes.
struct Blob {
    root: Arc<dyn Root>,
    path: PathBuf,
    len: u64,
}

impl Blob {
    fn open(root: &Arc<dyn Root>, path: &Path) -> io::Result<Self> {
        let meta = root.meta(path)?;
        if meta.kind != Kind::File {
            return Err(crate::tree::invalid("not a regular file"));
        }
        Ok(Self {
            root: Arc::clone(root),
            path: path.to_owned(),
            len: meta.size_bytes,
        })
    }
}

impl Bytes for Blob {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let part = self.root.read_at(&self.path, offset, buffer.len())?;
        buffer[..part.len()].copy_from_slice(&part);
        Ok(part.len())
    }
}

/// For the fuzzer: every JSON file of an image, from any bytes.
pub(super) fn parse_any(text: &[u8]) {
    if let Ok(index) = serde_json::from_slice::<Index>(text) {
        let mut gaps = Gaps::default();
        let _ = choose(index.manifests, &mut gaps).and_then(|chosen| blob_path(&chosen.digest));
    }
    if let Ok(manifest) = serde_json::from_slice::<Manifest>(text) {
        for layer in &manifest.layers {
            let _ = blob_path(&layer.digest);
        }
    }
    let _ = serde_json::from_slice::<Vec<Saved>>(text);
}
