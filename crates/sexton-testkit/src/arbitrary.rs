//! Any record there can be, for property tests: events say whatever the payload of their
//! fact can hold, as it is written now and as older recordings have it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sexton_model::fact::{self, Fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::payload::{FieldSpec, Fields, Payload, Value, ValueKind};
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

/// A record of any sort.
pub fn record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![any::<u64>(), 0_u64..1000];
    let parts = (time, text(), subject(), body());
    parts.prop_map(|(at, sensor, subject, body)| Record {
        at: Moment::from_ns(at),
        sensor: sensor.into(),
        subject,
        body,
    })
}

/// What a record may say.
pub fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        sample(),
        event(),
        gap().prop_map(|gap| Body::Gap(Box::new(gap)))
    ]
}

/// A value of any fact that has values.
pub fn sample() -> impl Strategy<Value = Body> {
    let facts: Vec<&'static Fact> = fact::all().filter(|fact| fact.payload.is_none()).collect();
    (select(facts), number()).prop_map(|(fact, value)| Body::Sample { fact, value })
}

/// The first event of this fact, of always the same ones, that is `wanted`, with what is wanted.
///
/// # Panics
///
/// If it has no events.
pub fn first_event<T>(
    fact: &'static Fact,
    wanted: impl Fn(&dyn Payload) -> Option<T>,
) -> (Body, T) {
    let mut runner = TestRunner::deterministic();
    let events = event_of(fact);
    loop {
        let body = events.new_tree(&mut runner).expect("an event").current();
        let Body::Event { payload, .. } = &body else {
            panic!("{} has no events", fact.name);
        };
        if let Some(found) = wanted(&**payload) {
            return (body, found);
        }
    }
}

/// An event of any fact that has events.
pub fn event() -> impl Strategy<Value = Body> {
    let events: Vec<&'static Fact> = fact::all().filter(|fact| fact.payload.is_some()).collect();
    select(events).prop_flat_map(event_of)
}

/// An event of this fact.
pub fn event_of(fact: &'static Fact) -> impl Strategy<Value = Body> {
    event_in(&Vocabulary::any(), fact)
}

/// An event of this fact whose fields are drawn from a vocabulary.
pub fn event_in(
    vocabulary: &Vocabulary,
    fact: &'static Fact,
) -> impl Strategy<Value = Body> + use<> {
    let specs = fact.payload.map_or(&[][..], |payload| payload.fields);
    fields(vocabulary, specs)
        .prop_filter_map("a number that its field cannot hold", move |fields| {
            Body::read_event(fact, &fields).ok()
        })
}

/// What the texts and counts of events are drawn from.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    texts: BoxedStrategy<String>,
    counts: BoxedStrategy<u64>,
}

impl Vocabulary {
    /// All that a field can hold, so that two events rarely speak of the same thing.
    pub fn any() -> Self {
        let counts = prop_oneof![8 => any::<u32>().prop_map(u64::from), 1 => any::<u64>()];
        Self {
            texts: text().boxed(),
            counts: counts.boxed(),
        }
    }

    /// Mostly these texts and these counts, so that events often speak of the same thing.
    pub fn few(texts: &'static [&'static str], counts: &'static [u64]) -> Self {
        let known = select(texts).prop_map(str::to_owned);
        let any = Self::any();
        Self {
            texts: prop_oneof![7 => known, 1 => any.texts].boxed(),
            counts: prop_oneof![7 => select(counts), 1 => any.counts].boxed(),
        }
    }
}

/// What a sensor could not see.
pub fn gap() -> impl Strategy<Value = Gap> {
    let parts = (text(), why(), text(), proptest::option::of(text()));
    parts.prop_map(|(sensor, why, text, remedy)| Gap {
        sensor: sensor.into(),
        why,
        text,
        remedy,
    })
}

/// Something that a record may be about.
pub fn subject() -> impl Strategy<Value = Subject> {
    let kinds: Vec<SubjectKind> = SubjectKind::all().collect();
    (select(kinds), text()).prop_map(|(kind, name)| Subject::new(kind, name))
}

/// Text of all sorts: empty, often the same, a number, hostile.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("infinity".to_owned()),
        "[a-c]{1,2}",
        "[0-9]{1,3}",
        "\\PC{0,20}",
        ".{0,8}"
    ]
}

/// A number that is equal to itself.
pub fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()),
        (-5_i32..5).prop_map(f64::from),
        any::<i64>().prop_map(|value| value as f64),
        Just(-0.0),
    ]
}

fn why() -> impl Strategy<Value = Why> {
    prop_oneof![
        Just(Why::Denied),
        Just(Why::Vanished),
        Just(Why::Unsupported),
        Just(Why::Malformed),
        any::<u64>().prop_map(Why::Lost),
        Just(Why::Overrun),
        Just(Why::Bug),
    ]
}

/// Fields as they may be stored: those that must be there, and some of the others.
fn fields(vocabulary: &Vocabulary, specs: &'static [FieldSpec]) -> BoxedStrategy<Fields> {
    let strategies: Vec<_> = specs.iter().map(|spec| field(vocabulary, spec)).collect();
    let present = |fields: Vec<Option<_>>| fields.into_iter().flatten().collect();
    strategies.prop_map(present).boxed()
}

/// A name that ends in `*` begins a family of names.
fn field(
    vocabulary: &Vocabulary,
    spec: &'static FieldSpec,
) -> impl Strategy<Value = Option<(Name, Value)>> + use<> {
    let parts = (any::<bool>(), any::<u8>(), value(vocabulary, spec.kind));
    parts.prop_map(|(is_there, member, value)| {
        let name = match spec.name.strip_suffix('*') {
            Some(family) => format!("{family}{member}").into(),
            None => spec.name.into(),
        };
        (is_there || spec.is_required).then_some((name, value))
    })
}

type Name = std::borrow::Cow<'static, str>;

fn value(vocabulary: &Vocabulary, kind: ValueKind) -> BoxedStrategy<Value> {
    let (texts, counts) = (vocabulary.texts.clone(), vocabulary.counts.clone());
    match kind {
        ValueKind::Flag => prop_oneof![
            any::<bool>().prop_map(Value::Flag),
            select(vec!["yes", "no", "true", "false"]).prop_map(|word| Value::Text(word.into())),
        ]
        .boxed(),
        ValueKind::Count => prop_oneof![
            9 => counts.clone().prop_map(Value::Count),
            1 => counts.prop_map(|count| Value::Text(count.to_string())),
        ]
        .boxed(),
        // The whole ones are not stored as such where they are below 0.
        ValueKind::Real => prop_oneof![
            number()
                .prop_filter("JSON has no infinity", |real| real.is_finite())
                .prop_map(Value::Real),
            any::<u64>().prop_map(Value::Count),
            any::<i64>().prop_map(|whole| Value::Text(whole.to_string())),
        ]
        .boxed(),
        ValueKind::Text => texts.prop_map(Value::Text).boxed(),
        ValueKind::Choice(words) => prop_oneof![
            8 => select(words).prop_map(|word| Value::Text(word.into())),
            1 => texts.prop_map(Value::Text),
        ]
        .boxed(),
        ValueKind::List(of) => vec(value(vocabulary, *of), 0..3)
            .prop_map(Value::List)
            .boxed(),
        ValueKind::Group(specs) => fields(vocabulary, specs).prop_map(Value::Group).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    use super::*;

    proptest! {
        #[test]
        fn what_an_event_says_is_read_from_what_is_stored(body in event()) {
            let Body::Event { fact, payload } = &body else {
                return Err(TestCaseError::fail("no event"));
            };
            prop_assert_eq!(Body::read_event(fact, &payload.fields()), Ok(body.clone()));
        }

        #[test]
        fn every_mark_has_a_text(subject in subject(), body in event()) {
            if let Body::Event { fact, payload } = &body
                && let fact::show::Show::Marks(mark) = fact.show
                && let Some(mark) = mark(&subject, &**payload)
            {
                prop_assert!(mark.n > 0);
                prop_assert!(fact::show::LANES.contains(&mark.lane));
            }
        }
    }

    /// A field that is never drawn would be a field that no property test sees.
    #[test]
    fn every_field_of_every_fact_is_drawn() {
        let mut runner = TestRunner::deterministic();
        for fact in fact::all() {
            let Some(spec) = fact.payload else { continue };
            let events = event_of(fact);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..200 {
                let event = events.new_tree(&mut runner).expect("an event").current();
                let Body::Event { payload, .. } = event else {
                    panic!("{} is no event", fact.name);
                };
                seen.extend(payload.fields().into_iter().map(|(name, _)| name));
            }
            for field in spec.fields {
                let family = field.name.trim_end_matches('*');
                let is_seen = seen.iter().any(|name| name.starts_with(family));
                assert!(is_seen, "{} of {}", field.name, fact.name);
            }
        }
    }
}
