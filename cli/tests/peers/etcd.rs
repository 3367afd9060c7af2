//! Two managers that share nothing but an etcd: the standby has no copy over the fabric, and takes over with what etcd holds.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;
use crate::program::{Running, wait_until};

/// An etcd-server on loopback. Ends with the value.
struct Etcd {
    _dir: TempDir,
    address: String,
    child: Child,
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

impl Etcd {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let (address, peer) = (free_address(), format!("http://{}", free_address()));
        let client = format!("http://{address}");
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd does not start; the README's second command installs it");
        let etcd = Self { _dir: dir, address, child };
        wait_until("etcd answers", || etcd.entries().is_some());
        etcd
    }

    /// Entries below `/rsm/`.
    fn entries(&self) -> Option<usize> {
        let body = r#"{"key": "L3JzbS8=", "range_end": "L3JzbTA=", "count_only": true}"#;
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let head = format!(
            "POST /v3/kv/range HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        if !answer.starts_with("HTTP/1.1 200") {
            return None;
        }
        let count = answer.split_once("\"count\":\"").map_or("0", |(_, rest)| rest);
        count.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn manager(emulator: &Emulator, node: &str, priority: u8, etcd: &Etcd) -> Running {
    let mut command = emulator.command(node, env!("CARGO_BIN_EXE_rsm"));
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    let config = format!(
        "[sm]\npriority = {priority}\npolling_interval_ms = 200\npolling_retries = 2\n[state]\ndir = \"state\"\n\
         [etcd]\nendpoints = [\"http://{}\"]\nlease_s = 2\n",
        etcd.address
    );
    fs::write(folder.join("rsm.toml"), config).expect("configuration");
    command.args(["run", "--config", "rsm.toml"]);
    Running::start(command)
}

#[test]
fn a_standby_takes_over_with_what_its_killed_master_wrote_to_etcd() {
    let etcd = Etcd::start();
    let emulator = Emulator::start(Net::own("tree36.net"));
    let master = manager(&emulator, "H0", 5, &etcd);
    wait_until("the fabric is up", || master.out().contains("fabric is up"));
    // A LID for each of 36 hosts and 9 switches, and what goes with them.
    wait_until("etcd holds the state", || etcd.entries().is_some_and(|count| count > 45));
    let standby = manager(&emulator, "H35", 3, &etcd);
    wait_until("it stands by", || standby.err().contains("our role role=Standby"));
    let groups = || emulator.run("H5", "saquery", &["-g"]).ok();
    let before = groups();
    master.signal("KILL");
    assert_eq!(master.finish().code, None);
    wait_until("the standby is master", || standby.out().contains("fabric is up"));
    assert!(
        standby.err().contains("taking over with the copy of the master's state ports=45"),
        "{}",
        standby.err()
    );
    assert!(standby.out().contains("0 LIDs new, 45 Sets"), "{}", standby.out());
    assert_eq!(groups(), before);
    assert_eq!(standby.stop().code, Some(0));
}
