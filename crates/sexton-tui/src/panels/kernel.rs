//! What the kernel said, and links that changed, the newest first.

use ratatui::text::{Line, Span};
use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::fact::nic::NIC_LINK;
use sexton_model::record::Record;

use super::{Content, Room, faint, none, not_seen, strong};
use crate::history::Window;
use crate::names;
use crate::view::View;
use crate::words::{clip, clock};

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let lines = view.history.events(window).filter_map(|(_, record)| {
        let (class, text) = match (record.says(&KLOG_EVENT), record.says(&NIC_LINK)) {
            (Some(line), _) => {
                let class = line.class.as_ref().or(line.level.as_ref());
                (known(class), kernel_text(line))
            }
            (_, Some(link)) => {
                let now = known(link.operstate.as_ref());
                ("link", format!("{} is {now}", record.subject.name))
            }
            _ => return None,
        };
        Some(line(view, record, class, &text, room))
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
fn kernel_text(said: &KernelLine) -> String {
    let line = known(said.line.as_ref());
    match &said.device {
        Some(device) => format!("{device}: {line}"),
        None => line.to_owned(),
    }
}

fn known(text: Option<&String>) -> &str {
    text.map_or("?", String::as_str)
}
