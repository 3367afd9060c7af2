//! A simulated fabric that stock programs sit on, ibsim or `rsm emulate`: what tests that run on both need of it.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::net::Net;
use crate::program::{Running, Said, wait_until_or_tell};
use crate::wire::{Traffic, WireLog};

/// A running simulator. Ends with the value.
pub(crate) trait Harness: Sync + Sized {
    /// The name of the only device that programs see.
    const DEVICE: &'static str;

    /// Starts it.
    fn start(net: Net) -> Self;

    /// Its fabric.
    fn net(&self) -> &Net;

    /// A folder that lives as long as it.
    fn folder(&self) -> &Path;

    /// Types a console command; returns when it is carried out.
    fn console(&self, line: &str);

    /// Sets the environment by which a program sits on a node.
    fn attach(&self, command: &mut Command, node: &str);

    /// What programs have sent so far by the simulator's own account; `more` says that it will be asked again. Nothing is
    /// counted before the first call.
    fn traffic(&self, more: bool) -> Traffic;

    /// A command on a node, in a folder of its own below the simulator's.
    fn command(&self, node: &str, program: impl AsRef<Path>) -> Command {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let folder = self.folder().join(format!("run{}", RUNS.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).expect("folder of a program");
        let mut command = Command::new(program.as_ref());
        command.current_dir(folder).stdin(Stdio::null());
        self.attach(&mut command, node);
        command
    }

    /// Starts a program on a node.
    fn spawn(&self, node: &str, program: &str, args: &[&str]) -> Running {
        let mut command = self.command(node, program);
        command.args(args);
        Running::start(command)
    }

    /// Runs a program on a node to its end.
    fn run(&self, node: &str, program: &str, args: &[&str]) -> Said {
        self.spawn(node, program, args).finish()
    }

    /// Waits until the port of a node leads to a master of this priority; when it is given up, the last answer is told, and what every
    /// opensm here has logged last.
    fn wait_for_master(&self, node: &str, priority: u8) {
        let says = format!("priority {priority} state 3 SMINFO_MASTER");
        let last = RefCell::new(String::new());
        let is_there = || {
            let said = self.run(node, "sminfo", &[]);
            let is_there = said.out.contains(&says);
            *last.borrow_mut() = format!("{}{}", said.out, said.err);
            is_there
        };
        wait_until_or_tell(&says, is_there, || format!("sminfo: {}\n{}", last.borrow(), self.opensm_logs()));
    }

    /// The ends of the logs of every opensm that was started here.
    fn opensm_logs(&self) -> String {
        let folders = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let logs = folders.map(|folder| folder.path().join("log")).filter(|log| log.is_file());
        logs.map(|log| format!("{}:\n{}\n", log.display(), end_of(&read(&log)))).collect()
    }

    /// Runs `rsm` on a node to its end.
    fn rsm(&self, node: &str, args: &[&str]) -> Said {
        self.run(node, env!("CARGO_BIN_EXE_rsm"), args)
    }

    /// Starts opensm on a node.
    fn opensm(&self, node: &str, args: &[&str]) -> OpenSm {
        self.opensm_with(node, args, "")
    }

    /// Starts opensm on a node, with lines of its own in its configuration.
    fn opensm_with(&self, node: &str, args: &[&str], options: &str) -> OpenSm {
        let mut command = self.command(node, "opensm");
        let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
        let (config, log) = (folder.join("opensm.conf"), folder.join("log"));
        // Its files stay in its folder.
        configure(&config, options);
        command.args(args).arg("-F").arg(config).arg("-f").arg(&log);
        command.env("OSM_TMP_DIR", &folder).env("OSM_CACHE_DIR", &folder);
        OpenSm { running: Some(Running::start(command)), log }
    }
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

/// The last lines of a log.
fn end_of(log: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Every line of its log is written at once.
fn configure(file: &Path, options: &str) {
    fs::write(file, format!("force_log_flush TRUE\n{options}")).expect("configuration of opensm");
}

/// An unmodified opensm. Ends with the value.
pub(crate) struct OpenSm {
    running: Option<Running>,
    log: PathBuf,
}

impl OpenSm {
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    /// Gives it other lines of its own, and has it read them.
    pub(crate) fn reconfigure(&self, options: &str) {
        configure(&self.log.with_file_name("opensm.conf"), options);
        if let Some(running) = &self.running {
            running.signal("HUP");
        }
    }

    pub(crate) fn wait_for(&self, text: &str) {
        let says = format!("opensm says {text:?}");
        wait_until_or_tell(&says, || self.log().contains(text), || end_of(&self.log()));
    }

    /// Waits until every link is Active. The first `SUBNET UP` may come earlier: where the MTU of an adapter's port changes,
    /// opensm takes the link down, and needs a second sweep to bring it up again.
    pub(crate) fn wait_until_up(&self, harness: &impl Harness) {
        self.wait_for("SUBNET UP");
        let net = harness.net();
        let node = net.attachable().pop().expect("a host");
        let all_are =
            || harness.run(&node, "iblinkinfo", &["-l"]).out.matches("Active").count() == 2 * net.links();
        wait_until_or_tell("every link is Active", all_are, || end_of(&self.log()));
    }

    /// Asks it to end.
    pub(crate) fn end(mut self) -> Said {
        self.running.take().expect("runs until now").stop()
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

/// Makes two tests of each generic function: one on ibsim, one on the emulator.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_ibsim {
            $(#[test] fn $name() { super::$name::<crate::sim::Sim>(); })+
        }
        mod on_the_emulator {
            $(#[test] fn $name() { super::$name::<crate::emulator::Emulator>(); })+
        }
    };
}
pub(crate) use on_both;

on_both!(a_stock_tool_talks_to_a_simulated_switch_and_the_wire_log_counts_it);

fn a_stock_tool_talks_to_a_simulated_switch_and_the_wire_log_counts_it<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let wire = WireLog::start(&sim);
    let out = sim.run("H0", "smpquery", &["-D", "nodeinfo", "0,1"]).ok();
    assert!(out.contains("Switch"), "{out}");
    let seen = wire.stop();
    assert!(seen.gets(0x11) > 0, "{seen:?}");
    assert!(seen.sets().is_empty(), "{seen:?}");
}

#[test]
fn net_files_hold_what_their_names_say() {
    for (name, hosts, switches, links) in [
        ("two-switches.net", 4, 2, 7),
        ("tree36.net", 36, 9, 36 + 36),
        ("torus4x4.net", 16, 16, 16 + 32),
        ("dual-port.net", 6, 2, 11 + 2),
        ("tree648.net", 648, 54, 648 + 648),
    ] {
        let net = Net::own(name);
        assert_eq!(
            (net.hosts().count(), net.switches().count(), net.links()),
            (hosts, switches, links),
            "{name}"
        );
    }
}
