//! What pprof and OTLP have in common: a whole file in memory, tables that samples refer to by
//! number, and samples that may come in any order of time.

use std::io::Read;

use sexton_model::stack::{CodeKind, CoreState, Frame, FrameId, StackId, StackSample};
use sexton_model::text::escape;

use super::bytes::Window;
use super::{Importer, Report};

/// The most bytes of a file, unpacked. Those of other agents are of a minute or of an hour, and have
/// some megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// The most entries of a table, and samples.
pub(super) const MAX_ENTRIES: usize = 4_000_000;

/// Frames of a stack: more are a loop.
pub(super) const MAX_DEPTH: usize = 4_096;

/// The most frames of all stacks together: a small file may name the same ones again and again.
pub(super) const MAX_FRAMES: u64 = 100_000_000;

/// The longest name.
const MAX_NAME: usize = 64 << 10;

/// The event of profiles of processor time, whose weight is a time.
const CLOCK: &str = "cpu-clock";

/// Reads all there is.
pub(super) fn whole<R: Read>(window: Window<R>, report: &mut Report) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = window.into_reader().take(MAX_BYTES + 1);
    let end = |n: usize| super::Position::Byte(n as u64);
    if let Err(error) = reader.read_to_end(&mut bytes) {
        report.stop(end(bytes.len()), format!("cannot read it: {error}"));
    }
    if bytes.len() as u64 > MAX_BYTES {
        report.stop(end(bytes.len()), "it unpacks to more than 256 MiB");
        bytes.clear();
    }
    bytes
}

/// Text from outside, escaped.
pub(super) fn text(bytes: &[u8]) -> String {
    escape(&bytes[..bytes.len().min(MAX_NAME)])
}

/// What a value counts, as events of perf are called.
pub(super) fn event(kind: &[u8], unit: &[u8]) -> String {
    match (kind, unit) {
        (b"cpu" | b"wall", b"nanoseconds") | (b"samples", b"nanoseconds") => CLOCK.to_owned(),
        (b"", _) => "samples".to_owned(),
        (kind, _) => text(kind),
    }
}

/// Whose code it is, by the file that it is in.
pub(super) fn code_kind(file: &[u8]) -> CodeKind {
    let is_kernel = [&b"[kernel"[..], b"[guest.kernel", b"[vmlinux", b"vmlinux"];
    match file {
        b"" => CodeKind::Unknown,
        file if is_kernel.iter().any(|name| file.starts_with(name)) => CodeKind::Kernel,
        file if file.ends_with(b".ko") => CodeKind::Kernel,
        _ => CodeKind::User,
    }
}

/// Samples that were read, until they can be handed on in the order of their times.
#[derive(Default)]
pub(super) struct Samples {
    all: Vec<StackSample>,
    n_frames: u64,
}

impl Samples {
    /// Takes one; `false` when there are too many.
    #[must_use]
    pub(super) fn push(&mut self, sample: StackSample) -> bool {
        if self.all.len() >= MAX_ENTRIES {
            return false;
        }
        self.all.push(sample);
        true
    }

    /// Counts frames of a stack; `false` when there are too many of all.
    #[must_use]
    pub(super) fn has_room_for(&mut self, n_frames: usize) -> bool {
        self.n_frames += n_frames as u64;
        self.n_frames <= MAX_FRAMES
    }

    /// Hands them on.
    pub(super) fn hand_on(mut self, importer: &mut Importer<'_>, report: &mut Report) {
        self.all.sort_by_key(|sample| sample.at);
        report.n_samples = self.all.len() as u64;
        for sample in &self.all {
            importer.sink.sample(sample, importer.tables.tables());
        }
    }
}

/// What the core did, by where it was.
pub(super) fn state(importer: &Importer<'_>, stack: StackId) -> CoreState {
    if importer.tables.has_idle_frame(stack) {
        return CoreState::Idle;
    }
    let tables = importer.tables.tables();
    let frame = |id: FrameId| -> Option<Frame> { tables.frame(id).copied() };
    match tables.frames_of(stack).next().and_then(frame) {
        Some(frame) if frame.kind == CodeKind::Kernel => CoreState::Kernel,
        Some(frame) if frame.kind == CodeKind::User => CoreState::User,
        _ => CoreState::Unknown,
    }
}
