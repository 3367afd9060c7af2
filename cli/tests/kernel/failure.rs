//! What hosts notice when their subnet manager fails.

use std::thread;
use std::time::Duration;

use crate::fabric::Fabric;
use crate::ipoib::{Pings, a_host_that_was_away_is_back};
use crate::manager::Manager;
use crate::tools::{shell, tell, wait_for, word_after};

/// Kills the manager and starts it again while all hosts ping.
pub(crate) fn a_restart_is_not_felt(fabric: &Fabric, manager: &mut Manager) {
    let pings = Pings::start(&fabric.hosts);
    thread::sleep(Duration::from_secs(1));
    manager.kill();
    thread::sleep(Duration::from_secs(1));
    manager.restart();
    wait_for_master(fabric, 1);
    thread::sleep(Duration::from_secs(2));
    let pings = pings.stop();
    tell(&format!("{:?} restarted: {} of {} pings lost", manager.kind, pings.lost, pings.sent));
    assert_eq!(pings.lost, 0, "{pings:?}\n{}", manager.said());
    // It serves those who come anew.
    a_host_that_was_away_is_back(fabric);
}

/// Waits until every host knows the manager on this host, and it is the master.
fn wait_for_master(fabric: &Fabric, number: usize) {
    let lid = fabric.hosts[number - 1].lid();
    for host in &fabric.hosts {
        wait_for(&format!("H{} knows the new master", host.number), || {
            let known = u16::from_str_radix(host.port("sm_lid").trim_start_matches("0x"), 16).unwrap_or(0);
            if known == lid { Ok(()) } else { Err(format!("knows {known}, not {lid}")) }
        });
    }
    wait_for("the new master", || {
        let (_, text) = shell(&format!("sminfo -C {}", fabric.hosts[2].device));
        let right = word_after(&text, "sm lid") == lid.to_string() && text.contains("SMINFO_MASTER");
        if right { Ok(()) } else { Err(text) }
    });
}
