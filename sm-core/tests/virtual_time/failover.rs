//! A standby takes over a fabric on which nothing changed: what it sends, by attribute.

use std::time::Duration;

use simulations::world::{AgentId, Config};
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

/// What becomes of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its program is killed.
    Killed,
    /// So is its host, and the port has no link any more.
    Off,
    /// It is stopped, or its host has crashed: the port goes on, and shows a manager.
    Frozen,
}

/// A master on H0 and a standby on H15, which poll like this.
fn polling(interval_ms: u64, retries: u32, config: Config) -> (Rig, AgentId) {
    let quick = |priority| SmSettings {
        polling_interval: Duration::from_millis(interval_ms),
        polling_retries: retries,
        ..settings(priority, LidTakeover::WhenGone)
    };
    let mut rig = Rig::with(&tree(4, 2, 4), config, quick(5), |_| ());
    rig.settle();
    let other = attach(&mut rig.world, "H15", quick(3), Default::default());
    rig.run(Duration::from_secs(5));
    assert_eq!(rig.world.agent::<SmAgent>(other).unwrap().0.sm.role(), Role::Standby);
    (rig, other)
}

/// The longest time from the end of a master to the moment in which a host's port leads to a new master that answers,
/// whenever in its standby's rhythm that end comes.
fn felt(interval_ms: u64, retries: u32, how: Fate) -> Duration {
    const RUNS: u32 = 16;
    let felt = |run: u32| {
        let (mut rig, other) = polling(interval_ms, retries, Config::default());
        rig.run(Duration::from_millis(interval_ms) * run / RUNS);
        let (died, node, [host, port]) =
            (rig.world.now(), rig.node("H0"), ["H1", "H15"].map(|n| rig.end(n, 1)));
        match how {
            Fate::Killed => drop(rig.world.detach(rig.sm)),
            Fate::Off => {
                rig.world.detach(rig.sm);
                rig.world.power_off(node);
            }
            Fate::Frozen => rig.world.freeze(rig.sm, true),
        }
        let answered = rig.world.run_while(died + Duration::from_secs(60), |world| {
            let info = |end: simulations::world::End| &world.device(end.node).ports[end.port.index()].info;
            let sm = &world.agent::<SmAgent>(other).unwrap().0.sm;
            let leads = Some(info(host).master_sm_lid.get()) == info(port).lid().map(mad::types::Lid::get);
            sm.role() == Role::Master && sm.snapshot().is_some() && leads
        });
        assert!(answered, "{interval_ms} ms, {retries} retries, {how:?}, run {run}");
        rig.world.now() - died
    };
    (0..RUNS).map(felt).max().unwrap_or_default()
}

/// The polls that have to fail are an interval apart, and the first of them is due within one: with one retry that leaves an interval
/// for the wait for the last of them, the walk and all that follows. With more retries it takes as many intervals more.
#[test]
fn hosts_are_answered_again_within_three_polling_intervals_with_one_retry() {
    for (interval_ms, retries) in [(200, 1), (300, 1), (1000, 1), (200, 2), (300, 4)] {
        for how in [Fate::Killed, Fate::Off] {
            let most = felt(interval_ms, retries, how);
            let bound = Duration::from_millis(interval_ms) * (retries + 2);
            assert!(most <= bound, "{interval_ms} ms, {retries} retries, {how:?}: {most:?} of {bound:?}");
        }
    }
}

/// Whose port still shows a manager is asked three times more, at once, before it counts as gone: packets may have been lost.
#[test]
fn a_master_that_is_stopped_is_asked_three_times_more_and_no_longer() {
    let asked = Duration::from_millis(100 + 200 + 400 + 3 * 50);
    for (interval_ms, retries) in [(300, 1), (1000, 1), (300, 4)] {
        let most = felt(interval_ms, retries, Fate::Frozen);
        let bound = Duration::from_millis(interval_ms) * (retries + 2) + asked;
        assert!(most <= bound, "{interval_ms} ms, {retries} retries: {most:?} of {bound:?}");
    }
}

/// A standby whose polls are lost walks the fabric, finds its master, and goes on standing by.
#[test]
fn lost_polls_make_nobody_master() {
    for seed in 1..=4 {
        let (mut rig, other) = polling(300, 1, Config { seed, ..Config::default() });
        rig.world.config_mut().loss = 0.03;
        let rounds = |rig: &Rig| rig.world.agent::<SmAgent>(other).unwrap().0.reports.len();
        let before = rounds(&rig);
        let until = rig.world.now() + Duration::from_secs(60);
        let second = rig
            .world
            .run_while(until, |world| world.agent::<SmAgent>(other).unwrap().0.sm.role() == Role::Master);
        assert!(!second, "seed {seed}: took over from a master that was there");
        assert!(rounds(&rig) > before, "seed {seed}: no two polls were lost in a row");
        assert_eq!(rig.role(), Role::Master);
    }
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

/// The SA goes on with other registrations, those of an etcd that has come back, while ports are being told: whoever was told before may
/// have registered before, and that is gone. A few ports are told with the Sets of a round, many one by one.
#[test]
fn who_was_told_before_registrations_were_replaced_is_told_again() {
    for (leaves, ports) in [(4, 16 + 6), (70, 280 + 72)] {
        let (mut rig, other, _) = pair(leaves, LidTakeover::WhenGone);
        rig.world.detach(rig.sm);
        rig.sm = other;
        rig.world.reset_stats();
        let until = rig.world.now() + Duration::from_secs(30);
        assert!(rig.world.run_while(until, |world| world.stats().client_reregisters > 0));
        rig.tell(sm_core::sm::Event::Unregistered);
        rig.world.reset_stats();
        rig.run(Duration::from_secs(20));
        let told = rig.world.stats().client_reregisters;
        assert!((ports..2 * ports).contains(&told), "{told} of {ports} told since");
        rig.assert_right();
        rig.assert_quiet();
    }
}
