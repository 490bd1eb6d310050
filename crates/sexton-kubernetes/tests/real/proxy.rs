//! A proxy in front of the API server that does to a connection what it is told to.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// What it does.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// Passes everything on.
    None,
    /// Closes each connection.
    Close,
    /// Passes it on after a while.
    Slow(Duration),
    /// Answers with this status, and the seconds of its Retry-After.
    Status(u16, Option<u64>),
}

pub struct Proxy {
    port: u16,
    fault: Arc<Mutex<Fault>>,
}

struct Ways {
    accept: TlsAcceptor,
    connect: TlsConnector,
    upstream: u16,
    fault: Arc<Mutex<Fault>>,
}

impl Proxy {
    /// One with the certificate of the API server.
    pub fn start(folder: &Path, upstream: u16) -> Self {
        let fault = Arc::new(Mutex::new(Fault::None));
        let ways = ways(folder, upstream, Arc::clone(&fault));
        let (send, port) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
                let port = listener.local_addr().expect("an address").port();
                send.send(port).expect("it is waited for");
                let ways = Arc::new(ways);
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(Arc::clone(&ways), stream));
                }
            });
        });
        let port = port.recv().expect("it starts");
        Self { port, fault }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn set(&self, fault: Fault) {
        *self.fault.lock().expect("no panic") = fault;
    }
}

fn ways(folder: &Path, upstream: u16, fault: Arc<Mutex<Fault>>) -> Ways {
    let certificates = |name: &str| -> Vec<CertificateDer<'static>> {
        let found = CertificateDer::pem_file_iter(folder.join(name)).expect("it is there");
        found.map(|it| it.expect("a certificate")).collect()
    };
    let provider = Arc::new(ring::default_provider());
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("a key");
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(certificates("server.crt"), key)
        .expect("a certificate");
    let mut roots = RootCertStore::empty();
    for root in certificates("ca.crt") {
        roots.add(root).expect("a root");
    }
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ways {
        accept: TlsAcceptor::from(Arc::new(server)),
        connect: TlsConnector::from(Arc::new(client)),
        upstream,
        fault,
    }
}

/// What breaks is told by the connection that ends.
async fn serve(ways: Arc<Ways>, stream: TcpStream) -> Option<()> {
    let fault = *ways.fault.lock().expect("no panic");
    if matches!(fault, Fault::Close) {
        return None;
    }
    let mut stream = ways.accept.accept(stream).await.ok()?;
    match fault {
        Fault::Status(status, retry_after) => {
            let mut request = [0; 65_536];
            stream.read(&mut request).await.ok()?;
            let retry = retry_after.map_or(String::new(), |it| format!("Retry-After: {it}\r\n"));
            let answer = format!("HTTP/1.1 {status} X\r\n{retry}Content-Length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.ok()?;
            stream.shutdown().await.ok()?;
        }
        Fault::Slow(time) => {
            tokio::time::sleep(time).await;
            pass(&ways, &mut stream).await?;
        }
        Fault::None | Fault::Close => pass(&ways, &mut stream).await?,
    }
    Some(())
}

async fn pass(ways: &Ways, stream: &mut tokio_rustls::server::TlsStream<TcpStream>) -> Option<()> {
    let upstream = TcpStream::connect(("127.0.0.1", ways.upstream))
        .await
        .ok()?;
    let name = ServerName::try_from("127.0.0.1").ok()?;
    let mut upstream = ways.connect.connect(name, upstream).await.ok()?;
    copy_bidirectional(stream, &mut upstream).await.ok()?;
    Some(())
}
