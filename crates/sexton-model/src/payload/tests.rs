use super::*;

crate::choice! {
    /// How.
    pub enum How {
        /// Well.
        Well = "well",
        /// Badly.
        Badly = "badly",
    }
}

crate::payload! {
    /// A part.
    pub struct Part {
        /// Its name.
        pub name: String,
    }
    /// A whole.
    @from_old(from_old)
    pub struct Whole {
        /// How many.
        pub n: u64,
        /// How it went.
        pub how: Option<How>,
        /// Its parts.
        pub parts: Vec<Part>,
        /// How much of it.
        pub share: Option<f64>,
    }
}

fn from_old(fields: &Fields) -> Fields {
    let rename = |(name, value): &(Cow<'static, str>, Value)| match &**name {
        "number" => ("n".into(), value.clone()),
        _ => (name.clone(), value.clone()),
    };
    fields.iter().map(rename).collect()
}

#[test]
fn what_is_put_can_be_taken() {
    let whole = Whole {
        n: 3,
        how: Some(How::Badly),
        parts: vec![Part { name: "a".into() }, Part { name: "b".into() }],
        share: None,
    };
    let fields = whole.fields();
    let names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["n", "how", "parts"]);
    assert_eq!(Whole::read(&fields), Ok(whole));
}

#[test]
fn text_of_older_recordings_is_read() {
    let old = vec![
        ("number".into(), Value::Text("7".into())),
        ("share".into(), Value::Text("0.25".into())),
        ("how".into(), Value::Text("some new way".into())),
    ];
    let read = Whole::read(&old).expect("it fits");
    assert_eq!((read.n, read.share, read.how), (7, Some(0.25), None));
}

#[test]
fn what_must_be_there_is_named_when_it_is_not() {
    let none = Whole::read(&Fields::new());
    assert_eq!(none, Err(Malformed { field: "n" }));
    let shape: Vec<String> = Whole::FIELDS
        .iter()
        .map(|field| format!("{}: {}", field.name, field.kind))
        .collect();
    assert_eq!(
        shape,
        [
            "n: whole number",
            "how: one of well, badly",
            "parts: list of group of name",
            "share: number"
        ]
    );
}
