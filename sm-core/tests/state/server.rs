//! A real etcd-server on loopback, with ports and a data directory of its own. Ends with the value.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mad::types::Guid;
use sm_core::store::StateStore;
use sm_core::store::etcd::{Etcd, EtcdConfig};
use tempfile::TempDir;

use crate::PATIENCE;

/// A server that can be killed, started again, and wiped.
pub(crate) struct Server {
    dir: TempDir,
    client: String,
    peer: String,
    child: Option<Child>,
    /// Certificate of who signs the server's, where it has one.
    ca: Option<Vec<u8>>,
}

/// Makes a certificate that signs, `NAME-ca.pem`, and one that it signs, `NAME.pem` with `NAME.key`, for 127.0.0.1.
pub(crate) fn certificates(folder: &Path, name: &str) {
    let line = format!(
        "exec 2>&1; set -e
        ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $ec -days 36500 -subj /CN={name}-ca -keyout {name}-ca.key -out {name}-ca.pem
        openssl req $ec -subj /CN={name} -keyout {name}.key -out {name}.csr
        printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' >{name}.ext
        openssl x509 -req -days 36500 -in {name}.csr -extfile {name}.ext -CA {name}-ca.pem -CAkey {name}-ca.key \
          -CAcreateserial -out {name}.pem"
    );
    let made = Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stdout));
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

impl Server {
    /// Not yet running.
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            client: free_url(),
            peer: free_url(),
            child: None,
            ca: None,
        }
    }

    /// One that is reached by TLS alone.
    pub(crate) fn running_with_tls() -> Self {
        let mut server = Self::new();
        certificates(server.dir.path(), "etcd");
        server.client = server.client.replace("http:", "https:");
        server.ca = Some(std::fs::read(server.dir.path().join("etcd-ca.pem")).unwrap());
        server.start();
        server
    }

    pub(crate) fn running() -> Self {
        let mut server = Self::new();
        server.start();
        server
    }

    /// Starts it and waits until it answers.
    pub(crate) fn start(&mut self) {
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(self.dir.path().join("data"))
            .args(["--listen-client-urls", &self.client, "--advertise-client-urls", &self.client])
            .args(["--listen-peer-urls", &self.peer, "--initial-advertise-peer-urls", &self.peer])
            .args(["--initial-cluster", &format!("default={}", self.peer)])
            .args(self.ca.iter().flat_map(|_| ["--cert-file", "etcd.pem", "--key-file", "etcd.key"]))
            .current_dir(self.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd does not start; the README's second command installs it");
        self.child = Some(child);
        let mut store = self.store(Guid(0xffff));
        let end = Instant::now() + PATIENCE;
        while store.probe().is_err_and(|error| !error.to_string().contains("refuses")) {
            assert!(Instant::now() < end, "etcd does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// A call of etcd's JSON gateway that must succeed.
    pub(crate) fn call(&self, path: &str, body: &str) {
        ureq::post(format!("{}/v3/{path}", self.client)).send(body).unwrap();
    }

    /// Everything in it is deleted.
    pub(crate) fn wipe(&self) {
        self.call("kv/deleterange", r#"{"key": "AA==", "range_end": "AA=="}"#);
    }

    pub(crate) fn config(&self, own: Guid) -> EtcdConfig {
        EtcdConfig {
            endpoints: vec![self.client.clone()],
            prefix: "/rsm".into(),
            user: None,
            ca: self.ca.clone(),
            lease: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            own,
            incarnation: own.0 << 8,
        }
    }

    pub(crate) fn store(&self, own: Guid) -> Etcd {
        Etcd::new(&self.config(own)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
