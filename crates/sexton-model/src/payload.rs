//! What an event says: a struct of its own for each fact, and the one form that all of
//! them have on disk.
//!
//! A payload is declared by [`payload!`]: fields with names, types and a line of help. From
//! that come the struct, its fields on disk (a flat object with typed values), the way back,
//! and the description that documents and property tests read. Older recordings hold every
//! value as text; each type reads its own text, so they decode by the same code.

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A value as it is stored.
#[derive(Debug, Clone)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number from 0 on.
    Count(u64),
    /// Any other number.
    Real(f64),
    /// Text; hostile bytes in it are escaped.
    Text(String),
    /// Several of one kind.
    List(Vec<Value>),
    /// Fields of their own.
    Group(Fields),
}

/// Names and values in the order of their declaration. A field without a value is left out.
pub type Fields = Vec<(Cow<'static, str>, Value)>;

impl Value {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Flag(_) => 0,
            Value::Count(_) => 1,
            Value::Real(_) => 2,
            Value::Text(_) => 3,
            Value::List(_) => 4,
            Value::Group(_) => 5,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Real(real) => write!(f, "{real}"),
            Value::Text(text) => f.write_str(text),
            Value::List(values) => {
                let shown: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "[{}]", shown.join(", "))
            }
            Value::Group(fields) => {
                let shown: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "{{{}}}", shown.join(" "))
            }
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Flag(a), Value::Flag(b)) => a.cmp(b),
            (Value::Count(a), Value::Count(b)) => a.cmp(b),
            (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a.cmp(b),
            (Value::Group(a), Value::Group(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// The kind of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Yes or no.
    Flag,
    /// A whole number from 0 on.
    Count,
    /// Any number.
    Real,
    /// Text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Several of one kind.
    List(&'static ValueKind),
    /// Fields of their own.
    Group(&'static [FieldSpec]),
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueKind::Flag => f.write_str("true or false"),
            ValueKind::Count => f.write_str("whole number"),
            ValueKind::Real => f.write_str("number"),
            ValueKind::Text => f.write_str("text"),
            ValueKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            ValueKind::List(of) => write!(f, "list of {of}"),
            ValueKind::Group(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                write!(f, "group of {}", names.join(", "))
            }
        }
    }
}

/// What is known of a field before there is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// Its name on disk.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Whether every event of the fact has it.
    pub is_required: bool,
    /// What it means, in one line.
    pub help: &'static str,
}

/// A type that a field of a payload may have.
pub trait Field: Sized {
    /// The kind of its values.
    const KIND: ValueKind;
    /// Whether it must be there.
    const IS_REQUIRED: bool = true;

    /// The value to store; none when there is nothing to say.
    fn put(&self) -> Option<Value>;

    /// The value that was stored; none when it does not fit.
    fn take(stored: Option<&Value>) -> Option<Self>;
}

impl Field for bool {
    const KIND: ValueKind = ValueKind::Flag;

    fn put(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Flag(flag) => Some(*flag),
            Value::Text(text) if matches!(text.as_str(), "yes" | "true") => Some(true),
            Value::Text(text) if matches!(text.as_str(), "no" | "false") => Some(false),
            _ => None,
        }
    }
}

impl Field for u64 {
    const KIND: ValueKind = ValueKind::Count;

    fn put(&self) -> Option<Value> {
        Some(Value::Count(*self))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Count(count) => Some(*count),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Field for u32 {
    const KIND: ValueKind = ValueKind::Count;

    fn put(&self) -> Option<Value> {
        Some(Value::Count(u64::from(*self)))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        u64::take(stored).and_then(|count| count.try_into().ok())
    }
}

impl Field for i64 {
    const KIND: ValueKind = ValueKind::Real;

    fn put(&self) -> Option<Value> {
        Some(match u64::try_from(*self) {
            Ok(count) => Value::Count(count),
            // Text, because a number in JSON keeps 53 bits of it.
            Err(_) => Value::Text(self.to_string()),
        })
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Count(count) => i64::try_from(*count).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Field for f64 {
    const KIND: ValueKind = ValueKind::Real;

    fn put(&self) -> Option<Value> {
        Some(Value::Real(*self))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Real(real) => Some(*real),
            Value::Count(count) => Some(*count as f64),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Field for String {
    const KIND: ValueKind = ValueKind::Text;

    fn put(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

/// A value that does not fit is as one that is not there: the rest of the event stands.
impl<T: Field> Field for Option<T> {
    const KIND: ValueKind = T::KIND;
    const IS_REQUIRED: bool = false;

    fn put(&self) -> Option<Value> {
        self.as_ref().and_then(T::put)
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        Some(T::take(stored))
    }
}

/// An empty list is left out.
impl<T: Field> Field for Vec<T> {
    const KIND: ValueKind = ValueKind::List(&T::KIND);
    const IS_REQUIRED: bool = false;

    fn put(&self) -> Option<Value> {
        let values: Vec<Value> = self.iter().filter_map(T::put).collect();
        (!values.is_empty()).then_some(Value::List(values))
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored {
            Some(Value::List(values)) => Some(
                values
                    .iter()
                    .filter_map(|value| T::take(Some(value)))
                    .collect(),
            ),
            _ => Some(Vec::new()),
        }
    }
}

/// The value of a field among those stored.
pub fn stored<'f>(fields: &'f Fields, name: &str) -> Option<&'f Value> {
    fields
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}

/// A payload cannot be read: the field that is missing or does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Its name.
    pub field: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {} is missing or does not fit", self.field)
    }
}

impl std::error::Error for Malformed {}

/// What an event says.
pub trait Payload: Any + fmt::Debug + Send + Sync {
    /// The form in which it is stored.
    fn fields(&self) -> Fields;

    /// For a look at the struct itself.
    fn as_any(&self) -> &dyn Any;
}

/// A struct made by [`payload!`].
pub trait Structure: Payload + Sized {
    /// Its fields, in the order of their declaration.
    const FIELDS: &'static [FieldSpec];

    /// Reads what was stored.
    fn read(fields: &Fields) -> Result<Self, Malformed>;
}

/// How the payloads of a fact are read.
#[derive(Debug, Clone, Copy)]
pub struct PayloadSpec {
    /// The fields, in the order of their declaration.
    pub fields: &'static [FieldSpec],
    /// Reads what was stored.
    pub read: fn(&Fields) -> Result<Arc<dyn Payload>, Malformed>,
}

impl PayloadSpec {
    /// That of a struct.
    pub const fn of<T: Structure>() -> Self {
        Self {
            fields: T::FIELDS,
            read: |fields| Ok(Arc::new(T::read(fields)?)),
        }
    }
}

/// Declares payloads. A field's first line of documentation is its help. `from_old`, where
/// it is given, turns the fields of older recordings into those of today.
#[macro_export]
macro_rules! payload {
    ($(
        $(#[doc = $about:literal])*
        $(@from_old($from_old:path))?
        pub struct $name:ident {
            $( #[doc = $help:literal] $(#[doc = $more:literal])* pub $field:ident: $type:ty, )*
        }
    )*) => { $(
        $(#[doc = $about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $( #[doc = $help] $(#[doc = $more])* pub $field: $type, )*
        }

        impl $crate::payload::Payload for $name {
            fn fields(&self) -> $crate::payload::Fields {
                #[allow(unused_mut)]
                let mut fields = $crate::payload::Fields::new();
                $(
                    if let Some(value) = $crate::payload::Field::put(&self.$field) {
                        fields.push((stringify!($field).into(), value));
                    }
                )*
                fields
            }

            fn as_any(&self) -> &dyn std::any::Any {
                self
            }
        }

        impl $crate::payload::Structure for $name {
            const FIELDS: &'static [$crate::payload::FieldSpec] = &[ $(
                $crate::payload::FieldSpec {
                    name: stringify!($field),
                    kind: <$type as $crate::payload::Field>::KIND,
                    is_required: <$type as $crate::payload::Field>::IS_REQUIRED,
                    help: $help.trim_ascii(),
                },
            )* ];

            fn read(
                fields: &$crate::payload::Fields,
            ) -> Result<Self, $crate::payload::Malformed> {
                $( let fields = &$from_old(fields); )?
                let _ = fields;
                Ok(Self { $(
                    $field: $crate::payload::Field::take(
                        $crate::payload::stored(fields, stringify!($field)),
                    )
                    .ok_or($crate::payload::Malformed { field: stringify!($field) })?,
                )* })
            }
        }

        /// As a part of another payload.
        impl $crate::payload::Field for $name {
            const KIND: $crate::payload::ValueKind =
                $crate::payload::ValueKind::Group(<$name as $crate::payload::Structure>::FIELDS);

            fn put(&self) -> Option<$crate::payload::Value> {
                Some($crate::payload::Value::Group($crate::payload::Payload::fields(self)))
            }

            fn take(stored: Option<&$crate::payload::Value>) -> Option<Self> {
                match stored? {
                    $crate::payload::Value::Group(fields) => {
                        <$name as $crate::payload::Structure>::read(fields).ok()
                    }
                    _ => None,
                }
            }
        }
    )* };
}

/// Declares an enum of words that a field may hold.
#[macro_export]
macro_rules! choice {
    ($(
        $(#[doc = $about:literal])*
        pub enum $name:ident {
            $( $(#[doc = $help:literal])* $variant:ident = $word:literal, )*
        }
    )*) => { $(
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $help])* $variant, )*
        }

        impl $name {
            /// The word that stands for it.
            pub fn name(self) -> &'static str {
                match self { $( $name::$variant => $word, )* }
            }
        }

        impl $crate::payload::Field for $name {
            const KIND: $crate::payload::ValueKind =
                $crate::payload::ValueKind::Choice(&[ $( $word, )* ]);

            fn put(&self) -> Option<$crate::payload::Value> {
                Some($crate::payload::Value::Text(self.name().to_owned()))
            }

            fn take(stored: Option<&$crate::payload::Value>) -> Option<Self> {
                match stored?.as_text()? {
                    $( $word => Some($name::$variant), )*
                    _ => None,
                }
            }
        }
    )* };
}

#[cfg(test)]
mod tests;
