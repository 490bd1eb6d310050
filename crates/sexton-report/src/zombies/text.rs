//! The census for people: the answer first, in 80 columns.

use std::io::{self, Write};

use sexton_model::census::{
    Census, FileGroup, FileKind, OriginGroup, Pages, UnitGroup, alike_files, by_unit,
};
use sexton_model::text::escape;

use super::{By, Options};
use crate::gaps;
use crate::text::{WIDTH, bytes, count, duration, known, number, paragraph, shorten};

/// Lines of a list when nobody says how many.
const TOP: usize = 10;

/// Columns before the name in a list of cgroups.
const NAME_AT: usize = 34;

/// Writes the census for people.
pub fn text(out: &mut dyn Write, census: &Census, options: Options) -> io::Result<()> {
    write_answer(out, census)?;
    let top = options.top.unwrap_or(TOP);
    match options.by {
        By::Origin => write_origins(out, &census.origins, top)?,
        By::Unit => write_units(out, &by_unit(&census.origins), top)?,
        By::File => {}
    }
    let files = if options.by == By::File {
        top
    } else {
        top.min(5)
    };
    write_files(out, census, files)?;
    if options.all {
        write_all(out, census)?;
    }
    write_method(out, census)?;
    gaps::write(out, WIDTH, &census.gaps)?;
    write_next(out, census, options)
}

fn write_answer(out: &mut dyn Write, census: &Census) -> io::Result<()> {
    let counts = &census.counts;
    let answer = match counts.dying {
        Some(dying) => format!(
            "{}, {} live.",
            count(dying, "dying memory cgroup"),
            known(counts.live)
        ),
        None => "Dying memory cgroups could not be counted.".into(),
    };
    let kernel = match counts.kernel_total {
        Some(total) if counts.total == Some(total) => {
            format!(" The kernel counts {} in all.", number(total))
        }
        Some(total) => format!(
            " The kernel counts {} in all, {} seen.",
            number(total),
            known(counts.total)
        ),
        None => String::new(),
    };
    paragraph(out, "", &(answer + &kernel))?;
    if counts.dying.is_some_and(|dying| dying > 0) && !census.tree.is_empty() {
        write_cost(out, census)?;
    }
    match counts.leaked {
        Some(leaked @ 1..) => write_leaked(out, leaked),
        _ => Ok(()),
    }
}

fn write_leaked(out: &mut dyn Write, leaked: u64) -> io::Result<()> {
    let who = if leaked == 1 {
        "1 live directory looks leaked".into()
    } else {
        format!("{} live directories look leaked", number(leaked))
    };
    let text = format!(
        "{who}: empty, over an hour old, ten or more alike. Not dying: the program \
         that created them never removed them. Remove the directories (rmdir) to free them."
    );
    paragraph(out, "", &text)
}

fn write_cost(out: &mut dyn Write, census: &Census) -> io::Result<()> {
    let pages = census.dying_pages();
    let held = format!(
        "The dying ones hold {} of pages ({}).",
        bytes((pages.holding() - pages.swap) * census.page_bytes),
        kinds(pages)
    );
    paragraph(out, "", &held)?;
    let Some((structures, cost)) = census.structure_bytes().zip(census.cost) else {
        return Ok(());
    };
    let text = format!(
        "Their structures hold at least {} of kernel memory: {} each by the sizes of the kernel's types with {} \
         and {}.",
        bytes(structures),
        bytes(cost.bytes_per_cgroup),
        count(cost.n_cpus.into(), "CPU"),
        count(cost.n_nodes.into(), "NUMA node")
    );
    paragraph(out, "", &text)
}

/// The kinds of pages there are, e.g. `file 20,001, tmpfs 3`.
fn kinds(pages: Pages) -> String {
    let all = [
        ("file", pages.file),
        ("tmpfs or shared", pages.shmem),
        ("anonymous", pages.anon),
        ("unevictable", pages.unevictable),
        ("swapped", pages.swap),
    ];
    let there: Vec<String> = all
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{kind} {}", number(*n)))
        .collect();
    if there.is_empty() {
        "none".into()
    } else {
        there.join(", ")
    }
}

fn write_header(out: &mut dyn Write, name: &str) -> io::Result<()> {
    writeln!(
        out,
        "\n{:>8} {:>7} {:>9} {:>7} {name}",
        "DYING", "LIVE", "PAGES", "OLDEST"
    )
}

fn write_line(
    out: &mut dyn Write,
    dying: u64,
    live: u64,
    pages: Option<Pages>,
    oldest: Option<u64>,
    name: &str,
) -> io::Result<()> {
    writeln!(
        out,
        "{:>8} {:>7} {:>9} {:>7} {}",
        number(dying),
        number(live),
        known(pages.map(|pages| pages.holding())),
        oldest.map_or_else(|| "-".into(), duration),
        shorten(name, WIDTH - NAME_AT - 1)
    )
}

fn write_origins(out: &mut dyn Write, origins: &[OriginGroup], top: usize) -> io::Result<()> {
    let shown: Vec<&OriginGroup> = origins
        .iter()
        .filter(|group| group.dying + group.leaked > 0)
        .collect();
    if shown.is_empty() {
        return Ok(());
    }
    write_header(out, "ORIGIN")?;
    for group in shown.iter().take(top) {
        write_line(
            out,
            group.dying,
            group.live,
            group.pages,
            group.oldest_seconds,
            &escape(&group.pattern),
        )?;
        paragraph(out, &" ".repeat(NAME_AT + 1), &describe(group))?;
    }
    write_rest(out, shown.len(), top)
}

/// Who made them, and what is odd about them.
fn describe(group: &OriginGroup) -> String {
    let origin = group.origin();
    let mut text = origin.kind().to_string();
    if let Some(unit) = &group.unit
        && !group.pattern.ends_with(unit.as_bytes())
    {
        text.push_str(&format!(" of {}", escape(unit.as_bytes())));
    }
    if let Some(container) = origin.container() {
        text.push_str(&format!(
            " ({}), {}",
            container.runtime,
            describe_image(&group.images)
        ));
    }
    let remarks = [
        (group.leaked, "live but look leaked"),
        (group.held_by_children, "held by dying ones below"),
        (
            group.without_pin,
            "without a page: on the way out, or held by a socket",
        ),
    ];
    for (n, remark) in remarks.iter().filter(|(n, _)| *n > 0) {
        text.push_str(&format!("; {} {remark}", number(*n)));
    }
    text
}

/// The image, as far as a runtime still knows the containers.
fn describe_image(images: &[(String, u64)]) -> String {
    let Some((image, n)) = images.first() else {
        return "image unknown: no runtime here knows them".into();
    };
    let more = match images.len() {
        1 => String::new(),
        n => format!(" and {} more images", n - 1),
    };
    format!(
        "image {}{more} ({} still known)",
        escape(image.as_bytes()),
        number(*n)
    )
}

fn write_units(out: &mut dyn Write, units: &[UnitGroup], top: usize) -> io::Result<()> {
    let shown: Vec<&UnitGroup> = units
        .iter()
        .filter(|unit| unit.dying + unit.leaked > 0)
        .collect();
    if shown.is_empty() {
        return Ok(());
    }
    write_header(out, "UNIT")?;
    for group in shown.iter().take(top) {
        let name = group
            .unit
            .as_ref()
            .map_or_else(|| "(in no unit)".into(), |unit| escape(unit.as_bytes()));
        write_line(
            out,
            group.dying,
            group.live,
            group.pages,
            group.oldest_seconds,
            &name,
        )?;
    }
    write_rest(out, shown.len(), top)
}

fn write_files(out: &mut dyn Write, census: &Census, top: usize) -> io::Result<()> {
    if census.files.is_empty() {
        return Ok(());
    }
    let at_least = if census.sampled { "PAGES>=" } else { "PAGES" };
    writeln!(out, "\n{:>8} {:>9} PINNED BY", "ZOMBIES", at_least)?;
    let groups = alike_files(&census.files);
    for group in groups.iter().take(top) {
        let name = shorten(&escape(&group.pattern), WIDTH - 19);
        writeln!(
            out,
            "{:>8} {:>9} {name}",
            number(group.zombies),
            number(group.pages)
        )?;
        if group.example.kind != FileKind::Anonymous {
            paragraph(out, &" ".repeat(19), &describe_file(group))?;
        }
    }
    write_rest(out, groups.len(), top)
}

fn describe_file(group: &FileGroup) -> String {
    let file = &group.example;
    let mut parts = Vec::new();
    if group.n_files > 1 {
        parts.push(count(group.n_files, "file"));
    }
    parts.push(format!("{} on {}", file.kind.name(), file.device));
    if group.n_files == 1 {
        parts.push(format!("inode {}", file.inode));
    }
    let metadata = file.kind == FileKind::BlockDevice;
    for (is, word) in [
        (metadata, "its own cache: filesystem metadata"),
        (!file.mounted, "no mount shows it here"),
        (file.deleted, "deleted"),
        (file.mapped, "mapped"),
        (file.dirty, "dirty"),
    ] {
        if is {
            parts.push(word.into());
        }
    }
    parts.join(", ")
}

fn write_rest(out: &mut dyn Write, n: usize, top: usize) -> io::Result<()> {
    match n.saturating_sub(top) {
        0 => Ok(()),
        rest => writeln!(
            out,
            "         ... and {} more; --top {n} shows all",
            number(rest as u64)
        ),
    }
}

fn write_all(out: &mut dyn Write, census: &Census) -> io::Result<()> {
    writeln!(out, "\n{:>6} {:>9} {:>7} CGROUP", "STATE", "PAGES", "AGE")?;
    for (ix, cgroup) in census.tree.iter() {
        writeln!(
            out,
            "{:>6} {:>9} {:>7} {}",
            cgroup.state.name(),
            number(cgroup.pages.holding()),
            cgroup.age_seconds.map_or_else(|| "-".into(), duration),
            escape(&census.tree.path(ix))
        )?;
    }
    Ok(())
}

fn write_method(out: &mut dyn Write, census: &Census) -> io::Result<()> {
    let method = census.method;
    writeln!(out, "\nSeen by {}: {}.", method.name(), method.shows())?;
    writeln!(out, "Other ways:")?;
    for look in census.looks.iter().filter(|look| look.method != method) {
        let saw = look
            .dying
            .map_or_else(String::new, |n| format!("{} dying; ", number(n)));
        let first = format!("  {:<13} ", look.method.name());
        paragraph(out, &first, &format!("{saw}{}", look.remark))?;
    }
    if census.sampled {
        writeln!(
            out,
            "A sample of the pages was looked at; --all-pages looks at all."
        )?;
    }
    Ok(())
}

fn write_next(out: &mut dyn Write, census: &Census, options: Options) -> io::Result<()> {
    if census.files.is_empty() || options.by == By::File {
        return Ok(());
    }
    writeln!(
        out,
        "\nNext: sexton zombies --by file    what pins them, file by file"
    )
}
