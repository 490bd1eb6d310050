//! Records as lines of JSON, as `sensor-dump` writes them, and back.

use serde_json::{Map, Value};
use sexton_model::fact;
use sexton_model::moment::Moment;
use sexton_model::payload::{self, Fields};
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

/// A record as JSON.
pub fn line(record: &Record) -> Value {
    let mut line = Map::new();
    line.insert("at_ns".into(), record.at.as_ns().into());
    line.insert("sensor".into(), record.sensor.as_ref().into());
    line.insert("kind".into(), record.subject.kind.name().into());
    line.insert("name".into(), record.subject.name.as_ref().into());
    match &record.body {
        Body::Sample { fact, value } => {
            line.insert("fact".into(), fact.name.into());
            line.insert("value".into(), (*value).into());
        }
        Body::Event { fact, payload } => {
            line.insert("fact".into(), fact.name.into());
            line.insert("says".into(), object(&payload.fields()));
        }
        Body::Gap(gap) => {
            line.insert("gap".into(), gap.why.to_string().into());
            line.insert("text".into(), gap.text.as_str().into());
        }
    }
    Value::Object(line)
}

/// The record of a line; none of a gap, and of what makes no sense.
pub fn record(line: &Value) -> Option<Record> {
    let known = fact::by_name(line["fact"].as_str()?)?;
    let kind = SubjectKind::by_name(line["kind"].as_str()?)?;
    let body = match line["value"].as_f64() {
        Some(value) => Body::Sample { fact: known, value },
        None => Body::read_event(known, &fields(line["says"].as_object()?)).ok()?,
    };
    Some(Record {
        at: Moment::from_ns(line["at_ns"].as_u64()?),
        sensor: line["sensor"].as_str()?.to_owned().into(),
        subject: Subject::new(kind, line["name"].as_str()?),
        body,
    })
}

fn object(fields: &Fields) -> Value {
    let fields = fields.iter();
    Value::Object(fields.map(|(k, v)| (k.to_string(), json(v))).collect())
}

fn json(value: &payload::Value) -> Value {
    match value {
        payload::Value::Flag(flag) => (*flag).into(),
        payload::Value::Count(count) => (*count).into(),
        payload::Value::Real(real) => (*real).into(),
        payload::Value::Text(text) => text.as_str().into(),
        payload::Value::List(values) => values.iter().map(json).collect(),
        payload::Value::Group(fields) => object(fields),
    }
}

fn fields(object: &Map<String, Value>) -> Fields {
    let fields = object.iter();
    fields
        .filter_map(|(name, value)| Some((name.clone().into(), stored(value)?)))
        .collect()
}

fn stored(value: &Value) -> Option<payload::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => payload::Value::Flag(*flag),
        Value::Number(number) => match number.as_u64() {
            Some(count) => payload::Value::Count(count),
            None => payload::Value::Real(number.as_f64()?),
        },
        Value::String(text) => payload::Value::Text(text.clone()),
        Value::Array(values) => payload::Value::List(values.iter().filter_map(stored).collect()),
        Value::Object(object) => payload::Value::Group(fields(object)),
    })
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::cgroup::{CGROUP_BORN, CgroupCreated};
    use sexton_model::fact::task::Task;
    use sexton_model::record::Sink;

    use super::*;

    #[test]
    fn an_event_comes_back() {
        let mut out = Sink::new("cgroups", Moment::from_ns(7));
        let init = Task {
            comm: "systemd".into(),
            pid: 1,
        };
        let says = CgroupCreated {
            path: "/a".into(),
            id: Some(u64::MAX),
            creator_ancestry: vec![init],
            ..CgroupCreated::default()
        };
        let subject = Subject::new(SubjectKind::Cgroup, "/a");
        out.event(Moment::from_ns(8), &subject, &CGROUP_BORN, says);
        let records = out.into_records();
        assert_eq!(record(&line(&records[0])).as_ref(), records.first());
    }
}
