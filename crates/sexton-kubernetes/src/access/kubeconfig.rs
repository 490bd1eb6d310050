//! Reads a kubeconfig: the current context, its cluster and its user.

use std::path::Path;

use serde::Deserialize;
use sexton_http::{Identity, Part, Server, Trust};

use super::Access;
use crate::error::KubernetesError;

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "current-context", default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<Named<ContextOf>>,
    #[serde(default)]
    clusters: Vec<Named<ClusterOf>>,
    #[serde(default)]
    users: Vec<Named<UserOf>>,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(flatten)]
    of: T,
}

#[derive(Deserialize)]
struct ContextOf {
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct ClusterOf {
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
}

#[derive(Deserialize)]
struct UserOf {
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
}

pub(super) fn read(path: &Path, text: &str) -> Result<Access, KubernetesError> {
    let wrong = |why: String| KubernetesError::unusable(path.display().to_string(), why);
    let config: Config = serde_saphyr::from_str(text)
        .map_err(|error| wrong(first_line(&error.to_string()).to_owned()))?;
    let context = find(&config.contexts, &config.current_context)
        .ok_or_else(|| wrong(format!("no context {:?}", config.current_context)))?;
    let context = &context.context;
    let cluster = find(&config.clusters, &context.cluster)
        .ok_or_else(|| wrong(format!("no cluster {:?}", context.cluster)))?;
    let user = find(&config.users, &context.user)
        .ok_or_else(|| wrong(format!("no user {:?}", context.user)))?;
    let (cluster, user) = (&cluster.cluster, &user.user);
    let (is_https, host, port) = reachable(cluster).map_err(wrong)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let part = |file: &Option<String>, data: &Option<String>| -> Result<_, KubernetesError> {
        match (data, file) {
            (Some(data), _) => base64(data)
                .map(|bytes| Some(Part::Given(bytes)))
                .ok_or_else(|| wrong("a …-data is no base64".into())),
            (None, Some(file)) => Ok(Some(Part::File(folder.join(file)))),
            (None, None) => Ok(None),
        }
    };
    let authority = part(
        &cluster.certificate_authority,
        &cluster.certificate_authority_data,
    )?;
    if is_https && authority.is_none() {
        return Err(wrong("the cluster has no certificate-authority".into()));
    }
    let chain = part(&user.client_certificate, &user.client_certificate_data)?;
    let key = part(&user.client_key, &user.client_key_data)?;
    let identity = match (&user.token_file, &user.token, chain, key) {
        (Some(file), ..) => Identity::Token(Part::File(folder.join(file))),
        (None, Some(token), ..) => Identity::Token(Part::Given(token.clone().into_bytes())),
        (None, None, Some(chain), Some(key)) => Identity::Certificate { chain, key },
        (None, None, None, None) if !is_https => Identity::Anonymous,
        _ => {
            return Err(wrong(format!(
                "the user {:?} has neither a token nor a client certificate with its key",
                context.user
            )));
        }
    };
    let authority = authority.filter(|_| is_https);
    Ok(Access {
        server: Server {
            host,
            port,
            trust: authority.map_or(Trust::Plain, Trust::Authority),
            server_name: cluster.tls_server_name.clone(),
            identity,
        },
    })
}

/// Whether the server speaks TLS, its name and its port; or why sexton does not talk to it.
fn reachable(cluster: &Cluster) -> Result<(bool, String, u16), String> {
    let (is_https, host, port) = server(&cluster.server)
        .ok_or_else(|| format!("server {:?} is no address", cluster.server))?;
    // What is not encrypted goes to a proxy of this node at most.
    let is_loopback = matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
    if !is_https && !is_loopback {
        return Err(format!("server {:?} is not https", cluster.server));
    }
    if cluster.insecure_skip_tls_verify {
        return Err(
            "insecure-skip-tls-verify is not supported; name the certificate-authority".into(),
        );
    }
    Ok((is_https, host, port))
}

fn find<'a, T>(list: &'a [Named<T>], name: &str) -> Option<&'a T> {
    let named = list.iter().find(|named| named.name == name)?;
    Some(&named.of)
}

/// `https://host:port`, whatever path follows it.
fn server(url: &str) -> Option<(bool, String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let is_https = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    let usual = if is_https { 443 } else { 80 };
    Some((is_https, host, uri.port_u16().unwrap_or(usual)))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// Standard base64 with its padding, as kubeconfigs have it.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    if !text.len().is_multiple_of(4) {
        return None;
    }
    for four in text.chunks(4) {
        let n_padding = four.iter().rev().take_while(|c| **c == b'=').count();
        if n_padding > 2 {
            return None;
        }
        let mut bits = 0_u32;
        for c in four {
            bits = bits << 6 | u32::from(if *c == b'=' { 0 } else { sextet(*c)? });
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - n_padding]);
    }
    Some(out)
}

fn sextet(c: u8) -> Option<u8> {
    Some(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBELET: &str = "\
apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster:
    certificate-authority-data: aGVsbG8=
    server: https://[fd00::1]:6443/prefix
contexts:
- name: default-context
  context: {cluster: default-cluster, namespace: default, user: default-auth}
current-context: default-context
users:
- name: default-auth
  user:
    client-certificate: pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
";

    fn check(text: &str, why: &str) {
        let read = read(Path::new("/etc/kubernetes/kubelet.conf"), text);
        let error = read.expect_err("it is wrong").to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn the_kubelets_own_is_read() {
        let access = read(Path::new("/etc/kubernetes/kubelet.conf"), KUBELET).expect("it is good");
        assert_eq!(
            (access.server.host.as_str(), access.server.port),
            ("fd00::1", 6443)
        );
        assert_eq!(access.server(), "[fd00::1]:6443");
        let authority = Trust::Authority(Part::Given(b"hello".to_vec()));
        assert_eq!(access.server.trust, authority);
        let Identity::Certificate { chain, key } = access.server.identity else {
            panic!("{access:?}");
        };
        let file = |path: &str| Part::File(path.into());
        assert_eq!(
            chain,
            file("/etc/kubernetes/pki/kubelet-client-current.pem")
        );
        assert_eq!(key, file("/var/lib/kubelet/pki/kubelet-client-current.pem"));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        check("[", "kubelet.conf");
        check(
            &KUBELET.replace("current-context: default-context", ""),
            "no context",
        );
        check(
            &KUBELET.replace("https://[fd00::1]:6443", "ftp://x"),
            "is no address",
        );
        check(&KUBELET.replace("https://", "http://"), "is not https");
        check(&KUBELET.replace("aGVsbG8=", "aGVsbG8"), "no base64");
        let skips = KUBELET.replace(
            "certificate-authority-data: aGVsbG8=",
            "insecure-skip-tls-verify: true",
        );
        check(&skips, "insecure-skip-tls-verify is not supported");
        check(&KUBELET.replace("client-key:", "other:"), "neither a token");
    }

    #[test]
    fn base64_of_every_length() {
        for (text, bytes) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc")] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["Y", "Y===", "====", "Y-=="] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
