//! `rsm emulate` with stock programs on it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::net::Net;
use crate::sim::{Running, Said};

/// Generous: the machine is shared.
const LIMIT: Duration = Duration::from_secs(240);

/// A running `rsm emulate`. Ends with the value.
pub(crate) struct Emulator {
    dir: TempDir,
    server: Child,
    runs: AtomicU32,
}

/// The preload library, which cargo puts beside the test program.
pub(crate) fn library() -> PathBuf {
    let path = std::env::current_exe().expect("path of this program").with_file_name("librsm_preload.so");
    assert!(path.exists(), "{} is not there; cargo test builds it", path.display());
    path
}

impl Emulator {
    pub(crate) fn start(net: &Net) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let server = Command::new(env!("CARGO_BIN_EXE_rsm"))
            .arg("emulate")
            .arg(&net.path)
            .arg("--dir")
            .arg(dir.path())
            .env("RSM_PRELOAD", library())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("rsm");
        let emulator = Self { dir, server, runs: AtomicU32::new(0) };
        wait_until("the emulator listens", || emulator.dir.path().join("socket").exists());
        emulator
    }

    /// Types a line on the console.
    pub(crate) fn console(&mut self, line: &str) {
        let console = self.server.stdin.as_mut().expect("a pipe");
        writeln!(console, "{line}").expect("console");
    }

    /// A command on a node, in a folder of its own.
    pub(crate) fn command(&self, node: &str, program: impl AsRef<Path>) -> Command {
        let folder = self.dir.path().join(format!("run{}", self.runs.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).expect("folder of a program");
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(folder)
            .env("LD_PRELOAD", library())
            .env("RSM_EMULATE", self.dir.path())
            .env("RSM_NODE", node)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn spawn(&self, node: &str, program: &str, args: &[&str]) -> Running {
        let mut command = self.command(node, program);
        command.args(args);
        Running::start(command)
    }

    pub(crate) fn run(&self, node: &str, program: &str, args: &[&str]) -> Said {
        self.spawn(node, program, args).finish()
    }

    /// Starts `rsm run` on a node, with a state directory of its own.
    pub(crate) fn rsm(&self, node: &str, args: &[&str]) -> Running {
        let mut command = self.command(node, env!("CARGO_BIN_EXE_rsm"));
        command.args(["run", "--state-dir", "state"]).args(args);
        Running::start(command)
    }

    /// Starts opensm on a node and waits for its `SUBNET UP`.
    pub(crate) fn opensm(&self, node: &str, args: &[&str]) -> OpenSm {
        let log = self.dir.path().join(format!("opensm{}.log", self.runs.fetch_add(1, Ordering::Relaxed)));
        let mut command = self.command(node, "opensm");
        command.args(args);
        prepare_opensm(&mut command, &log);
        OpenSm { running: Some(Running::start(command)), log }
    }
}

/// Lets opensm keep its files to its folder, and write every line of its log at once.
pub(crate) fn prepare_opensm(command: &mut Command, log: &Path) {
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    let config = folder.join("opensm.conf");
    fs::write(&config, "force_log_flush TRUE\n").expect("configuration of opensm");
    command.arg("-F").arg(config).arg("-f").arg(log);
    command.env("OSM_TMP_DIR", &folder).env("OSM_CACHE_DIR", &folder);
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// An unmodified opensm. Ends with the value.
pub(crate) struct OpenSm {
    running: Option<Running>,
    log: PathBuf,
}

impl OpenSm {
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("opensm says {text:?}"), || self.log().contains(text));
    }

    /// Asks it to end.
    pub(crate) fn end(mut self) -> Said {
        let running = self.running.take().expect("runs until now");
        running.signal("TERM");
        running.finish()
    }
}

impl Drop for OpenSm {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal("KILL");
            running.finish();
        }
    }
}

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
