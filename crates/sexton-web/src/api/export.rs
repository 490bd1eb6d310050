//! The page and its data as one file that needs no server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Time;
use super::diagnosis::{Diagnosed, Range};
use super::params::Window;
use super::{Lasting as _, diagnosis, flame, heatmap, lanes, samples, sources, tiles, zombies};
use crate::app::App;
use crate::assets;
use crate::clock::Clock;
use crate::http::{Payload, Problem, Response};
use crate::source::Source;

/// Columns of the time line in the file.
const WIDTH: u64 = 2000;

/// Cores whose heat maps are in the file, and windows whose flame graphs are.
const MAX_CORES: usize = 16;
const MAX_FLAMES: usize = 12;

/// A window to be looked at is widened to this, so that there are samples in it.
const SHORTEST_NS: u64 = 1_000_000_000;

/// What the file holds, `sexton.export/1`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Exported")]
pub(super) struct ExportedView<'a> {
    #[schemars(extend("const" = "sexton.export/1"))]
    schema: &'static str,
    version: &'static str,
    source: sources::SourceView,
    diagnosis: diagnosis::DiagnosisView<'a>,
    lanes: lanes::LanesView,
    zombies: zombies::ZombiesView,
    heatmaps: Vec<ExportedHeatMap>,
    flames: Vec<ExportedFlame>,
    samples: Option<samples::SamplesView>,
    #[schemars(with = "tiles::TilesView<'a>")]
    tiles: Box<RawValue>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExportedHeatMap")]
struct ExportedHeatMap {
    by: heatmap::Part,
    value: Option<String>,
    view: heatmap::View,
    heatmap: heatmap::HeatMapView,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExportedFlame")]
struct ExportedFlame {
    #[schemars(with = "Time")]
    from: u64,
    #[schemars(with = "Time")]
    to: u64,
    #[schemars(with = "Option<Time>")]
    base_from: Option<u64>,
    #[schemars(with = "Option<Time>")]
    base_to: Option<u64>,
    flame: flame::FlameView,
}

/// The file.
pub(super) fn answer(
    app: &App,
    source: &Source,
    window: Window,
    diagnosed: &Diagnosed,
) -> Result<Response, Problem> {
    let page = assets::text("/index.html").ok_or_else(|| Problem::new(404, assets::REMEDY))?;
    let view = view(app, source, window, diagnosed)?;
    let data = serde_json::to_string(&view).map_err(broken)?;
    let file = inline(&page, &data);
    let name = file_name(source);
    let response = Response::new(
        200,
        "text/html; charset=utf-8",
        Payload::Shared(file.into_bytes().into()),
    );
    let disposition = format!("attachment; filename=\"sexton-{name}.html\"");
    Ok(response.with("content-disposition", disposition))
}

/// The name of a source as part of the name of a file.
pub(super) fn file_name(source: &Source) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    source.name.chars().map(plain).take(60).collect()
}

fn view<'a>(
    app: &App,
    source: &Source,
    window: Window,
    diagnosed: &'a Diagnosed,
) -> Result<ExportedView<'a>, Problem> {
    let clock = source.state().clock;
    let mut view = sources::source_view(source);
    view.live = false;
    view.from = clock.us(window.from_ns);
    view.to = clock.us(window.to_ns);
    let (lanes, zombies, tiles) = {
        let state = source.state();
        let asked = tiles::Asked::of_all(&state, window, WIDTH);
        let tiles = serde_json::value::to_raw_value(&asked.view(&state)?).map_err(broken)?;
        (lanes::view(&state), zombies::view(&state), tiles)
    };
    Ok(ExportedView {
        schema: "sexton.export/1",
        version: app.options.version,
        source: view,
        diagnosis: diagnosed.view(),
        lanes,
        zombies,
        heatmaps: heatmaps(source, window)?,
        flames: flames(source, window, diagnosed)?,
        samples: samples::view(source, window)?,
        tiles,
    })
}

fn heatmaps(source: &Source, window: Window) -> Result<Vec<ExportedHeatMap>, Problem> {
    if !source.has_times || source.state().bundle.stacks_span().is_none() {
        return Ok(Vec::new());
    }
    let mut maps = Vec::new();
    let mut cores: Vec<u32> = Vec::new();
    let views = [
        heatmap::View::Offset,
        heatmap::View::Long,
        heatmap::View::Threads,
    ];
    for view in views {
        let heatmap = heatmap::Asked::plain(window, view, None).answer(source)?;
        cores = heatmap.part_numbers().collect();
        maps.push(ExportedHeatMap {
            by: heatmap::Part::All,
            value: None,
            view,
            heatmap,
        });
    }
    for cpu in cores.into_iter().take(MAX_CORES) {
        let view = heatmap::View::Offset;
        maps.push(ExportedHeatMap {
            by: heatmap::Part::Core,
            value: Some(cpu.to_string()),
            view,
            heatmap: heatmap::Asked::plain(window, view, Some(cpu)).answer(source)?,
        });
    }
    Ok(maps)
}

/// The whole window, and what each finding of the gravest chain touches: alone, and
/// compared with the whole.
fn flames(
    source: &Source,
    window: Window,
    diagnosed: &Diagnosed,
) -> Result<Vec<ExportedFlame>, Problem> {
    if source.state().bundle.stacks_span().is_none() {
        return Ok(Vec::new());
    }
    let clock = source.state().clock;
    let mut asked = vec![(window, None)];
    let touched = touched(&diagnosed.times, clock, window);
    for looked_at in touched.into_iter().take(MAX_FLAMES) {
        asked.push((looked_at, None));
        asked.push((looked_at, Some(window)));
    }
    let flame = |(window, base): (Window, Option<Window>)| {
        Ok(ExportedFlame {
            from: clock.us(window.from_ns),
            to: clock.us(window.to_ns),
            base_from: base.map(|base| clock.us(base.from_ns)),
            base_to: base.map(|base| clock.us(base.to_ns)),
            flame: flame::Asked::plain(window, base).answer(source)?,
        })
    };
    asked.into_iter().map(flame).collect()
}

/// The first time of each finding, as far as it lies in the window.
fn touched(times: &diagnosis::TimesView, clock: Clock, window: Window) -> Vec<Window> {
    let mut windows = Vec::new();
    let first = times.findings.values().filter_map(|ranges| ranges.first());
    for &Range(from, to) in first {
        let from_ns = clock.ns(from).max(window.from_ns);
        let to_ns = clock.ns(to).max(from_ns.saturating_add(SHORTEST_NS));
        let touched = Window {
            from_ns,
            to_ns: to_ns.min(window.to_ns),
        };
        if touched.from_ns < touched.to_ns && touched != window && !windows.contains(&touched) {
            windows.push(touched);
        }
    }
    windows
}

fn broken(error: impl std::fmt::Display) -> Problem {
    Problem::new(500, format!("cannot write the file: {error}"))
}

/// Puts scripts, styles and data into the page.
fn inline(page: &str, data: &str) -> String {
    let mut file = String::with_capacity(page.len() + data.len() + (1 << 20));
    let mut rest = page;
    while let Some((before, tag, after)) = next_loaded(rest) {
        file.push_str(before);
        let content = attribute(tag, "src")
            .or_else(|| attribute(tag, "href"))
            .and_then(|path| assets::text(&format!("/{}", path.trim_start_matches(['.', '/']))));
        match content {
            Some(code) if tag.starts_with("<script") => {
                file.push_str("<script type=\"module\">");
                file.push_str(&code.replace("</script", "<\\/script"));
                file.push_str("</script>");
            }
            Some(style) if attribute(tag, "rel") == Some("stylesheet") => {
                file.push_str("<style>");
                file.push_str(&style.replace("</style", "<\\/style"));
                file.push_str("</style>");
            }
            // An icon, or a file to be loaded early: the page does without.
            _ => {}
        }
        rest = after;
    }
    file.push_str(rest);
    // In JSON it can only be in a string, where this means the same.
    let safe = data.replace('<', "\\u003c");
    let head =
        format!("{POLICY}<script type=\"application/json\" id=\"sexton-data\">{safe}</script>");
    match file.find("<head>") {
        Some(at) => file.insert_str(at + "<head>".len(), &head),
        None => file.insert_str(0, &head),
    }
    file
}

/// The file asks nobody for anything.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; \
    base-uri 'none'; form-action 'none'\">";

/// What stands before the next tag that loads something, the tag, and what comes after it.
fn next_loaded(page: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + page[from..].find('<')?;
        let rest = &page[at..];
        let is_script = rest.starts_with("<script") && !rest.starts_with("<script>");
        if is_script || rest.starts_with("<link") {
            let end = if is_script {
                rest.find("</script>")? + "</script>".len()
            } else {
                rest.find('>')? + 1
            };
            let tag_end = rest.find('>')? + 1;
            return Some((&page[..at], &rest[..tag_end], &rest[end..]));
        }
        from = at + 1;
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = &tag[start..];
    value.get(..value.find('"')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_load_are_found() {
        let page = "<head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"./a.svg\">\
                    <script type=\"module\" crossorigin src=\"./assets/x.js\"></script></head>";
        let (before, tag, after) = next_loaded(page).expect("the icon");
        assert_eq!(before, "<head><meta charset=\"utf-8\">");
        assert_eq!(attribute(tag, "href"), Some("./a.svg"));
        let (_, tag, after) = next_loaded(after).expect("the script");
        assert_eq!(attribute(tag, "src"), Some("./assets/x.js"));
        assert_eq!(after, "</head>");
        assert!(next_loaded(after).is_none());
    }

    #[test]
    fn data_cannot_end_its_element() {
        let file = inline("<html><head></head></html>", r#"{"a":"</script><!-- x"}"#);
        assert_eq!(file.matches("</script>").count(), 1, "{file}");
        assert!(!file.contains("<!--"), "{file}");
        let json = file.split("id=\"sexton-data\">").nth(1).expect("data");
        let json = json.split("</script>").next().expect("its end");
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(value["a"], "</script><!-- x");
    }
}
