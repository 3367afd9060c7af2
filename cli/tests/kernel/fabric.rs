//! The emulated fabric with its hosts in the kernel.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::tools::{must, read, wait_for};

/// Where the emulator's socket is.
const DIRECTORY: &str = "/tmp/emulator";

/// A host: an adapter of the kernel.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number from 1 on; H1 and so on in the topology.
    pub(crate) number: usize,
    /// The kernel's name of the adapter.
    pub(crate) device: String,
    /// Port GUID in the form `0x…`.
    pub(crate) guid: String,
}

impl Host {
    /// A file of its port in sysfs.
    pub(crate) fn port(&self, file: &str) -> String {
        read(&format!("/sys/class/infiniband/{}/ports/1/{file}", self.device))
    }

    /// Its LID.
    pub(crate) fn lid(&self) -> u16 {
        u16::from_str_radix(self.port("lid").trim_start_matches("0x"), 16).unwrap_or(0)
    }

    /// Waits for its port's state.
    pub(crate) fn wait_for_state(&self, state: &str) {
        wait_for(&format!("{} {state}", self.device), || {
            let is = self.port("state");
            if is.ends_with(state) { Ok(()) } else { Err(is) }
        });
    }
}

/// The fabric.
pub(crate) struct Fabric {
    emulator: Child,
    /// Its hosts.
    pub(crate) hosts: Vec<Host>,
}

impl Fabric {
    /// Starts the emulator, with all hosts in the kernel.
    pub(crate) fn start() -> Self {
        let nodes: Vec<String> = (1..=8).map(|number| format!("H{number}")).collect();
        let mut emulator = Command::new("rsm")
            .args(["emulate", "/tree.net", "--dir", DIRECTORY, "--kernel", &nodes.join(",")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("rsm emulate");
        let mut lines = BufReader::new(emulator.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let names = first.strip_prefix("# Adapters of the kernel: ").unwrap_or_else(|| panic!("{first}"));
        let names: Vec<&str> = names.split(' ').collect();
        assert_eq!(names.len(), nodes.len(), "{first}");
        let host = |(index, device): (usize, &&str)| {
            let gid = read(&format!("/sys/class/infiniband/{device}/ports/1/gids/0"));
            let guid = gid.split(':').skip(4).collect::<String>();
            Host { number: index + 1, device: (*device).to_owned(), guid: format!("0x{guid}") }
        };
        let hosts = names.iter().enumerate().map(host).collect();
        Self { emulator, hosts }
    }

    /// Waits until all hosts are in use.
    pub(crate) fn wait_until_active(&self) {
        self.hosts.iter().for_each(|host| host.wait_for_state("ACTIVE"));
    }

    /// A line of the emulator's console.
    pub(crate) fn console(line: &str) {
        must(&format!("rsm emulate --dir {DIRECTORY} --send '{line}'"));
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
    }
}
