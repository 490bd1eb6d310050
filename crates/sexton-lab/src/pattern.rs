//! Ids of findings as scenarios write them: `*` stands for any text.

/// Whether all of `text` is as `pattern` says.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        // The part before is looked for as soon as one follows it: the last one must end it.
        if let Some(middle) = last.replace(part) {
            let Some(at) = rest.find(middle) else {
                return false;
            };
            rest = &rest[at + middle.len()..];
        }
    }
    last.map_or(rest.is_empty(), |end| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_is_any_text() {
        let check = |pattern, text, expected| {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        };
        check("UNIT001:a.service", "UNIT001:a.service", true);
        check("UNIT001:a", "UNIT001:a.service", false);
        check("MCG001:*", "MCG001:/docker/<id>", true);
        check("MCG001:*/docker*<id>*", "MCG001:/x/docker-<id>.scope", true);
        check("MCG001:*/docker*<id>", "MCG001:/x/docker-<id>.scope", false);
        check("*", "", true);
        check("a*a", "a", false);
        check("", "a", false);
    }
}
