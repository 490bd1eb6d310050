//! What the kernel said, and links that changed, the newest first.

use ratatui::text::{Line, Span};
use sexton_model::record::Record;

use super::{Content, Room, faint, none, not_seen, strong};
use crate::history::Window;
use crate::names::{self, Shown};
use crate::view::View;
use crate::words::{clip, clock};

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let lines = view.history.events(window).filter_map(|(shown, record)| {
        let (class, text) = match shown {
            Shown::KernelLine => (detail(record, "class"), kernel_text(record)),
            Shown::NicLink => ("link".into(), link_text(record)),
            _ => return None,
        };
        Some(line(view, record, &class, &text, room))
    });
    let mut list: Vec<Line<'static>> = lines.collect();
    let n = list.len();
    if list.is_empty() {
        list.push(match view.history.heard(names::KLOG, window) {
            true => none(view, "kernel log"),
            false => not_seen("kernel log"),
        });
    }
    let title = match n {
        0 => String::new(),
        n => format!("{n} in this window"),
    };
    Content {
        title,
        head: Vec::new(),
        list,
    }
}

fn line(view: &View, record: &Record, class: &str, text: &str, room: Room) -> Line<'static> {
    let at = format!("{} ", clock(view, record.at));
    let class = format!("{class} ");
    let columns = room.columns.saturating_sub(at.len() + class.len());
    Line::from(vec![
        Span::styled(at, faint()),
        Span::styled(class, strong()),
        Span::raw(clip(text, columns)),
    ])
}

/// The device first: the line may be too long to be seen to its end.
fn kernel_text(record: &Record) -> String {
    let line = detail(record, "line");
    match record.detail("device") {
        Some(device) => format!("{device}: {line}"),
        None => line,
    }
}

fn link_text(record: &Record) -> String {
    let now = detail(record, "operstate");
    format!("{} is {now}", record.subject.name)
}

fn detail(record: &Record, key: &str) -> String {
    record.detail(key).unwrap_or("?").to_owned()
}
