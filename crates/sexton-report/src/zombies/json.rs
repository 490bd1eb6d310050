//! The census in stable JSON, `sexton.zombies/1`. Keys may be added, none renamed.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use sexton_model::census::{
    Census, Cgroup, Hierarchy, Look, OriginGroup, Pages, PinFile, State, UnitGroup, by_unit,
};
use sexton_model::origin::Runtime;
use sexton_model::text::escape;

use super::Options;
use crate::gaps::GapView;

/// Writes the census for programs.
pub fn json(out: &mut dyn Write, census: &Census, options: Options) -> io::Result<()> {
    let top = options.top.unwrap_or(usize::MAX);
    let pages = shows_pages(census).then(|| census.dying_pages());
    let units = by_unit(&census.origins);
    let view = CensusView {
        schema: "sexton.zombies/1",
        method: census.method.name(),
        hierarchy: match census.hierarchy {
            Hierarchy::V1 => "v1",
            Hierarchy::V2 => "v2",
        },
        live: census.counts.live,
        dying: census.counts.dying,
        leaked: census.counts.leaked,
        total: census.counts.total,
        kernel_total: census.counts.kernel_total,
        memory_bytes: memory_bytes(census, pages),
        cost: CostView::of(census, pages),
        sampled: census.sampled,
        origins: Each(|| census.origins.iter().take(top).map(OriginView::from)),
        units: Each(|| units.iter().take(top).map(UnitView::from)),
        files: Each(|| census.files.iter().take(top).map(FileView::from)),
        cgroups: options.all.then_some(Each(|| cgroups(census))),
        methods: Each(|| census.looks.iter().map(LookView::from)),
        gaps: Each(|| census.gaps.iter().map(GapView::from)),
    };
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}

/// Whether the method shows pages at all: unknown is not zero.
fn shows_pages(census: &Census) -> bool {
    !census.tree.is_empty()
}

/// All memory that goes when the dying ones go: their structures and their pages.
fn memory_bytes(census: &Census, pages: Option<Pages>) -> Option<u64> {
    let resident = pages.map(|pages| (pages.holding() - pages.swap) * census.page_bytes)?;
    Some(census.structure_bytes()? + resident)
}

/// A sequence that is written as it is made, so that a long one takes no memory.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[derive(Serialize)]
struct CensusView<O, U, F, C, M, G> {
    schema: &'static str,
    method: &'static str,
    hierarchy: &'static str,
    live: Option<u64>,
    dying: Option<u64>,
    leaked: Option<u64>,
    total: Option<u64>,
    kernel_total: Option<u64>,
    memory_bytes: Option<u64>,
    cost: CostView,
    sampled: bool,
    origins: O,
    units: U,
    files: F,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: Option<C>,
    methods: M,
    gaps: G,
}

#[derive(Serialize)]
struct CostView {
    structure_bytes: Option<u64>,
    structure_bytes_each: Option<u64>,
    structure_method: &'static str,
    pages: Option<PagesView>,
    page_bytes: u64,
}

impl CostView {
    fn of(census: &Census, pages: Option<Pages>) -> Self {
        Self {
            structure_bytes: census.structure_bytes(),
            structure_bytes_each: census.cost.map(|cost| cost.bytes_per_cgroup),
            structure_method: "at least: sizes of the kernel's structures from its type information, \
                               times dying cgroups; what the allocators add is not in it",
            pages: pages.map(PagesView::from),
            page_bytes: census.page_bytes,
        }
    }
}

#[derive(Serialize)]
struct PagesView {
    file: u64,
    shmem: u64,
    anon: u64,
    unevictable: u64,
    swap: u64,
    kernel: u64,
}

impl From<Pages> for PagesView {
    fn from(pages: Pages) -> Self {
        let Pages {
            file,
            shmem,
            anon,
            unevictable,
            swap,
            kernel,
        } = pages;
        Self {
            file,
            shmem,
            anon,
            unevictable,
            swap,
            kernel,
        }
    }
}

/// Pages by what keeps them.
#[derive(Serialize)]
struct PinsView {
    file: u64,
    shmem: u64,
    anon: u64,
    other: u64,
}

impl From<Pages> for PinsView {
    fn from(pages: Pages) -> Self {
        Self {
            file: pages.file,
            shmem: pages.shmem,
            anon: pages.anon,
            other: pages.unevictable + pages.swap,
        }
    }
}

#[derive(Serialize)]
struct OriginView {
    origin: String,
    kind: String,
    unit: Option<String>,
    slice: Option<String>,
    pod: Option<String>,
    runtime: Option<&'static str>,
    image: Option<String>,
    images: Vec<ImageView>,
    live: u64,
    leaked: u64,
    dying: u64,
    pages: Option<u64>,
    pins: Option<PinsView>,
    kernel_pages: Option<u64>,
    held_by_children: u64,
    without_pin: u64,
    oldest_seconds: Option<u64>,
}

/// The runtime's name for programs; none when the path does not tell.
fn runtime_key(runtime: Runtime) -> Option<&'static str> {
    match runtime {
        Runtime::Docker => Some("docker"),
        Runtime::Containerd => Some("containerd"),
        Runtime::CriO => Some("cri-o"),
        Runtime::Podman => Some("podman"),
        Runtime::Lxc => Some("lxc"),
        Runtime::Unknown => None,
    }
}

#[derive(Serialize)]
struct ImageView {
    image: String,
    cgroups: u64,
}

impl From<&OriginGroup> for OriginView {
    fn from(group: &OriginGroup) -> Self {
        let origin = group.origin();
        // One pod for the whole group, or none: a group of many pods has no one uid.
        let alone = group.live + group.dying == 1;
        Self {
            origin: escape(&group.pattern),
            kind: origin.kind().to_string(),
            unit: group.unit.as_ref().map(|unit| escape(unit.as_bytes())),
            slice: origin.slice().map(|slice| escape(slice.as_bytes())),
            pod: origin.pod().filter(|_| alone).map(|pod| pod.uid),
            runtime: origin
                .container()
                .and_then(|container| runtime_key(container.runtime)),
            image: group
                .images
                .first()
                .map(|(image, _)| escape(image.as_bytes())),
            images: group
                .images
                .iter()
                .map(|(image, cgroups)| ImageView {
                    image: escape(image.as_bytes()),
                    cgroups: *cgroups,
                })
                .collect(),
            live: group.live,
            leaked: group.leaked,
            dying: group.dying,
            pages: group.pages.map(|pages| pages.holding()),
            pins: group.pages.map(PinsView::from),
            kernel_pages: group.pages.map(|pages| pages.kernel),
            held_by_children: group.held_by_children,
            without_pin: group.without_pin,
            oldest_seconds: group.oldest_seconds,
        }
    }
}

#[derive(Serialize)]
struct UnitView {
    unit: Option<String>,
    live: u64,
    leaked: u64,
    dying: u64,
    pages: Option<u64>,
    oldest_seconds: Option<u64>,
}

impl From<&UnitGroup> for UnitView {
    fn from(group: &UnitGroup) -> Self {
        Self {
            unit: group.unit.as_ref().map(|unit| escape(unit.as_bytes())),
            live: group.live,
            leaked: group.leaked,
            dying: group.dying,
            pages: group.pages.map(|pages| pages.holding()),
            oldest_seconds: group.oldest_seconds,
        }
    }
}

#[derive(Serialize)]
struct FileView {
    path: String,
    mounted: bool,
    device: String,
    inode: u64,
    kind: &'static str,
    deleted: bool,
    mapped: bool,
    dirty: bool,
    zombies: u64,
    pages: u64,
}

impl From<&PinFile> for FileView {
    fn from(file: &PinFile) -> Self {
        Self {
            path: escape(&file.path),
            mounted: file.mounted,
            device: file.device.to_string(),
            inode: file.inode,
            kind: file.kind.name(),
            deleted: file.deleted,
            mapped: file.mapped,
            dirty: file.dirty,
            zombies: file.zombies,
            pages: file.pages,
        }
    }
}

#[derive(Serialize)]
struct CgroupView {
    path: String,
    state: &'static str,
    directory: bool,
    pages: u64,
    pinned_by: Option<String>,
    age_seconds: Option<u64>,
}

/// Every cgroup with what pins it most. Pins are in the order of the tree, so one
/// pass over both will do.
fn cgroups(census: &Census) -> impl Iterator<Item = CgroupView> {
    let mut pins = census.pins.iter().peekable();
    census.tree.iter().map(move |(ix, cgroup)| {
        let mut first = None;
        while let Some(pin) = pins.next_if(|pin| pin.cgroup <= ix) {
            first = first.or(Some(pin).filter(|pin| pin.cgroup == ix));
        }
        let file = first.map(|pin| escape(&census.files[pin.file as usize].path));
        CgroupView {
            path: escape(&census.tree.path(ix)),
            state: cgroup.state.name(),
            directory: cgroup.has_directory,
            pages: cgroup.pages.holding(),
            pinned_by: file.or_else(|| other_pin(cgroup)),
            age_seconds: cgroup.age_seconds,
        }
    })
}

/// What pins a dying cgroup that holds no page that could be looked at.
fn other_pin(cgroup: &Cgroup) -> Option<String> {
    if cgroup.state != State::Dying {
        return None;
    }
    match cgroup.pages {
        Pages { swap: 1.., .. } => Some("(swap)".into()),
        Pages {
            unevictable: 1.., ..
        } => Some("(unevictable memory)".into()),
        _ if cgroup.has_children => Some("(dying cgroups below it)".into()),
        _ => None,
    }
}

#[derive(Serialize)]
struct LookView<'a> {
    method: &'static str,
    shows: &'static str,
    dying: Option<u64>,
    remark: &'a str,
}

impl<'a> From<&'a Look> for LookView<'a> {
    fn from(look: &'a Look) -> Self {
        Self {
            method: look.method.name(),
            shows: look.method.shows(),
            dying: look.dying,
            remark: &look.remark,
        }
    }
}
