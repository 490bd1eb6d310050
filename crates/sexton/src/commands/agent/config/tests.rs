//! What is right is taken; what is wrong is named by line and key.

use super::*;
use sexton_lake::Redact;
use sexton_model::finding::Severity;

fn wrong(text: &str) -> (usize, String) {
    let wrong = Config::parse(text).expect_err("it is wrong");
    (wrong.line, wrong.text)
}

#[test]
fn without_a_word_the_defaults_hold() {
    assert_eq!(Config::parse(""), Ok(Config::default()));
}

fn tls_files() -> TlsFiles {
    TlsFiles {
        cert: "/etc/sexton/tls.crt".into(),
        key: "/etc/sexton/tls.key".into(),
    }
}

#[test]
fn every_key_is_taken() {
    let config = Config::parse(
        r#"
[ring]
path = "/srv/ring"
max_size = "500MiB"
max_age = "12h"
incidents_max = 3
incidents_size = "100MiB"
[listen]
socket = "/tmp/a.sock"
http = "0.0.0.0:9"
token_file = "/etc/sexton/token"
tls_cert = "/etc/sexton/tls.crt"
tls_key = "/etc/sexton/tls.key"
[sensors]
off = ["stacks"]
hz = 49
every = { cores = "1s" }
btf = "/usr/lib/sexton/btf"
[budget]
cpu_percent = 2.5
memory = "64MiB"
[judge]
policy = "/etc/sexton/policy.toml"
[kubernetes]
enabled = true
node = "worker-1.example"
kubeconfig = "/etc/kubernetes/kubelet.conf"
severity = "serious"
runbooks = "https://wiki.example/sexton/"
"#,
    );
    let expected = Config {
        ring: "/srv/ring".into(),
        max_size: 500 << 20,
        max_age: Duration::from_secs(12 * 3600),
        incidents_max: 3,
        incidents_size: 100 << 20,
        socket: Some("/tmp/a.sock".into()),
        http: Some(SocketAddr::from(([0, 0, 0, 0], 9))),
        token_file: Some("/etc/sexton/token".into()),
        tls: Some(tls_files()),
        off: vec!["stacks".into()],
        hz: 49,
        every: vec![("cores".into(), Duration::from_secs(1))],
        btf: Some("/usr/lib/sexton/btf".into()),
        cpu_percent: 2.5,
        memory: 64 << 20,
        policy: Some("/etc/sexton/policy.toml".into()),
        kubernetes: KubernetesConfig {
            enabled: true,
            node: Some("worker-1.example".into()),
            kubeconfig: Some("/etc/kubernetes/kubelet.conf".into()),
            severity: Severity::Serious,
            runbooks: "https://wiki.example/sexton/".into(),
        },
        ..Config::default()
    };
    assert_eq!(config, Ok(expected));
}

#[test]
fn signatures_are_one_place_or_several() {
    let signatures = |text: &str| Config::parse(text).expect("right").signatures;
    let one = signatures("[judge]\nsignatures = \"/a\"\n");
    assert_eq!(one, [Path::new("/a")]);
    let several = signatures("[judge]\nsignatures = [\"/a\", \"/b.toml\"]\n");
    assert_eq!(several, [Path::new("/a"), Path::new("/b.toml")]);
}

#[test]
fn every_key_of_the_fleet_is_taken() {
    let config = Config::parse(
        r#"
[fleet]
lake = "s3://reports/prod"
every = "30m"
labels = { zone = "us-east-1a", team = "ml" }
node = "web7"
redact = ["subjects"]
"#,
    );
    let expected = FleetConfig {
        lake: Some("s3://reports/prod".into()),
        every: Duration::from_secs(1800),
        labels: [("zone", "us-east-1a"), ("team", "ml")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        node: Some("web7".into()),
        redact: Redact {
            node: false,
            subjects: true,
        },
    };
    assert_eq!(config.map(|config| config.fleet), Ok(expected));
}

#[test]
fn nothing_is_served_where_the_address_is_empty() {
    let config = Config::parse("[listen]\nhttp = \"\"\nsocket = \"\"\n").expect("it is right");
    assert_eq!((config.http, config.socket), (None, None));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, named) in [
        ("[ring]\n\npaht = \"/a\"\n", 3, "paht"),
        ("[rong]\n", 1, "rong"),
        ("[ring]\nmax_size = \"1KiB\"\n", 2, "max_size"),
        ("[ring]\nmax_size = true\n", 2, "500MiB"),
        ("[ring]\nmax_age = \"week\"\n", 2, "max_age"),
        ("[budget]\ncpu_percent = 0\n", 2, "cpu_percent"),
        ("[budget]\ncpu_percent = \"much\"\n", 2, "number"),
        ("[kubernetes]\nenabled = \"yes\"\n", 2, "true or false"),
        ("[kubernetes]\nnode = \"../pods\"\n", 2, "no name of a node"),
        ("[kubernetes]\nseverity = \"bad\"\n", 2, "severity"),
        ("[sensors]\noff = [\"eyes\"]\n", 2, "eyes"),
        ("[sensors]\nevery = { cores = \"1ms\" }\n", 2, "cores"),
        ("[sensors]\nhz = 0\n", 2, "hz"),
        ("[listen]\nhttp = \"here\"\n", 2, "here"),
        ("[listen]\nhttp = \"0.0.0.0:8642\"\n", 2, "token_file"),
        ("[listen]\ntls_cert = \"/a\"\n", 2, "tls_key"),
        ("[judge]\nsignatures = 3\n", 2, "text"),
        ("[judge]\nsignatures = [3]\n", 2, "list of texts"),
        ("[fleet]\nlake = \"ftp://a\"\n", 2, "s3://bucket"),
        ("[fleet]\nlake = \"s3://\"\n", 2, "s3://bucket"),
        ("[fleet]\nevery = \"7m\"\n", 2, "divide an hour"),
        ("[fleet]\nevery = \"90m\"\n", 2, "divide a day"),
        ("[fleet]\nevery = \"1s\"\n", 2, "least"),
        ("[fleet]\nlabels = { zone = \"\" }\n", 2, "a value"),
        ("[fleet]\nredact = [\"kernel\"]\n", 2, "node or subjects"),
        ("ring = 3\n", 1, "table"),
        ("[ring\n", 1, ""),
    ] {
        let (at, said) = wrong(text);
        assert!(said.contains(named), "{text:?}: {said}");
        assert_eq!(at, line, "{text:?}: {said}");
    }
}
