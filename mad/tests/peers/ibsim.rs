//! A private ibsim with its own socket name, and children attached to its nodes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";
/// Set in a child: says which side of the test it is.
const CHILD: &str = "RSM_TEST_ON_NODE";

/// Whether this process is the child that a test started.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// A running simulator; ends with this value.
pub(crate) struct Ibsim {
    process: Child,
    socket: String,
    /// Where the preload library makes its directories.
    directory: tempfile::TempDir,
}

impl Ibsim {
    /// Starts ibsim on a net and waits until it takes clients.
    pub(crate) fn start(net: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("net");
        std::fs::write(&file, net).unwrap();
        let socket = format!("rsm-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut process = Command::new("ibsim")
            .args(["-s", "-n"])
            .arg(&file)
            .env("IBSIM_SOCKNAME", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ibsim starts (Debian package ibsim-utils)");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        // The pipe must stay read, or ibsim blocks on a full one.
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("Network simulator ready") {
                    let _ = ready.send(());
                }
            }
        });
        is_ready.recv().expect("ibsim gets ready");
        Self { process, socket, directory }
    }

    /// Runs the named test of this binary once more as a child attached to `node`, and gives its output.
    pub(crate) fn run_on(&self, node: &str, test: &str) -> Output {
        assert!(Path::new(PRELOAD).exists(), "{PRELOAD} is missing (Debian package libumad2sim0)");
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .current_dir(self.directory.path())
            .env("LD_PRELOAD", PRELOAD)
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", node)
            .env(CHILD, node)
            .output()
            .unwrap()
    }
}

impl Drop for Ibsim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
