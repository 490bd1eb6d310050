//! An API server and its store, for as long as a value lives.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sexton_kubernetes::Access;
use sexton_testkit::TempTree;

use crate::proxy::Proxy;

const ADMIN: &str = "admin-of-this-test";

/// Where the programs are: `cargo xtask lab kubernetes` builds them and says it.
const PROGRAMS: &str = "SEXTON_KUBERNETES";

pub struct Cluster {
    children: Vec<Child>,
    port: u16,
    pub proxy: Proxy,
    tree: TempTree,
}

impl Cluster {
    pub fn start() -> Self {
        let programs = std::env::var_os(PROGRAMS).map(PathBuf::from);
        let programs = programs.expect("run this by `cargo xtask lab kubernetes`");
        let tree = TempTree::new();
        let folder = tree.path();
        certificates(folder);
        let users = format!("{ADMIN},admin,1,system:masters\n");
        fs::write(folder.join("users.csv"), users).expect("it is written");
        let (client, peer, port) = (free_port(), free_port(), free_port());
        let etcd = Command::new(programs.join("etcd"))
            .arg("--data-dir")
            .arg(folder.join("etcd"))
            .arg(format!("--listen-client-urls=http://127.0.0.1:{client}"))
            .arg(format!("--advertise-client-urls=http://127.0.0.1:{client}"))
            .arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"))
            .arg(format!(
                "--initial-advertise-peer-urls=http://127.0.0.1:{peer}"
            ))
            .arg(format!("--initial-cluster=default=http://127.0.0.1:{peer}"))
            .stdout(Stdio::null())
            .stderr(log(folder, "etcd.log"))
            .spawn()
            .expect("etcd starts");
        let key = programs.join("signing.key");
        let key = key.display();
        let file = |name: &str| folder.join(name).display().to_string();
        let server = Command::new(programs.join("kube-apiserver"))
            .arg(format!("--etcd-servers=http://127.0.0.1:{client}"))
            .args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC"])
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={}", file("certs")))
            .arg(format!("--tls-cert-file={}", file("server.crt")))
            .arg(format!("--tls-private-key-file={}", file("server.key")))
            .arg(format!("--token-auth-file={}", file("users.csv")))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--service-account-signing-key-file={key}"))
            .arg(format!("--service-account-key-file={key}"))
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--service-cluster-ip-range=10.99.0.0/24")
            .stdout(Stdio::null())
            .stderr(log(folder, "apiserver.log"))
            .spawn()
            .expect("the API server starts");
        let proxy = Proxy::start(folder, port);
        let cluster = Self {
            children: vec![server, etcd],
            port,
            proxy,
            tree,
        };
        cluster.wait_until_ready();
        cluster
    }

    fn wait_until_ready(&self) {
        let began = Instant::now();
        while self.try_kubectl(&["get", "--raw", "/readyz"]).trim() != "ok" {
            let log = fs::read_to_string(self.tree.path().join("apiserver.log"));
            let log = log.unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(5).collect();
            assert!(began.elapsed() < Duration::from_secs(120), "{tail:#?}");
            std::thread::sleep(Duration::from_millis(200));
        }
        println!(
            "API server ready after {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }

    /// A node as a kubelet registers it.
    pub fn make_node(&self, name: &str) {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        self.post("/api/v1/nodes", &node);
        let ready = json!({ "status": { "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is",
            "lastHeartbeatTime": "2026-11-18T00:00:00Z",
            "lastTransitionTime": "2026-11-18T00:00:00Z",
        }]}});
        let path = format!("/api/v1/nodes/{name}/status");
        self.curl(
            "PATCH",
            &path,
            Some(("application/strategic-merge-patch+json", &ready)),
        );
    }

    /// The way that the agent takes: the token of its service account, through the proxy.
    pub fn access_of_service_account(&self) -> Access {
        let token = self.token_file();
        if !token.exists() {
            let path = "/api/v1/namespaces/sexton/serviceaccounts/sexton/token";
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": { "expirationSeconds": 3_600 },
            });
            let made = self.post(path, &request);
            let made = made["status"]["token"]
                .as_str()
                .expect("a token")
                .to_owned();
            fs::write(&token, made).expect("it is written");
        }
        let config = self.kubeconfig("agent", self.proxy.port(), &json!({ "tokenFile": token }));
        Access::kubeconfig(&config).expect("it is good")
    }

    pub fn token_file(&self) -> PathBuf {
        self.tree.path().join("token")
    }

    fn kubeconfig(&self, name: &str, port: u16, user: &Value) -> PathBuf {
        let path = self.tree.path().join(format!("{name}.kubeconfig"));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": "ca.crt",
            }}],
            "users": [{ "name": "u", "user": user }],
        });
        fs::write(&path, config.to_string()).expect("it is written");
        path
    }

    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> String {
        let done = self.run_kubectl(args);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "kubectl {args:?}: {said}{error}");
        said
    }

    pub fn try_kubectl(&self, args: &[&str]) -> String {
        String::from_utf8_lossy(&self.run_kubectl(args).stdout).into_owned()
    }

    fn run_kubectl(&self, args: &[&str]) -> Output {
        let config = self.kubeconfig("admin", self.port, &json!({ "token": ADMIN }));
        Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(config)
            .args(args)
            .env("HOME", self.tree.path())
            .output()
            .expect("kubectl runs; the set-up of the lab installs it")
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let said = self.kubectl(&["get", "--raw", path]);
        serde_json::from_str(&said).expect("JSON")
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.curl("POST", path, Some(("application/json", body)))
    }

    #[track_caller]
    fn curl(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Value {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail-with-body", "-X", method, "--cacert"])
            .arg(self.tree.path().join("ca.crt"))
            .args(["-H", &format!("Authorization: Bearer {ADMIN}")]);
        if let Some((kind, body)) = body {
            curl.args([
                "-H",
                &format!("Content-Type: {kind}"),
                "-d",
                &body.to_string(),
            ]);
        }
        let done = curl
            .arg(format!("https://127.0.0.1:{}{path}", self.port))
            .output();
        let done = done.expect("curl runs");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{method} {path}: {said}");
        serde_json::from_str(&said).expect("JSON")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn log(folder: &Path, name: &str) -> fs::File {
    fs::File::create(folder.join(name)).expect("a log")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("an address").port()
}

/// An authority and a certificate for 127.0.0.1.
fn certificates(folder: &Path) {
    let script = r#"
set -e
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout server.key -out server.csr
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.crt
"#;
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .output();
    let done = done.expect("sh runs");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
}
