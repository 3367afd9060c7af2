//! An own ibsim for each test, and what ibsim itself saw on the wire.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::harness::Harness;
use crate::net::Net;
use crate::program::wait_until;
use crate::wire::Traffic;

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A running ibsim. Ends with the value.
pub(crate) struct Sim {
    net: Net,
    dir: TempDir,
    name: String,
    server: Child,
    console: File,
}

impl Sim {
    /// All that ibsim printed.
    fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.dir.path().join("out")).expect("ibsim's output")).into_owned()
    }
}

impl Harness for Sim {
    const DEVICE: &'static str = "ibsim0";

    /// Starts ibsim with tables that fit the net.
    fn start(net: Net) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let name = format!("rsm{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let console_path = dir.path().join("console");
        let made = Command::new("mkfifo").arg(&console_path).status().expect("mkfifo");
        assert!(made.success());
        // Open for reading and writing, so that neither end blocks and ibsim never sees an end of input.
        let console = OpenOptions::new().read(true).write(true).open(&console_path).expect("console");
        let switches = net.switches().count();
        let ports: usize = net.nodes.iter().map(|n| n.ports + 1).sum();
        let lids = (net.host_ports() + switches) * 2 / 64 * 64 + 192;
        let out = File::create(dir.path().join("out")).expect("out");
        let err = File::create(dir.path().join("err")).expect("err");
        let server = Command::new("ibsim")
            .arg("-s")
            .args(["-N", &(net.nodes.len() + 8).to_string(), "-S", &(switches + 8).to_string()])
            .args(["-P", &(ports + 64).to_string(), "-L", &lids.to_string()])
            .arg(&net.path)
            .env("IBSIM_SOCKNAME", &name)
            .current_dir(dir.path())
            .stdin(console.try_clone().expect("console"))
            .stdout(out)
            .stderr(err)
            .spawn()
            .expect("ibsim does not start; the README's second command installs it");
        let sim = Self { net, dir, name, server, console };
        wait_until("ibsim is ready", || {
            let sockets = fs::read_to_string("/proc/net/unix").expect("/proc/net/unix");
            sim.output().contains("Network simulator ready")
                && sockets.contains(&format!("@{}:ctl", sim.name))
        });
        sim
    }

    fn net(&self) -> &Net {
        &self.net
    }

    fn folder(&self) -> &Path {
        self.dir.path()
    }

    fn console(&self, command: &str) {
        assert!(command.len() < 127, "ibsim's console takes 127 characters");
        // ibsim echoes comments: when this one appears, the command ahead of it is done.
        let mark = format!("# done {}.", COUNTER.fetch_add(1, Ordering::Relaxed));
        writeln!(&self.console, "{command}\n{mark}").expect("console");
        wait_until(&format!("ibsim has done {command:?}"), || self.output().contains(&mark));
    }

    fn attach(&self, command: &mut Command, node: &str) {
        command.env("LD_PRELOAD", PRELOAD).env("IBSIM_SOCKNAME", &self.name).env("SIM_HOST", node);
    }

    /// At verbose level 3 ibsim prints every datagram that a client sends.
    fn traffic(&self, more: bool) -> Traffic {
        self.console(if more { "Verbose 3" } else { "Verbose 0" });
        Traffic::of_ibsim(&self.output())
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
