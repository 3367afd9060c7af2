//! The subnet manager of a run: rsm or opensm, on one of the hosts.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use crate::fabric::Host;
use crate::tools::read;

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours.
    Rsm,
    /// Debian's opensm.
    Opensm,
}

/// A running manager.
pub(crate) struct Manager {
    /// Whose it is.
    pub(crate) kind: Kind,
    command: Command,
    process: Child,
    log: String,
}

impl Manager {
    /// Starts a manager on a host.
    pub(crate) fn start(kind: Kind, host: &Host) -> Self {
        let log = format!("/tmp/manager-{}.log", host.device);
        let mut command = match kind {
            Kind::Rsm => {
                let mut command = Command::new("rsm");
                command.args(["run", "--device", &host.device]);
                command.arg("--state-dir").arg(format!("/tmp/state-{}", host.device));
                command
            }
            Kind::Opensm => {
                let cache = format!("/tmp/cache-{}", host.device);
                fs::create_dir_all(&cache).expect("cache");
                fs::create_dir_all("/var/log").expect("log folder");
                let mut command = Command::new("opensm");
                command.env("OSM_CACHE_DIR", &cache).env("OSM_TMP_DIR", &cache);
                command.args(["-g", &host.guid]);
                command.args(["-f", &format!("{cache}/opensm.log")]);
                command
            }
        };
        let file = File::create(&log).expect("log");
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("log")).stdout(file);
        let process = command.spawn().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        Self { kind, command, process, log }
    }

    /// Kills it without notice.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("kill");
        self.process.wait().expect("wait");
    }

    /// Starts it again as it was.
    pub(crate) fn restart(&mut self) {
        self.process = self.command.spawn().expect("the same again");
    }

    /// What it said.
    pub(crate) fn said(&self) -> String {
        read(&self.log)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
