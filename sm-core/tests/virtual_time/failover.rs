//! A standby takes over a fabric on which nothing changed: what it sends, by attribute.

use std::time::Duration;

use simulations::world::AgentId;
use sm_core::config::LidTakeover;
use sm_core::settings::SmSettings;
use sm_core::sm::Role;

use crate::rig::*;

const MFT: u16 = mad::wire::ids::sm::MULTICAST_FORWARDING_TABLE;

fn settings(priority: u8, lid_takeover: LidTakeover) -> SmSettings {
    SmSettings { priority, lid_takeover, ..SmSettings::default() }
}

/// A master on H0, and a standby on the last host.
fn pair(leaves: u8, lid_takeover: LidTakeover) -> (Rig, AgentId, String) {
    let fabric = tree(leaves, 2, 4);
    let mut rig = Rig::with(&fabric, Default::default(), settings(5, lid_takeover), |_| ());
    rig.settle();
    let last = format!("H{}", u32::from(leaves) * 4 - 1);
    let other = attach(&mut rig.world, &last, settings(3, lid_takeover), Default::default());
    rig.run(Duration::from_secs(10));
    let role = rig.world.agent::<SmAgent>(other).unwrap().0.sm.role();
    assert_eq!(role, Role::Standby);
    (rig, other, last)
}

#[test]
fn b61_where_the_old_master_s_port_is_gone_its_lid_is_taken_and_no_host_is_told_anything() {
    let (mut rig, other, last) = pair(4, LidTakeover::WhenGone);
    let old = rig.lid("H0", 1);
    let hosts: Vec<u16> = (1..15).map(|n| rig.lid(&format!("H{n}"), 1)).collect();
    rig.world.detach(rig.sm);
    let node = rig.node("H0");
    rig.world.power_off(node);
    rig.world.reset_stats();
    rig.sm = other;
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.role(), Role::Master);
    rig.assert_right();
    assert_eq!(rig.lid(&last, 1), old, "the LID that hosts know goes on answering");
    assert_eq!(hosts, (1..15).map(|n| rig.lid(&format!("H{n}"), 1)).collect::<Vec<_>>());
    assert_eq!(rig.sets(PORT_INFO), 1, "of its own port: {:?}", rig.last().sets);
    assert_eq!(rig.sets(LFT), 6, "one block of each switch: entries of one destination");
    assert_eq!(rig.sets(MFT), 0);
    assert!(rig.world.stats().client_reregisters <= 1, "its own port at most");
    rig.assert_quiet();
}

#[test]
fn b61_where_it_is_still_there_or_by_configuration_each_port_is_told_once_and_no_table_is_sent() {
    for (gone, lid_takeover) in [(false, LidTakeover::WhenGone), (true, LidTakeover::Never)] {
        let (mut rig, other, last) = pair(4, lid_takeover);
        rig.world.detach(rig.sm);
        if gone {
            let node = rig.node("H0");
            rig.world.power_off(node);
        }
        rig.world.reset_stats();
        rig.sm = other;
        rig.run(Duration::from_secs(30));
        assert_eq!(rig.role(), Role::Master);
        rig.assert_right();
        let ports = 16 + 6 - u64::from(gone);
        assert_eq!(rig.sets(PORT_INFO), ports, "each end port learns the new SM LID, once");
        assert_eq!(rig.world.stats().client_reregisters, ports);
        assert_eq!(rig.sets(MFT), 0);
        assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid(&last, 1));
        // A host that is gone leaves entries that lead nowhere: these are cleared.
        assert_eq!(rig.sets(LFT), if gone { 6 } else { 0 });
        rig.assert_quiet();
    }
}

/// From the master's death to the moment in which a host's port leads to a new master that answers: no longer than the polls that have to
/// fail, the wait for the last of these, and once more the time after which a request is given up; whenever it dies, and both ways.
#[test]
fn hosts_are_answered_again_soon_after_the_polls_that_fail() {
    let polling_interval = Duration::from_millis(300);
    let mut most = Duration::ZERO;
    for run in 0..20 {
        let (fabric, gone) = (tree(4, 2, 4), run % 2 == 1);
        let quick = |priority| SmSettings {
            polling_interval,
            polling_retries: 1,
            ..settings(priority, LidTakeover::WhenGone)
        };
        let mut rig = Rig::with(&fabric, Default::default(), quick(5), |_| ());
        rig.settle();
        let other = attach(&mut rig.world, "H15", quick(3), Default::default());
        rig.run(Duration::from_secs(5) + Duration::from_millis(17 * run));
        assert_eq!(rig.world.agent::<SmAgent>(other).unwrap().0.sm.role(), Role::Standby);
        let (died, node, [host, port]) =
            (rig.world.now(), rig.node("H0"), ["H1", "H15"].map(|n| rig.end(n, 1)));
        rig.world.detach(rig.sm);
        if gone {
            rig.world.power_off(node);
        }
        let answered = rig.world.run_while(died + Duration::from_secs(60), |world| {
            let info = |end: simulations::world::End| &world.device(end.node).ports[end.port.index()].info;
            let sm = &world.agent::<SmAgent>(other).unwrap().0.sm;
            let leads = Some(info(host).master_sm_lid.get()) == info(port).lid().map(mad::types::Lid::get);
            sm.role() == Role::Master && sm.snapshot().is_some() && leads
        });
        assert!(answered, "run {run}");
        most = most.max(rig.world.now() - died);
    }
    let given_up = Duration::from_millis(200);
    assert!(most <= polling_interval * 2 + given_up + given_up * 4, "{most:?}");
}

/// B72: many ports are told one after the other, each with one Set.
#[test]
fn b72_many_ports_are_told_at_the_configured_pace() {
    let (mut rig, other, last) = pair(70, LidTakeover::WhenGone);
    rig.world.detach(rig.sm);
    rig.sm = other;
    rig.run(Duration::from_secs(2));
    assert_eq!(rig.role(), Role::Standby);
    let slow = SmSettings { reregister_per_s: 100, ..settings(3, LidTakeover::WhenGone) };
    rig.tell(sm_core::sm::Event::Settings(Box::new(slow)));
    rig.world.reset_stats();
    let told = |rig: &Rig| rig.world.stats().client_reregisters;
    while told(&rig) == 0 {
        rig.run(Duration::from_millis(100));
    }
    let before = told(&rig);
    rig.run(Duration::from_secs(1));
    let in_a_second = told(&rig) - before;
    assert!((80..=120).contains(&in_a_second), "{in_a_second} told in a second");
    rig.run(Duration::from_secs(10));
    assert_eq!(told(&rig), 280 + 72, "all in the end");
    assert_eq!(rig.sets(PORT_INFO), 280 + 72, "and each by one Set");
    assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid(&last, 1));
    assert_eq!(rig.sets(LFT), 0);
    rig.assert_right();
}

/// A standby that goes on polling shows how short it was: nobody can have answered at our LID meanwhile.
#[test]
fn b61_a_short_cut_of_the_master_s_own_cable_is_felt_by_nobody_else() {
    let (mut rig, other, _) = pair(4, LidTakeover::WhenGone);
    rig.world.reset_stats();
    let node = rig.node("H0");
    let port = simulations::world::End::new(node, 1);
    rig.world.unlink(port);
    rig.run(Duration::from_millis(300));
    rig.world.relink(port);
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.role(), Role::Master);
    assert_eq!(rig.world.agent::<SmAgent>(other).unwrap().0.sm.role(), Role::Standby);
    rig.assert_right();
    assert!(rig.world.stats().client_reregisters <= 1, "{}", rig.world.stats().client_reregisters);
}

/// B72: where the SA does not keep up, nobody more is told until it does.
#[test]
fn b72_an_sa_with_an_old_backlog_is_brought_no_more_clients() {
    use sm_core::sm::SaBacklog;
    let (mut rig, other, _) = pair(70, LidTakeover::WhenGone);
    let slow = SmSettings { reregister_per_s: 1000, ..settings(3, LidTakeover::WhenGone) };
    rig.world.detach(rig.sm);
    rig.sm = other;
    rig.tell(sm_core::sm::Event::Settings(Box::new(slow)));
    rig.world.reset_stats();
    let told = |rig: &Rig| rig.world.stats().client_reregisters;
    while told(&rig) == 0 {
        rig.run(Duration::from_millis(10));
    }
    let backlog = |rig: &mut Rig, queued, ms| {
        let backlog = SaBacklog { queued, busy: Duration::from_millis(ms) };
        rig.world.agent_mut::<SmAgent>(other).unwrap().0.sm.note_backlog(backlog);
    };
    rig.run(Duration::from_millis(50));
    backlog(&mut rig, 500, 600);
    rig.run(Duration::from_millis(20));
    let before = told(&rig);
    assert!(before < 280, "{before} told before the SA was busy");
    rig.run(Duration::from_secs(2));
    assert_eq!(told(&rig), before, "and nobody while it is");
    backlog(&mut rig, 0, 0);
    rig.run(Duration::from_secs(1));
    assert_eq!(told(&rig), 280 + 72, "all in the end");
    rig.assert_right();
}
