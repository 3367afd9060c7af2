//! An own ibsim for each test, programs attached to its nodes, and what ibsim itself saw on the wire.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::net::Net;

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

/// How long a program may take before it counts as hung. Generous: the machine is shared.
const LIMIT: Duration = Duration::from_secs(240);

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A running ibsim. Ends with the value.
pub(crate) struct Sim {
    pub(crate) net: Net,
    pub(crate) dir: TempDir,
    name: String,
    server: Child,
    console: File,
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) program: String,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
}

impl Said {
    /// The output of a program that must succeed.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{} failed\n{}\n{}", self.program, self.out, self.err);
        self.out
    }
}

/// A program that is still running.
pub(crate) struct Running {
    program: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Sim {
    /// Starts ibsim with tables that fit the net.
    pub(crate) fn start(net: Net) -> Self {
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
        sim.wait_until("ibsim is ready", || {
            let sockets = fs::read_to_string("/proc/net/unix").expect("/proc/net/unix");
            sim.output().contains("Network simulator ready")
                && sockets.contains(&format!("@{}:ctl", sim.name))
        });
        sim
    }

    /// All that ibsim printed.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.dir.path().join("out")).expect("ibsim's output")).into_owned()
    }

    /// Waits for a condition, without a say on how fast it comes.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !condition() {
            assert!(Instant::now() < end, "gave up waiting until {what}\n{}", self.errors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.dir.path().join("err")).unwrap_or_default()
    }

    /// Types a console command; returns when ibsim has carried it out.
    pub(crate) fn console(&self, command: &str) {
        assert!(command.len() < 127, "ibsim's console takes 127 characters");
        // ibsim echoes comments: when this one appears, the command ahead of it is done.
        let mark = format!("# done {}.", COUNTER.fetch_add(1, Ordering::Relaxed));
        writeln!(&self.console, "{command}\n{mark}").expect("console");
        self.wait_until(&format!("ibsim has done {command:?}"), || self.output().contains(&mark));
    }

    /// A command on a node, in a folder of its own below the simulator's.
    pub(crate) fn command(&self, node: &str, program: impl AsRef<Path>) -> Command {
        let folder = self.dir.path().join(format!("run{}", COUNTER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).expect("folder of a program");
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(folder)
            .env("LD_PRELOAD", PRELOAD)
            .env("IBSIM_SOCKNAME", &self.name)
            .env("SIM_HOST", node)
            .stdin(Stdio::null());
        command
    }

    /// Starts a program on a node.
    pub(crate) fn spawn(&self, node: &str, program: &str, args: &[&str]) -> Running {
        let mut command = self.command(node, program);
        command.args(args);
        Running::start(command)
    }

    /// Runs a program on a node to its end.
    pub(crate) fn run(&self, node: &str, program: &str, args: &[&str]) -> Said {
        self.spawn(node, program, args).finish()
    }

    /// Runs `rsm` on a node to its end.
    pub(crate) fn rsm(&self, node: &str, args: &[&str]) -> Said {
        self.run(node, env!("CARGO_BIN_EXE_rsm"), args)
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
        let (out, err) = (folder.join("out"), folder.join("err"));
        let program = format!("{command:?}").split("\" \"").skip(1).collect::<Vec<_>>().join(" ");
        let program = format!("{} {program}", command.get_program().to_string_lossy());
        let child = command
            .stdout(File::create(&out).expect("out"))
            .stderr(File::create(&err).expect("err"))
            .spawn()
            .unwrap_or_else(|e| {
                panic!("{program}: {e}; the README's second command installs what tests need")
            });
        Self { program, child, out, err }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).expect("out")).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).expect("err")).into_owned()
    }

    /// Whether it still runs.
    pub(crate) fn alive(&mut self) -> bool {
        self.child.try_wait().expect("state of a child").is_none()
    }

    /// Sends a signal: `TERM`, `HUP`, …
    pub(crate) fn signal(&self, name: &str) {
        // The child is ours and not yet waited for, so the id is still its own.
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(sent.expect("sh").success(), "signal {name}");
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Said {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("state of a child") {
                return Said {
                    program: self.program.clone(),
                    out: self.out(),
                    err: self.err(),
                    code: status.code(),
                };
            }
            assert!(Instant::now() < end, "{} hangs\n{}\n{}", self.program, self.out(), self.err());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM, then its end.
    pub(crate) fn stop(self) -> Said {
        self.signal("TERM");
        self.finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
