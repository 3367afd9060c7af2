//! The subnet manager of a run: rsm or opensm, on one of the hosts.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::fabric::{Fabric, Host};
use crate::tools::{read, shell, wait_for};

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours.
    Rsm,
    /// Debian's opensm.
    Opensm,
}

/// How often a standby asks whether the master is there, and how often in vain; the same for both.
const POLLING: (u32, u8) = (1000, 3);

/// A running manager.
pub(crate) struct Manager {
    /// Whose it is.
    pub(crate) kind: Kind,
    command: Command,
    process: Child,
    log: String,
    device: String,
    /// Where in its log this run begins.
    began: usize,
}

impl Manager {
    /// Starts a manager on a host.
    pub(crate) fn start(kind: Kind, host: &Host) -> Self {
        let log = format!("/tmp/manager-{}.log", host.device);
        let mut command = match kind {
            Kind::Rsm => {
                let mut command = Command::new("rsm");
                command.args(["run", "--log-level", "info", "--device", &host.device, "--config"]);
                command.arg(rsm_configuration(&host.device));
                command
            }
            Kind::Opensm => {
                let cache = format!("/tmp/cache-{}", host.device);
                fs::create_dir_all(&cache).expect("cache");
                fs::create_dir_all("/var/log").expect("log folder");
                let mut command = Command::new("opensm");
                command.env("OSM_CACHE_DIR", &cache).env("OSM_TMP_DIR", &cache);
                command.args(["-g", &host.guid]);
                command.args(["-f", &format!("{cache}/opensm.log"), "-F", &format!("{cache}/opensm.conf")]);
                fs::write(format!("{cache}/opensm.conf"), opensm_configuration()).expect("configuration");
                command
            }
        };
        let file = File::create(&log).expect("log");
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("log")).stdout(file);
        let process = command.spawn().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        Self { kind, command, process, log, device: host.device.clone(), began: 0 }
    }

    /// Kills it without notice.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("kill");
        self.process.wait().expect("wait");
    }

    /// Starts it again as it was.
    pub(crate) fn restart(&mut self) {
        self.began = self.said().len();
        self.process = self.command.spawn().expect("the same again");
    }

    /// Waits until it stands by, with a copy of the master's state where its kind keeps one.
    pub(crate) fn wait_until_it_follows(&self, fabric: &Fabric) {
        wait_for(&format!("{:?} on {} stands by", self.kind, self.device), || {
            let text = self.sminfo(fabric);
            let stands_by = text.contains("SMINFO_STANDBY");
            let follows = self.kind != Kind::Rsm
                || self.said()[self.began..].contains("copy of the master's state is complete");
            if stands_by && follows { Ok(()) } else { Err(format!("{text}{}", &self.said()[self.began..])) }
        });
    }

    /// What it tells of itself on the wire.
    pub(crate) fn sminfo(&self, fabric: &Fabric) -> String {
        shell(&format!("sminfo {} {}", fabric.hosts[2].options(), self.lid(fabric))).1
    }

    fn lid(&self, fabric: &Fabric) -> u16 {
        fabric.hosts.iter().find(|host| host.device == self.device).map_or(0, Host::lid)
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait_for_end(&mut self) -> std::process::ExitStatus {
        wait_for(&format!("{:?} ends", self.kind), || {
            self.process.try_wait().expect("wait").ok_or_else(|| self.said())
        })
    }

    /// What it said.
    pub(crate) fn said(&self) -> String {
        read(&self.log)
    }
}

/// A configuration under which two managers keep copies of each other's state.
fn rsm_configuration(device: &str) -> String {
    let secret = "/tmp/secret";
    if !Path::new(secret).exists() {
        fs::write(secret, "the secret of both managers\n").expect("secret");
        fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).expect("mode");
    }
    let file = format!("/tmp/rsm-{device}.toml");
    let (interval, retries) = POLLING;
    let text = format!(
        "[sm]\npolling_interval_ms = {interval}\npolling_retries = {retries}\nsticky = true\n\
         [failover]\nsecret_file = \"{secret}\"\n[state]\ndir = \"/tmp/state-{device}\"\n"
    );
    fs::write(&file, text).expect("configuration");
    file
}

/// The same for opensm.
fn opensm_configuration() -> String {
    let (interval, retries) = POLLING;
    // Adapters refuse keys themselves; opensm would have switches do it before.
    format!("sminfo_polling_timeout {interval}\npolling_retry_number {retries}\npart_enforce off\n")
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
