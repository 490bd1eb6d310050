//! The tables `[export.otlp]`, `[export.pyroscope]` and `[export.parca]` of the agent's configuration.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use sexton_http::Url;

use super::reader::{Entry, Reader, Wrong};

/// The least of `max_age`: shorter than this, a short break of the network would cost data.
const LEAST_AGE: Duration = Duration::from_secs(60);

/// Headers of a request, at most.
const MAX_HEADERS: usize = 16;

/// Headers that are ours.
const OURS: [&str; 5] = [
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
];

/// Where data is sent, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportConfig {
    pub otlp: Option<ReceiverConfig>,
    pub pyroscope: Option<ReceiverConfig>,
    pub parca: Option<ReceiverConfig>,
}

/// One receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverConfig {
    pub endpoint: Url,
    pub headers: Vec<(String, String)>,
    pub token_file: Option<PathBuf>,
    pub tls_ca: Option<PathBuf>,
    pub max_age: Duration,
    /// Of OTLP alone.
    pub metrics: bool,
    pub logs: bool,
    pub profiles: bool,
}

impl ExportConfig {
    /// Whether nothing is sent anywhere.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn key<'t>(&mut self, reader: &Reader<'t>, table: &Entry<'t>) -> Result<(), Wrong> {
        let hour = Duration::from_secs(3_600);
        match table.name() {
            "otlp" => self.otlp = Some(receiver(reader, table, true, 6 * hour)?),
            // It refuses what is older than an hour.
            "pyroscope" => {
                let max_age = hour - Duration::from_secs(120);
                self.pyroscope = Some(receiver(reader, table, false, max_age)?);
            }
            "parca" => self.parca = Some(receiver(reader, table, false, 6 * hour)?),
            "prometheus" => {
                let text = "[export.prometheus] has no keys: /metrics is served on [listen] http";
                return Err(reader.wrong(table, text));
            }
            name => {
                let text = format!(
                    "there is no table [export.{name}]; there are export.otlp, export.pyroscope, \
                     export.parca"
                );
                return Err(reader.wrong(table, text));
            }
        }
        Ok(())
    }
}

fn receiver<'t>(
    reader: &Reader<'t>,
    table: &Entry<'t>,
    is_otlp: bool,
    max_age: Duration,
) -> Result<ReceiverConfig, Wrong> {
    let mut endpoint = None;
    let mut config = ReceiverConfig {
        endpoint: Url {
            is_https: false,
            host: String::new(),
            port: 0,
            path: String::new(),
        },
        headers: Vec::new(),
        token_file: None,
        tls_ca: None,
        max_age,
        metrics: is_otlp,
        logs: is_otlp,
        profiles: true,
    };
    reader.each(table, |key| {
        match key.name() {
            "endpoint" => {
                let url = reader.text(key)?.parse();
                let url = url.map_err(|why: String| reader.wrong(key, format!("endpoint: {why}")));
                endpoint = Some(url?);
            }
            "headers" => config.headers = headers(reader, key)?,
            "token_file" => config.token_file = Some(reader.path(key)?),
            "tls_ca" => config.tls_ca = Some(reader.path(key)?),
            "max_age" => config.max_age = reader.time(key, LEAST_AGE)?,
            "metrics" if is_otlp => config.metrics = reader.truth(key)?,
            "logs" if is_otlp => config.logs = reader.truth(key)?,
            "profiles" if is_otlp => config.profiles = reader.truth(key)?,
            _ => {
                let known = match is_otlp {
                    true => {
                        "endpoint, headers, token_file, tls_ca, max_age, metrics, logs, profiles"
                    }
                    false => "endpoint, headers, token_file, tls_ca, max_age",
                };
                return Err(reader.unknown(key, known));
            }
        }
        Ok(())
    })?;
    let name = table.name();
    config.endpoint = endpoint.ok_or_else(|| {
        let text = format!("[export.{name}] has no endpoint, such as \"http://127.0.0.1:4318\"");
        reader.wrong(table, text)
    })?;
    check(&config).map_err(|text| reader.wrong(table, format!("[export.{name}]: {text}")))?;
    Ok(config)
}

/// What no key tells by itself.
fn check(config: &ReceiverConfig) -> Result<(), &'static str> {
    let host = config.endpoint.host.as_str();
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    let is_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    if config.token_file.is_some() && !config.endpoint.is_https && !is_loopback {
        return Err("the token would be sent unencrypted: write the endpoint with https://");
    }
    if config.tls_ca.is_some() && !config.endpoint.is_https {
        return Err("tls_ca is of no use without https:// in the endpoint");
    }
    if !(config.metrics || config.logs || config.profiles) {
        return Err("metrics, logs and profiles are all false: remove the table");
    }
    Ok(())
}

fn headers<'t>(reader: &Reader<'t>, table: &Entry<'t>) -> Result<Vec<(String, String)>, Wrong> {
    let mut headers = Vec::new();
    reader.each(table, |key| {
        let (name, value) = (key.name().to_ascii_lowercase(), reader.text(key)?);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(reader.wrong(key, format!("{name:?} is no name of a header")));
        }
        if OURS.contains(&name.as_str()) {
            let text = format!("the header {name} is set by sexton; name a token with token_file");
            return Err(reader.wrong(key, text));
        }
        if value.chars().any(char::is_control) {
            let text = format!("the header {name} should be one line of text");
            return Err(reader.wrong(key, text));
        }
        headers.push((name, value));
        match headers.len() > MAX_HEADERS {
            true => Err(reader.wrong(key, format!("more than {MAX_HEADERS} headers"))),
            false => Ok(()),
        }
    })?;
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn check(text: &str, line: usize, why: &str) {
        let wrong = Config::parse(text).expect_err("it is wrong");
        assert_eq!(wrong.line, line, "{}", wrong.text);
        assert!(wrong.text.contains(why), "{}", wrong.text);
    }

    #[test]
    fn every_key_of_an_export_is_taken() {
        let config = Config::parse(
            r#"
[export.otlp]
endpoint = "https://otel.example:4318/otlp/"
headers = { X-Tenant = "a" }
token_file = "/etc/sexton/otlp.token"
tls_ca = "/etc/sexton/ca.pem"
max_age = "2h"
logs = false
[export.pyroscope]
endpoint = "http://127.0.0.1:4040"
[export.parca]
endpoint = "http://parca:7070"
"#,
        );
        let export = config.expect("it is right").export;
        let otlp = export.otlp.expect("OTLP");
        assert_eq!(otlp.endpoint.path, "/otlp");
        assert_eq!(otlp.headers, [("x-tenant".to_owned(), "a".to_owned())]);
        assert_eq!(
            (otlp.metrics, otlp.logs, otlp.profiles),
            (true, false, true)
        );
        assert_eq!(otlp.max_age.as_secs(), 7_200);
        let pyroscope = export.pyroscope.expect("Pyroscope");
        assert!(pyroscope.max_age.as_secs() < 3_600);
        assert!(!pyroscope.metrics && pyroscope.profiles);
        assert!(export.parca.is_some());
    }

    #[test]
    fn what_is_wrong_with_an_export_is_named() {
        check("[export.tempo]\n", 1, "there is no table [export.tempo]");
        check("[export.prometheus]\n", 1, "/metrics is served");
        check("[export]\notlp = 1\n", 2, "otlp should be a table");
        check("[export.otlp]\nlogs = true\n", 1, "has no endpoint");
        let with = |line: &str| format!("[export.otlp]\nendpoint = \"http://otel:4318\"\n{line}\n");
        check(&with("port = 1"), 3, "there is no key port");
        check(&with("metrics = 1"), 3, "true or false");
        check(&with("max_age = \"1s\""), 3, "the least is");
        check(&with("token_file = \"/t\""), 1, "unencrypted");
        check(&with("tls_ca = \"/t\""), 1, "without https");
        check(
            &with("headers = { authorization = \"x\" }"),
            3,
            "token_file",
        );
        check(
            &with("headers = { \"a b\" = \"x\" }"),
            3,
            "no name of a header",
        );
        check(&with("headers = { a = \"x\\ny\" }"), 3, "one line of text");
        check(
            &with("metrics = false\nlogs = false\nprofiles = false"),
            1,
            "remove the table",
        );
        check(
            "[export.parca]\nendpoint = \"parca:7070\"\n",
            2,
            "http://HOST:PORT",
        );
        check(
            "[export.parca]\nendpoint = \"http://p\"\nlogs = true\n",
            3,
            "no key logs",
        );
    }
}
