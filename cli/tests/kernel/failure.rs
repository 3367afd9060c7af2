//! What hosts notice when their subnet manager fails.

use std::thread;
use std::time::Duration;

use crate::fabric::Fabric;
use crate::ipoib::{Pings, every_pair_pings};
use crate::manager::{Kind, Manager};
use crate::tools::{must, shell, tell, wait_for, word_after};

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
}

/// A standby beside the manager takes over when that is killed, whose port stays up, and the other way round, several times,
/// while all hosts ping; with adapters that raise an event when only the subnet manager's LID changes, and with such that do not
/// (B61).
///
/// A host that is told of a new manager asks it for all its paths at once, and keeps three packets for each meanwhile. In this
/// machine that takes half a second, or more where others use the processors, so that a packet may be too many: what is lost is told
/// and not judged. Afterwards every pair reaches each other.
pub(crate) fn takeovers_are_not_felt(fabric: &Fabric, first: Manager) -> [Manager; 2] {
    let kind = first.kind;
    let standby = Manager::start(kind, &fabric.hosts[1]);
    standby.wait_until_it_follows(fabric);
    let mut managers = [first, standby];
    let turns = if kind == Kind::Rsm { &[true, true, false, false][..] } else { &[true, false] };
    for (turn, sm_change_event) in turns.iter().enumerate() {
        let event = if *sm_change_event { "Y" } else { "N" };
        must(&format!("echo {event} >/sys/module/vib/parameters/sm_change_event"));
        // Ours stays master. opensm's on H1 may take its place back, at once or later: it has the lower GUID.
        let dies = if kind == Kind::Rsm { turn % 2 } else { the_master(fabric, &managers) };
        let takes_over = 1 - dies;
        let pings = Pings::start(&fabric.hosts);
        thread::sleep(Duration::from_secs(1));
        managers[dies].kill();
        wait_for_master(fabric, takes_over + 1);
        thread::sleep(Duration::from_secs(3));
        let pings = pings.stop();
        let (lost, sent) = (pings.lost, pings.sent);
        tell(&format!(
            "{kind:?}, sm_change_event={event}: {lost} of {sent} pings lost when H{} took over",
            takes_over + 1
        ));
        if kind == Kind::Rsm && turn % 2 == 1 {
            every_pair_pings(fabric);
        }
        managers[dies].restart();
        if kind == Kind::Rsm {
            managers[dies].wait_until_it_follows(fabric);
        } else {
            the_master(fabric, &managers);
        }
    }
    must("echo Y >/sys/module/vib/parameters/sm_change_event");
    managers
}

/// Waits until one of the two is the master and the other one stands by; which is the master.
fn the_master(fabric: &Fabric, managers: &[Manager; 2]) -> usize {
    wait_for("a master and a standby", || {
        let said = managers.each_ref().map(|manager| manager.sminfo(fabric));
        let states = said
            .each_ref()
            .map(|text| ["SMINFO_MASTER", "SMINFO_STANDBY"].into_iter().find(|state| text.contains(state)));
        match states {
            [Some("SMINFO_MASTER"), Some("SMINFO_STANDBY")] => Ok(0),
            [Some("SMINFO_STANDBY"), Some("SMINFO_MASTER")] => Ok(1),
            _ => Err(said.join("\n")),
        }
    })
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
        let (_, text) = shell(&format!("sminfo {}", fabric.hosts[2].options()));
        let right = word_after(&text, "sm lid") == lid.to_string() && text.contains("SMINFO_MASTER");
        if right { Ok(()) } else { Err(text) }
    });
}
