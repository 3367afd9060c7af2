//! The emulated fabric with its hosts in the kernel.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::tools::{must, read, wait_for};

/// Where the emulator's socket is.
const DIRECTORY: &str = "/tmp/emulator";

/// Adapters of the kernel: H1 and so on in the topology. The last has two ports.
const ADAPTERS: usize = 8;

/// A host: a port of an adapter of the kernel.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number from 1 on: that of its adapter, but for the second port of the last one.
    pub(crate) number: usize,
    /// The number of its adapter.
    pub(crate) adapter: usize,
    /// The kernel's name of the adapter.
    pub(crate) device: String,
    /// The port's number there.
    pub(crate) port_number: u8,
    /// Port GUID in the form `0x…`.
    pub(crate) guid: String,
}

impl Host {
    /// A file of its port in sysfs.
    pub(crate) fn port(&self, file: &str) -> String {
        read(&format!("/sys/class/infiniband/{}/ports/{}/{file}", self.device, self.port_number))
    }

    /// Its LID.
    pub(crate) fn lid(&self) -> u16 {
        u16::from_str_radix(self.port("lid").trim_start_matches("0x"), 16).unwrap_or(0)
    }

    /// What stock tools take to start from it.
    pub(crate) fn options(&self) -> String {
        format!("-C {} -P {}", self.device, self.port_number)
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
        let nodes: Vec<String> = (1..=ADAPTERS).map(|number| format!("H{number}")).collect();
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
        let host = |number: usize, port_number: u8| {
            let (adapter, device) = (number.min(ADAPTERS), names[number.min(ADAPTERS) - 1].to_owned());
            let gid = read(&format!("/sys/class/infiniband/{device}/ports/{port_number}/gids/0"));
            let guid = format!("0x{}", gid.split(':').skip(4).collect::<String>());
            Host { number, adapter, device, port_number, guid }
        };
        let hosts = (1..=ADAPTERS).map(|number| host(number, 1)).chain([host(ADAPTERS + 1, 2)]).collect();
        Self { emulator, hosts }
    }

    /// Waits until all hosts are in use.
    pub(crate) fn wait_until_active(&self) {
        self.hosts.iter().for_each(|host| host.wait_for_state("ACTIVE"));
    }

    /// Kills the emulator: its adapters are gone at once.
    pub(crate) fn kill(&mut self) {
        self.emulator.kill().expect("kill");
        self.emulator.wait().expect("wait");
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
