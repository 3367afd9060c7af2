//! `rsm emulate` with stock programs on it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::harness::Harness;
use crate::net::Net;
use crate::program::wait_until;
use crate::wire::Traffic;

/// A running `rsm emulate`. Ends with the value.
pub(crate) struct Emulator {
    net: Net,
    dir: TempDir,
    server: Child,
}

/// The preload library, which cargo puts beside the test program.
pub(crate) fn library() -> PathBuf {
    let path = std::env::current_exe().expect("path of this program").with_file_name("librsm_preload.so");
    assert!(path.exists(), "{} is not there; cargo test builds it", path.display());
    path
}

impl Emulator {
    /// Starts it with flags besides.
    pub(crate) fn start_with(net: Net, flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let server = Command::new(env!("CARGO_BIN_EXE_rsm"))
            .arg("emulate")
            .arg(&net.path)
            .arg("--dir")
            .arg(dir.path())
            .args(flags)
            .env("RSM_PRELOAD", library())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("rsm");
        let emulator = Self { net, dir, server };
        wait_until("the emulator listens", || emulator.dir.path().join("socket").exists());
        emulator
    }

    /// Types a line on the emulator's standard input.
    pub(crate) fn type_line(&mut self, line: &str) {
        let console = self.server.stdin.as_mut().expect("a pipe");
        writeln!(console, "{line}").expect("console");
    }

    /// Gives a line to the emulator and returns its output.
    fn send(&self, line: &str) -> String {
        let said = Command::new(env!("CARGO_BIN_EXE_rsm"))
            .args(["emulate", "--send", line, "--dir"])
            .arg(self.dir.path())
            .output()
            .expect("rsm");
        assert!(said.status.success(), "{line}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).expect("text")
    }
}

impl Harness for Emulator {
    const DEVICE: &'static str = "rsm0";

    fn start(net: Net) -> Self {
        Self::start_with(net, &[])
    }

    fn net(&self) -> &Net {
        &self.net
    }

    fn folder(&self) -> &Path {
        self.dir.path()
    }

    fn console(&self, line: &str) {
        self.send(line);
    }

    fn attach(&self, command: &mut Command, node: &str) {
        command.env("LD_PRELOAD", library()).env("RSM_EMULATE", self.dir.path()).env("RSM_NODE", node);
    }

    fn traffic(&self, _more: bool) -> Traffic {
        Traffic::of_emulator(&self.send("Sent"))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
