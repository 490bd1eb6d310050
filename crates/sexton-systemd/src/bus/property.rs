//! Values of properties, and names of units, as they come over the bus.

use std::collections::HashMap;
use std::fmt::Write as _;

use sexton_model::text::{escape, unescape};
use zbus::Variant;

/// The longest name that systemd itself allows.
const NAME_BYTES: usize = 255;

const UNIT_PATH: &str = "/org/freedesktop/systemd1/unit/";

/// A value, as far as any property that is read here needs it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, or yes as 1 and no as 0.
    Number(u64),
    /// A number below zero.
    Signed(i64),
    /// A text, or an object path.
    Text(String),
    /// A set of texts, sorted.
    Texts(Vec<String>),
    /// Bytes, such as an id.
    Bytes(Vec<u8>),
    /// Some other type.
    Other,
}

impl Value {
    /// Takes any value of the bus; what is no use here becomes `Other`.
    pub(super) fn of(variant: &Variant<'_>) -> Self {
        match variant {
            Variant::U8(number) => Self::Number(u64::from(*number)),
            Variant::U16(number) => Self::Number(u64::from(*number)),
            Variant::U32(number) => Self::Number(u64::from(*number)),
            Variant::U64(number) => Self::Number(*number),
            Variant::Bool(yes) => Self::Number(u64::from(*yes)),
            Variant::I16(number) => Self::signed(i64::from(*number)),
            Variant::I32(number) => Self::signed(i64::from(*number)),
            Variant::I64(number) => Self::signed(*number),
            Variant::Str(text) => Self::Text(text.as_str().to_owned()),
            Variant::ObjectPath(path) => Self::Text(path.as_str().to_owned()),
            Variant::Array(array) => Self::of_array(array.inner()),
            // Two deep is enough for everything that is honest.
            Variant::Variant(inner) if !matches!(**inner, Variant::Variant(_)) => Self::of(inner),
            _ => Self::Other,
        }
    }

    fn signed(number: i64) -> Self {
        u64::try_from(number).map_or(Self::Signed(number), Self::Number)
    }

    fn of_array(items: &[Variant<'_>]) -> Self {
        let bytes: Option<Vec<u8>> = items
            .iter()
            .map(|item| match item {
                Variant::U8(byte) => Some(*byte),
                _ => None,
            })
            .collect();
        if let Some(bytes) = bytes {
            return Self::Bytes(bytes);
        }
        let mut texts: Option<Vec<String>> = items
            .iter()
            .map(|item| match item {
                Variant::Str(text) => Some(text.as_str().to_owned()),
                _ => None,
            })
            .collect();
        // They are sets of names, and a reload shuffles them.
        if let Some(texts) = &mut texts {
            texts.sort_unstable();
        }
        texts.map_or(Self::Other, Self::Texts)
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// As a detail of a record shows it.
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Signed(number) => Some(number.to_string()),
            Self::Text(text) if text.is_empty() => None,
            Self::Text(text) => Some(escape(text.as_bytes())),
            Self::Texts(texts) if texts.is_empty() => None,
            Self::Texts(texts) => Some(escape(texts.join(" ").as_bytes())),
            Self::Bytes(bytes) if bytes.is_empty() => None,
            Self::Bytes(bytes) => Some(bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })),
            Self::Other => None,
        }
    }
}

/// Properties of one interface of one unit.
pub type Properties = HashMap<String, Value>;

/// The same, as they come over the bus.
pub(super) type BorrowedProperties<'m> = HashMap<&'m str, Variant<'m>>;

/// Takes all values.
pub(super) fn properties(borrowed: &BorrowedProperties<'_>) -> Properties {
    let value = |(name, variant): (&&str, &Variant<'_>)| (String::from(*name), Value::of(variant));
    borrowed.iter().map(value).collect()
}

/// The name of a unit, escaped. `None` where systemd could not have such a unit.
pub(super) fn unit_name(name: &[u8]) -> Option<String> {
    let fits = !name.is_empty() && name.len() <= NAME_BYTES && name.contains(&b'.');
    fits.then(|| escape(name))
}

/// The name of the unit behind an object path: all but letters and digits is `_` and
/// two hexadecimal digits there.
pub(super) fn unit_of_path(path: &str) -> Option<String> {
    let mut name = Vec::new();
    let mut rest = path.strip_prefix(UNIT_PATH)?.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'_' {
            name.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else {
            return None;
        };
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        name.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    unit_name(&name)
}

/// The object path of a unit of this escaped name, the reverse of [`unit_of_path`].
pub(super) fn path_of_unit(name: &str) -> String {
    let mut path = String::from(UNIT_PATH);
    for (at, byte) in unescape(name).into_iter().enumerate() {
        // A digit at the start is escaped too.
        if byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "_{byte:02x}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zbus::{Array, ObjectPath, Str};

    #[test]
    fn paths_become_names() {
        let check = |path: &str, name: Option<&str>| {
            let path = format!("{UNIT_PATH}{path}");
            assert_eq!(unit_of_path(&path).as_deref(), name, "{path}");
        };
        check("ecs_2eservice", Some("ecs.service"));
        check(
            "dev_2ddisk_5cx2dlabel_2eswap",
            Some(r"dev-disk\x2dlabel.swap"),
        );
        check("evil_0aname_2eservice", Some(r"evil\012name.service"));
        check("cut_2", None);
        check("odd_zzname_2eservice", None);
        check("", None);
        check(&format!("{}_2eservice", "a".repeat(300)), None);
        assert_eq!(unit_of_path("/elsewhere/a_2eservice"), None);
    }

    #[test]
    fn names_become_paths_and_names_again() {
        for name in [
            "ecs.service",
            r"dev-disk\x2dlabel.swap",
            "7up@a_b.service",
            r"a\012.mount",
        ] {
            let path = path_of_unit(name);
            assert!(ObjectPath::try_from(path.as_str()).is_ok(), "{path}");
            assert_eq!(unit_of_path(&path).as_deref(), Some(name));
        }
    }

    #[test]
    fn values_are_shown_on_one_line() {
        let check = |variant: Variant<'_>, shown: Option<&str>| {
            assert_eq!(Value::of(&variant).shown().as_deref(), shown);
        };
        check(Variant::U64(u64::MAX), Some("18446744073709551615"));
        check(Variant::I32(-3), Some("-3"));
        check(Variant::I32(137), Some("137"));
        check(Variant::Str(Str::from("a\nb")), Some(r"a\012b"));
        check(Variant::Str(Str::from("")), None);
        check(Variant::from(vec![0xabu8, 1]), Some("ab01"));
        check(
            Variant::from(vec!["a.timer", "a.socket"]),
            Some("a.socket a.timer"),
        );
        check(Variant::F64(f64::NAN), None);
    }

    /// Any value of the bus, nested.
    fn anything() -> impl Strategy<Value = Variant<'static>> {
        let leaf = || {
            prop_oneof![
                any::<u8>().prop_map(Variant::U8),
                any::<bool>().prop_map(Variant::Bool),
                any::<i16>().prop_map(Variant::I16),
                any::<i32>().prop_map(Variant::I32),
                any::<i64>().prop_map(Variant::I64),
                any::<u64>().prop_map(Variant::U64),
                any::<f64>().prop_map(Variant::F64),
                any::<String>().prop_map(|text| Variant::Str(Str::from(text))),
                Just(Variant::ObjectPath(
                    ObjectPath::try_from("/a/b").expect("a path")
                )),
                prop::collection::vec(any::<u8>(), 0..20).prop_map(Variant::from),
                prop::collection::vec(any::<String>(), 0..4).prop_map(Variant::from),
                Just(Variant::Array(Array::new(&zbus::Signature::U32))),
            ]
        };
        (leaf(), 0usize..5).prop_map(|(value, depth)| {
            (0..depth).fold(value, |value, _| Variant::Variant(Box::new(value)))
        })
    }

    proptest! {
        #[test]
        fn any_value_is_taken_and_shown_safely(variant in anything()) {
            let value = Value::of(&variant);
            if let Some(shown) = value.shown() {
                prop_assert!(!shown.chars().any(char::is_control), "{:?}", shown);
            }
            let _ = value.number();
        }

        #[test]
        fn any_path_is_taken(path in any::<String>()) {
            if let Some(name) = unit_of_path(&format!("{UNIT_PATH}{path}")) {
                prop_assert!(!name.chars().any(char::is_control), "{:?}", name);
            }
        }
    }
}
