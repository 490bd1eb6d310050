//! Fields as a JSON object, which keeps their order, and all of them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use sexton_model::payload::{Fields, Value};

/// The object as text.
pub(crate) fn object(fields: &Fields) -> String {
    let mut out = String::new();
    put_fields(&mut out, fields);
    out
}

fn put_fields(out: &mut String, fields: &Fields) {
    out.push('{');
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put_text(out, name);
        out.push(':');
        put(out, value);
    }
    out.push('}');
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Count(count) => _ = write!(out, "{count}"),
        // JSON has neither NaN nor infinity. A point keeps it apart from a count.
        Value::Real(real) if real.is_finite() => _ = write!(out, "{real:?}"),
        Value::Real(_) => out.push_str("null"),
        Value::Text(text) => put_text(out, text),
        Value::List(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                put(out, value);
            }
            out.push(']');
        }
        Value::Group(fields) => put_fields(out, fields),
    }
}

fn put_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// The fields of an object. A null is no field.
pub(crate) fn parse(text: &str) -> Result<Fields, serde_json::Error> {
    let Object(fields) = serde_json::from_str(text)?;
    Ok(fields)
}

struct Object(Fields);
struct Any(Option<Value>);

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor)
    }
}

impl<'de> serde::Deserialize<'de> for Any {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyVisitor)
    }
}

struct ObjectVisitor;

impl<'de> serde::de::Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut fields = Fields::new();
        while let Some((name, Any(value))) = map.next_entry::<String, Any>()? {
            fields.extend(value.map(|value| (Cow::Owned(name), value)));
        }
        Ok(Object(fields))
    }
}

struct AnyVisitor;

impl<'de> serde::de::Visitor<'de> for AnyVisitor {
    type Value = Any;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Any, E> {
        Ok(Any(None))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Any, E> {
        Ok(Any(Some(Value::Flag(flag))))
    }

    fn visit_u64<E>(self, count: u64) -> Result<Any, E> {
        Ok(Any(Some(Value::Count(count))))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Any, E> {
        Ok(Any(Some(Value::Real(number as f64))))
    }

    fn visit_f64<E>(self, real: f64) -> Result<Any, E> {
        Ok(Any(Some(Value::Real(real))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Any, E> {
        Ok(Any(Some(Value::Text(text.to_owned()))))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Any, A::Error> {
        let mut values = Vec::new();
        while let Some(Any(value)) = seq.next_element()? {
            values.extend(value);
        }
        Ok(Any(Some(Value::List(values))))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Any, A::Error> {
        let Object(fields) = ObjectVisitor.visit_map(map)?;
        Ok(Any(Some(Value::Group(fields))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fields: Fields, text: &str) {
        assert_eq!(object(&fields), text);
        assert_eq!(parse(text).expect("it parses"), fields);
    }

    #[test]
    fn every_value_comes_back() {
        let pin = vec![("n".into(), Value::Count(3))];
        check(
            vec![
                ("text".into(), Value::Text("a\"\n".into())),
                ("count".into(), Value::Count(u64::MAX)),
                ("real".into(), Value::Real(1.0)),
                ("flag".into(), Value::Flag(true)),
                (
                    "list".into(),
                    Value::List(vec![Value::Group(pin), Value::Count(1)]),
                ),
            ],
            r#"{"text":"a\"\n","count":18446744073709551615,"real":1.0,"flag":true,"list":[{"n":3},1]}"#,
        );
        check(Fields::new(), "{}");
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "[]", "null", "{\"a\":}", "{\"a\":1"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("{\"a\":null}").expect("it parses").is_empty());
    }
}
