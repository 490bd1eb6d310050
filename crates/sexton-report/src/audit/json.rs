use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sexton_model::audit::{Audit, AuditUnit};
use sexton_model::finding::Finding;
use sexton_model::text::escape;

/// Writes an audit in stable JSON, `sexton.audit/1`. Units and findings are written one by one:
/// there may be thousands.
pub fn json(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    let shape = audit.shape.as_ref();
    let view = View {
        findings: Rows(&audit.findings, finding),
        gaps: &audit.gaps,
        missing: &audit.missing,
        os: json!({
            "id": escape(audit.os.id.as_bytes()),
            "version": escape(audit.os.version.as_bytes()),
            "name": escape(audit.os.name.as_bytes()),
            "kernels": audit.os.kernels,
        }),
        schema: "sexton.audit/1",
        shape: shape.map(|(name, _)| name.as_str()),
        shape_doubt: audit.shape_doubt.as_deref(),
        shape_why: shape.map(|(_, why)| why.as_str()),
        source: escape(audit.source.as_bytes()),
        units: Rows(&audit.units, unit),
        what: &audit.what,
    };
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}

/// In the order of their names, as all of sexton's JSON.
#[derive(Serialize)]
struct View<'a> {
    findings: Rows<'a, Finding>,
    gaps: &'a [String],
    missing: &'a [String],
    os: Value,
    schema: &'static str,
    shape: Option<&'a str>,
    shape_doubt: Option<&'a str>,
    shape_why: Option<&'a str>,
    source: String,
    units: Rows<'a, AuditUnit>,
    what: &'a str,
}

struct Rows<'a, T>(&'a [T], fn(&T) -> Value);

impl<T> Serialize for Rows<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

fn unit(unit: &AuditUnit) -> Value {
    json!({
        "name": unit.name,
        "state": unit.state,
        "preset": unit.preset,
        "package": unit.package,
        "file": unit.file,
        "reached_by": unit.reached_by,
        "on": unit.is_on,
        "starts_per_day": unit.starts_per_day.as_ref().map(|(n, _)| n),
        "verdict": unit.verdict.name(),
        "codes": unit.codes,
        "why": unit.why,
    })
}

pub(super) fn finding(finding: &Finding) -> Value {
    let evidence = finding.evidence.iter().map(|evidence| {
        json!({
            "stance": evidence.stance.name(),
            "text": evidence.text,
            "source": evidence.source,
            "value": evidence.value,
        })
    });
    let remedies = finding.remedies.iter().map(|remedy| {
        json!({ "kind": remedy.kind.name(), "text": remedy.text, "command": remedy.command })
    });
    json!({
        "id": finding.id().as_str(),
        "code": finding.code,
        "subject": { "kind": finding.subject.kind.name(), "name": &*finding.subject.name },
        "severity": finding.severity.name(),
        "confidence": finding.confidence.ratio(),
        "title": finding.title,
        "since": Value::Null,
        "caused_by": [],
        "evidence": evidence.collect::<Vec<_>>(),
        "remedies": remedies.collect::<Vec<_>>(),
    })
}
