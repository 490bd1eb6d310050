use std::io::{self, Write};

use serde_json::{Value, json};
use sexton_model::audit::{Audit, AuditUnit};
use sexton_model::finding::Finding;
use sexton_model::text::escape;

/// Writes an audit in stable JSON, `sexton.audit/1`.
pub fn json(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    let shape = audit.shape.as_ref();
    let view = json!({
        "schema": "sexton.audit/1",
        "source": escape(audit.source.as_bytes()),
        "what": audit.what,
        "os": {
            "id": escape(audit.os.id.as_bytes()),
            "version": escape(audit.os.version.as_bytes()),
            "name": escape(audit.os.name.as_bytes()),
            "kernels": audit.os.kernels,
        },
        "shape": shape.map(|(name, _)| name),
        "shape_why": shape.map(|(_, why)| why),
        "shape_doubt": audit.shape_doubt,
        "units": audit.units.iter().map(unit).collect::<Vec<_>>(),
        "findings": audit.findings.iter().map(finding).collect::<Vec<_>>(),
        "missing": audit.missing,
        "gaps": audit.gaps,
    });
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
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
