//! The two text formats of Prometheus: 0.0.4, and OpenMetrics 1.0.
//!
//! They differ in the names of counters in comments, in units, and in the end. Both are written
//! from one call for each metric, so that they cannot say different things.

use std::fmt::Write as _;

/// A format of the exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text, version 0.0.4.
    Text,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The one that a client prefers, by its `Accept`. Text if it does not say.
    pub fn accepted(accept: Option<&str>) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut weight, mut version) = (1.0, None);
            for part in parts {
                match part.split_once('=') {
                    Some(("q", number)) => weight = number.parse().unwrap_or(0.0),
                    Some(("version", text)) => version = Some(text.trim_matches('"').to_owned()),
                    _ => {}
                }
            }
            let format = match (kind.as_str(), version.as_deref()) {
                ("application/openmetrics-text", None | Some("1.0.0")) => Self::OpenMetrics,
                ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => Self::Text,
                _ => continue,
            };
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }

    /// Its `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a metric is called, and what it means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// With `_total` if it is a counter.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) is_counter: bool,
}

/// What takes metrics: a format of text, or points for a receiver.
pub(crate) trait Out {
    /// Begins a metric. All its series follow before the next one.
    fn head(&mut self, head: Head);

    /// A series of the metric that was begun last.
    fn line<'l>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        value: f64,
    );

    /// How many series were written so far.
    fn n_series(&self) -> usize;

    /// Begins a gauge.
    fn gauge(&mut self, name: &'static str, help: &'static str) {
        let is_counter = false;
        self.head(Head {
            name,
            help,
            is_counter,
        });
    }

    /// Begins a counter.
    fn counter(&mut self, name: &'static str, help: &'static str) {
        let is_counter = true;
        self.head(Head {
            name,
            help,
            is_counter,
        });
    }
}

/// Writes a format.
#[derive(Debug)]
pub(crate) struct Exposition {
    format: Format,
    text: String,
    n_series: usize,
}

impl Exposition {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
            n_series: 0,
        }
    }

    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Out for Exposition {
    fn head(&mut self, head: Head) {
        let name = match (self.format, head.is_counter) {
            (Format::OpenMetrics, true) => head.name.strip_suffix("_total").unwrap_or(head.name),
            _ => head.name,
        };
        let kind = if head.is_counter { "counter" } else { "gauge" };
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if self.format == Format::OpenMetrics
            && let Some(unit) = unit(name)
        {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        escape(
            head.help,
            self.format == Format::OpenMetrics,
            &mut self.text,
        );
        self.text.push('\n');
    }

    fn line<'l>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        value: f64,
    ) {
        self.n_series += 1;
        self.text.push_str(name);
        let mut mark = '{';
        for (label, value) in labels {
            self.text.push(mark);
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape(value, true, &mut self.text);
            self.text.push('"');
            mark = ',';
        }
        if mark == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {}", Number(value));
    }

    fn n_series(&self) -> usize {
        self.n_series
    }
}

/// The unit that a name ends with, as OpenMetrics wants it declared.
fn unit(name: &str) -> Option<&'static str> {
    let units = ["seconds", "bytes", "ratio"];
    units.into_iter().find(|unit| {
        let stem = name.strip_suffix(unit);
        stem.is_some_and(|stem| stem.ends_with('_'))
    })
}

fn escape(text: &str, also_quotes: bool, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if also_quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

/// A number as both formats spell it.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            value if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => write!(f, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: Format) {
        assert_eq!(Format::accepted(Some(accept)), expected, "{accept}");
    }

    #[test]
    fn a_client_gets_the_format_that_it_prefers() {
        // As Prometheus 2.42 asks.
        check(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
             version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        );
        check(
            "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.1",
            Format::Text,
        );
        check("text/html, */*;q=0.8", Format::Text);
        check("application/openmetrics-text; version=0.0.1", Format::Text);
        check(
            "application/openmetrics-text; version=\"1.0.0\"",
            Format::OpenMetrics,
        );
        check("application/openmetrics-text;q=0, text/plain", Format::Text);
        check("", Format::Text);
        assert_eq!(Format::accepted(None), Format::Text);
    }

    fn written(format: Format) -> String {
        let mut out = Exposition::new(format);
        out.head(Head {
            name: "sexton_a_bytes_total",
            help: "a \"b\" \\ c",
            is_counter: true,
        });
        out.line("sexton_a_bytes_total", [("origin", "/a\"\\\n")], 1.5);
        out.line("sexton_a_bytes_total", [], f64::INFINITY);
        out.finish()
    }

    #[test]
    fn both_formats_are_written_as_their_specifications_say() {
        assert_eq!(
            written(Format::Text),
            "# TYPE sexton_a_bytes_total counter\n\
             # HELP sexton_a_bytes_total a \"b\" \\\\ c\n\
             sexton_a_bytes_total{origin=\"/a\\\"\\\\\\n\"} 1.5\n\
             sexton_a_bytes_total +Inf\n"
        );
        assert_eq!(
            written(Format::OpenMetrics),
            "# TYPE sexton_a_bytes counter\n# UNIT sexton_a_bytes bytes\n\
             # HELP sexton_a_bytes a \\\"b\\\" \\\\ c\n\
             sexton_a_bytes_total{origin=\"/a\\\"\\\\\\n\"} 1.5\n\
             sexton_a_bytes_total +Inf\n# EOF\n"
        );
    }
}
