//! The container image: one layer with the binary, as an OCI layout, and as an archive that
//! `docker load`, `podman load` and `ctr images import` read. No container engine is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Release, sha256, tar, write};
use crate::command;

/// Folders that the agent writes to.
const FOLDERS: [&str; 3] = ["var/lib/sexton", "run/sexton", "tmp"];

pub(super) fn make(release: &Release) -> Result<()> {
    let layout = release.out.join("oci");
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).with_context(|| format!("cannot create {}", blobs.display()))?;
    let (layer, plain_digest) = layer(release, &blobs)?;
    let config = put(&blobs, &config(release, &plain_digest)?)?;
    let tag = format!("sexton:{}", release.version);
    let manifest = put(&blobs, &manifest(&config, &layer))?;
    let index = index(&manifest, &release.version, &tag);
    write_json(&layout.join("index.json"), &index)?;
    write_json(
        &layout.join("oci-layout"),
        &json!({ "imageLayoutVersion": "1.0.0" }),
    )?;
    // What older engines read, of the same blobs.
    let docker = json!([{
        "Config": config.path(), "RepoTags": [tag], "Layers": [layer.path()],
    }]);
    write_json(&layout.join("manifest.json"), &docker)?;
    let name = format!(
        "sexton-{}-{}.oci.tar",
        release.version,
        std::env::consts::ARCH
    );
    tar(release, &layout, &release.out.join(name))
}

/// A blob of the layout.
struct Blob {
    digest: String,
    bytes: u64,
}

impl Blob {
    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }

    fn descriptor(&self, kind: &str) -> Value {
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{}", self.digest),
            "size": self.bytes,
        })
    }
}

/// The packed layer, and the digest of what is in it.
fn layer(release: &Release, blobs: &Path) -> Result<(Blob, String)> {
    let root = release.scratch.join("image");
    for folder in FOLDERS {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::create_dir_all(root.join("usr/bin"))?;
    fs::copy(&release.binary, root.join("usr/bin/sexton")).context("cannot copy the binary")?;
    let plain = release.scratch.join("layer.tar");
    tar(release, &root, &plain)?;
    let plain_digest = sha256(&plain)?;
    command::output(Command::new("gzip").args(["--no-name", "-6"]).arg(&plain))?;
    let packed: PathBuf = release.scratch.join("layer.tar.gz");
    let blob = Blob {
        digest: sha256(&packed)?,
        bytes: fs::metadata(&packed)?.len(),
    };
    fs::rename(&packed, blobs.join(&blob.digest)).context("cannot name the layer")?;
    Ok((blob, plain_digest))
}

fn config(release: &Release, plain_digest: &str) -> Result<Value> {
    let mut date = Command::new("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"]);
    let created = command::output(date.arg(format!("--date=@{}", release.epoch)))?;
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    Ok(json!({
        "created": created.trim(),
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/sexton"],
            "Cmd": ["agent"],
            "Env": ["PATH=/usr/bin"],
            "Volumes": { "/var/lib/sexton": {} },
            "Labels": { "org.opencontainers.image.version": release.version,
                        "org.opencontainers.image.licenses": "Apache-2.0" },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{plain_digest}")] },
        "history": [{ "created": created.trim(), "created_by": "cargo xtask dist" }],
    }))
}

fn manifest(config: &Blob, layer: &Blob) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("config.v1+json"),
        "layers": [layer.descriptor("layer.v1.tar+gzip")],
    })
}

fn index(manifest: &Blob, version: &str, tag: &str) -> Value {
    let mut descriptor = manifest.descriptor("manifest.v1+json");
    descriptor["annotations"] = json!({
        "org.opencontainers.image.ref.name": version,
        // The name that containerd gives the image.
        "io.containerd.image.name": format!("docker.io/library/{tag}"),
    });
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor],
    })
}

fn put(blobs: &Path, value: &Value) -> Result<Blob> {
    let partial = blobs.join("partial");
    write_json(&partial, value)?;
    let blob = Blob {
        digest: sha256(&partial)?,
        bytes: fs::metadata(&partial)?.len(),
    };
    fs::rename(&partial, blobs.join(&blob.digest)).context("cannot name a blob")?;
    Ok(blob)
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    write(path, &serde_json::to_string(value)?, 0o644)
}
