//! Links to the page that a node's own agent serves.

use sexton_lake::day_of;
use sexton_web::IncidentView;

/// Time around a finding that is shown.
const AROUND_US: i64 = 600_000_000;

/// Where in an address the name of the node goes.
const NODE: &str = "{node}";

/// The address of nodes' pages: `http://{node}:8642/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links(String);

impl Links {
    /// Reads the form of addresses.
    pub fn parse(form: &str) -> Result<Self, String> {
        let is_http = form.starts_with("http://") || form.starts_with("https://");
        match is_http && form.contains(NODE) && !form.contains('#') {
            true => Ok(Self(form.to_owned())),
            false => Err(format!(
                "{form:?} is no form of a node's address: write http://{NODE}:8642/"
            )),
        }
    }

    /// The page of a node.
    pub(super) fn page(&self, node: &str) -> String {
        self.0.replace(NODE, &encoded(node))
    }

    /// A finding on the page of a node: in the incident that it opened, or in the ring.
    pub(super) fn finding(&self, node: &str, finding: &Linked<'_>) -> String {
        let at_us = finding.opened_us.unwrap_or(finding.since_us);
        let (from, to) = (at_us - AROUND_US, at_us + AROUND_US);
        let incident = finding.opened_us.filter(|_| finding.is_serious);
        let source = incident.map_or(String::new(), |opened_us| {
            format!("source={}&", incident_id(opened_us, finding.code))
        });
        let id = encoded(finding.id);
        format!(
            "{}#{source}window={from}-{to}&finding={id}",
            self.page(node)
        )
    }
}

/// A finding that a link leads to.
pub(super) struct Linked<'a> {
    pub(super) id: &'a str,
    pub(super) code: &'a str,
    pub(super) since_us: i64,
    pub(super) opened_us: Option<i64>,
    pub(super) is_serious: bool,
}

/// The id of the incident that a finding opened, as the agent calls it.
fn incident_id(opened_us: i64, code: &str) -> String {
    let seconds = opened_us.div_euclid(1_000_000).rem_euclid(86_400);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let day = day_of(opened_us);
    IncidentView::id_of(&format!("{day}T{hours:02}{minutes:02}{seconds:02}Z-{code}"))
}

/// A text as part of an address. What a node calls itself must not lead elsewhere.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use sexton_model::wall::unix_ns;

    use super::*;

    #[test]
    fn a_serious_finding_leads_to_its_incident() {
        let links = Links::parse("http://{node}.example:8642/").unwrap();
        let opened_us = i64::try_from(unix_ns("2026-11-18T03:12:00Z").unwrap() / 1000).unwrap();
        let linked = |is_serious| Linked {
            id: "NIC001:eth0",
            code: "NIC001",
            since_us: opened_us,
            opened_us: Some(opened_us),
            is_serious,
        };
        let window = format!("{}-{}", opened_us - AROUND_US, opened_us + AROUND_US);
        assert_eq!(
            links.finding("web7", &linked(true)),
            format!(
                "http://web7.example:8642/#source=20261118t031200znic001&window={window}&finding=NIC001%3Aeth0"
            )
        );
        assert!(!links.finding("web7", &linked(false)).contains("source="));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let links = Links::parse("http://{node}:8642/").unwrap();
        assert_eq!(
            links.page("evil.example/?"),
            "http://evil.example%2F%3F:8642/"
        );
        for form in [
            "javascript:{node}",
            "http://web7:8642/",
            "http://{node}/#a",
            "{node}",
        ] {
            assert!(Links::parse(form).is_err(), "{form}");
        }
    }
}
