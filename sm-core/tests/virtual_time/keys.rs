//! M_Keys: which port holds which, what is done where one is not known, and that no change, takeover or lease leaves a port
//! locked out or open.

use std::sync::Arc;
use std::time::Duration;

use mad::types::{Guid, MKey, NodeType, PortNum};
use mad::wire::smp::{PortInfo, SmControl, SmInfo, SmState, Smp};
use mad::wire::{Attribute, Method};
use simulations::world::{AgentId, Config, End, World};
use sm_core::keys::{KeyPolicy, KeySource};
use sm_core::replication::Secret;
use sm_core::settings::SmSettings;
use sm_core::sm::{Event, Role};
use sm_core::store::Restored;

use crate::rig::*;

const OURS: MKey = MKey(0x0123_4567);
const NEXT: MKey = MKey(0x89ab_cdef);
const FOREIGN: MKey = MKey(0x7777);

fn one(key: MKey, protect: u8) -> KeyPolicy {
    KeyPolicy { source: KeySource::One(key), protect, ..KeyPolicy::default() }
}

fn derived(protect: u8) -> KeyPolicy {
    let secret = Secret::new(b"a secret of some length").unwrap();
    KeyPolicy { source: KeySource::Derived(secret), protect, ..KeyPolicy::default() }
}

fn settings(policy: &KeyPolicy) -> SmSettings {
    SmSettings { m_keys: Arc::new(policy.clone()), ..SmSettings::default() }
}

fn rig(policy: &KeyPolicy) -> Rig {
    let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), settings(policy), |_| ());
    rig.settle();
    rig
}

/// End ports: name, number, PortGUID.
fn end_ports(world: &World) -> Vec<(String, u8, Guid)> {
    let mut ends = Vec::new();
    for device in world.devices() {
        let numbers = if device.kind() == NodeType::Switch { 0..=0 } else { 1..=1 };
        ends.extend(numbers.map(|n: u8| (device.name(), n, Guid(device.port(PortNum(n)).unwrap().guid))));
    }
    ends
}

fn info(world: &World, name: &str, port: u8) -> PortInfo {
    world.device(world.find_name(name).unwrap()).port(PortNum(port)).unwrap().info
}

/// Every end port holds what the policy says, and nobody was ever asked with a wrong key.
#[track_caller]
fn assert_locked(world: &World, policy: &KeyPolicy) {
    for (name, port, guid) in end_ports(world) {
        let info = info(world, &name, port);
        assert_eq!(info.m_key.key().0, policy.key_of(guid).0, "{name}");
        assert_eq!(
            (info.m_key_protect_bits(), info.m_key_lease_period.get()),
            (policy.protect, policy.lease_s),
            "{name}"
        );
    }
}

#[track_caller]
fn assert_no_violation(world: &World) {
    for (name, port, _) in end_ports(world) {
        assert_eq!(info(world, &name, port).m_key_violations.get(), 0, "{name} was asked with a wrong key");
    }
}

/// Locks a port as somebody else would have.
fn lock(world: &mut World, name: &str, port: u8, key: MKey, protect: u8, lease_s: u16) {
    let node = world.find_name(name).unwrap();
    let info = &mut world.device_mut(node).ports[usize::from(port)].info;
    info.m_key.set(key.0);
    info.set_m_key_protect_bits(protect);
    info.m_key_lease_period.set(lease_s);
}

#[test]
fn b64_every_port_gets_its_key_and_an_unchanged_fabric_costs_no_set() {
    for policy in [one(OURS, 0), one(OURS, 1), one(OURS, 2), derived(1), derived(2), derived(3)] {
        let mut rig = rig(&policy);
        rig.assert_right();
        assert_locked(&rig.world, &policy);
        assert!(rig.last().failures.is_empty(), "{:?}", rig.last().failures);
        rig.assert_quiet();
        // A look, a new link and a renamed host need keys too.
        let cable = rig.end("H3", 1);
        rig.world.unlink(cable);
        rig.run(Duration::from_secs(20));
        rig.world.relink(cable);
        let node = rig.node("H2");
        rig.world.rename(node, "H2 renamed");
        rig.run(Duration::from_secs(60));
        rig.assert_right();
        assert_locked(&rig.world, &policy);
        assert_no_violation(&rig.world);
    }
}

#[test]
fn b64_a_device_that_forgot_its_key_gets_it_again_and_a_new_one_its_own() {
    let policy = derived(2);
    let mut rig = rig(&policy);
    for name in ["L1", "H4"] {
        let node = rig.node(name);
        rig.world.power_off(node);
        rig.run(Duration::from_secs(5));
        rig.world.power_on(node);
        rig.run(Duration::from_secs(60));
        rig.assert_right();
        assert_locked(&rig.world, &policy);
    }
}

#[test]
fn b67_a_fabric_that_is_locked_with_a_known_key_is_taken_over() {
    for protect in 0..=3 {
        for before in [vec![], vec![FOREIGN, OURS]] {
            let rig = rig(&one(OURS, protect));
            let mut world = rig.world;
            world.detach(rig.sm);
            // The same key; or another one, with the old one named.
            let key = if before.is_empty() { OURS } else { NEXT };
            let policy = KeyPolicy { before: Arc::new(before), ..one(key, protect) };
            let sm = attach(&mut world, "H5", settings(&policy), Restored::default());
            let mut rig = Rig { world, sm };
            rig.run(Duration::from_secs(300));
            rig.assert_right();
            assert_locked(&rig.world, &policy);
            assert!(rig.last().failures.is_empty(), "{protect} {:?}", rig.last().failures);
            rig.assert_quiet();
        }
    }
}

/// With what was remembered, ports are asked with their own key at once, though each has another and shows nothing.
#[test]
fn b67_a_restart_goes_on_with_the_remembered_keys() {
    let policy = derived(3);
    let rig = rig(&policy);
    let keys = rig.inline().sm.keys().held().clone();
    assert_eq!(keys.len(), 11);
    let mut world = rig.world;
    world.detach(rig.sm);
    let sm = attach(&mut world, "H0", settings(&policy), Restored { keys, ..Restored::default() });
    let mut rig = Rig { world, sm };
    rig.world.reset_stats();
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.world.stats().sets(), 0, "{:?}", rig.last().sets);
    let violated: Vec<_> = end_ports(&rig.world)
        .into_iter()
        .filter(|(name, port, _)| info(&rig.world, name, *port).m_key_violations.get() > 0)
        .map(|(name, ..)| name)
        .collect();
    assert!(violated.is_empty(), "{violated:?} were asked with a wrong key");
}

#[test]
fn b67_an_unknown_key_is_told_by_port_with_what_can_be_done_and_the_others_are_served() {
    for policy in [KeyPolicy::default(), one(OURS, 1)] {
        let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), settings(&policy), |world| {
            lock(world, "H2", 1, FOREIGN, 1, 0);
            lock(world, "T1", 0, FOREIGN, 1, 60);
            lock(world, "H4", 1, FOREIGN, 2, 0);
            // No key, and bits to protect it: nothing is locked.
            lock(world, "H5", 1, MKey::NONE, 1, 0);
            lock(world, "L2", 0, MKey::NONE, 1, 0);
        });
        rig.run(Duration::from_secs(30));
        let said = rig.last().failures.join("\n")
            + "\n"
            + &rig.reports().iter().flat_map(|r| r.findings.clone()).collect::<Vec<_>>().join("\n");
        for line in [
            "port 1 of \"H2\" (0x0000000000001040): locked with an M_Key that is not known (protection level 1): its lease has no end",
            "\"T1\" (0x00000000000050a0) at route",
            "it opens when its lease of 60 s has run out",
            "nothing answers behind it",
        ] {
            assert!(said.contains(line), "`{line}` is missing in:\n{said}");
        }
        for name in ["H0", "H1", "H3", "H5"] {
            assert_eq!(rig.state(name, 1), Some(mad::types::PortState::Active), "{name} is served");
        }
        for name in ["H2", "H4"] {
            assert_eq!(rig.lid(name, 1), 0, "{name} obeys others");
        }
        // The wrong keys that it was asked with have the lease of T1 run out; then it shows its key.
        rig.run(Duration::from_secs(900));
        let ours = info(&rig.world, "T1", 0);
        let expected = if policy.is_some() { OURS.0 } else { 0 };
        assert_eq!(ours.m_key.key().0, expected, "T1 is taken over when its lease has run out");
        assert!(ours.lid().is_some());
    }
}

/// Everything in between is found out about: a loss of any answer leaves nobody locked out.
#[test]
fn b67_the_keys_change_while_running_also_where_datagrams_are_lost() {
    for (seed, loss) in (1..=10).zip([0.0, 0.05, 0.15, 0.15, 0.15].into_iter().cycle()) {
        println!("RSM_SEED={seed}");
        for (old, new) in
            [(one(OURS, 2), one(NEXT, 2)), (one(OURS, 1), derived(3)), (derived(2), KeyPolicy::default())]
        {
            let config = Config { seed, ..Config::default() };
            let mut rig = Rig::with(&tree(3, 2, 2), config, settings(&old), |_| ());
            rig.settle();
            rig.world.config_mut().loss = loss;
            rig.tell(Event::Settings(Box::new(settings(&new))));
            rig.run(Duration::from_secs(120));
            rig.world.config_mut().loss = 0.0;
            rig.run(Duration::from_secs(900));
            let wanted = KeyPolicy { protect: if new.is_some() { new.protect } else { 0 }, ..new.clone() };
            assert_locked(&rig.world, &wanted);
            rig.assert_right();
            if loss == 0.0 {
                assert_no_violation(&rig.world);
            }
            rig.assert_quiet();
        }
    }
}

/// The manager dies while the keys change; whoever comes next with what it had saved knows both keys of every port.
#[test]
fn b67_a_change_of_keys_that_is_cut_off_anywhere_is_finished_by_the_next_manager() {
    let (old, new) = (one(OURS, 3), one(NEXT, 3));
    for cut in (0..40).map(|n| Duration::from_micros(150 * n)) {
        let mut rig = rig(&old);
        rig.tell(Event::Settings(Box::new(settings(&new))));
        rig.run(cut);
        let keys = rig.inline().sm.keys().held().clone();
        let mut world = rig.world;
        world.detach(rig.sm);
        let sm = attach(&mut world, "H0", settings(&new), Restored { keys, ..Restored::default() });
        let mut rig = Rig { world, sm };
        rig.run(Duration::from_secs(300));
        rig.assert_right();
        assert_locked(&rig.world, &new);
    }
}

#[test]
fn b67_a_standby_takes_over_a_locked_fabric_and_sends_what_it_would_have_sent_to_an_open_one() {
    for policy in [one(OURS, 1), derived(3)] {
        let mut rig = rig(&policy);
        // Where nothing is answered without a key of its own, a standby has to have the master's state from before.
        let keys =
            if policy.protect < 2 { Default::default() } else { rig.inline().sm.keys().held().clone() };
        let restored = Restored { keys, ..Restored::default() };
        let other = attach(&mut rig.world, "H5", settings(&policy), restored);
        rig.run(Duration::from_secs(60));
        let role = |rig: &Rig, id: AgentId| rig.world.agent::<SmAgent>(id).unwrap().0.sm.role();
        assert_eq!((rig.role(), role(&rig, other)), (Role::Master, Role::Standby));
        let keys = rig.inline().sm.keys().held().clone();
        rig.world.detach(rig.sm);
        rig.sm = other;
        rig.world.reset_stats();
        rig.tell(Event::Mirrored(Box::new(Restored { keys, ..Restored::default() })));
        rig.run(Duration::from_secs(60));
        assert_eq!(rig.role(), Role::Master);
        rig.assert_right();
        assert_locked(&rig.world, &policy);
        assert_eq!(
            (rig.sets(LFT), rig.sets(PORT_INFO)),
            (0, 11),
            "each end port learns the new SM LID, no more"
        );
        rig.assert_quiet();
    }
}

#[test]
fn b64_sm_info_is_told_by_protection_level_and_obeyed_with_the_right_key_only() {
    for protect in 0..=3 {
        let mut rig = rig(&one(OURS, protect));
        let end = rig.end("H1", 1);
        let stranger = rig.world.attach(end, Box::<Stranger>::default()).unwrap();
        let lid = rig.lid("H0", 1);
        for (key, right) in [(MKey::NONE, false), (FOREIGN, false), (OURS, true)] {
            let mut get = Smp::lid_routed(Method::GET, SmInfo::ID, 0);
            get.m_key.set(key.0);
            let answers = ask(&mut rig, stranger, lid, get);
            assert_eq!(answers.len(), usize::from(right || protect < 2), "level {protect}, {key:?}");
            for answer in answers {
                let said = SmInfo::decode(&answer.data).unwrap();
                let shown = if right || protect == 0 { 1 } else { 0 };
                assert_eq!((said.state(), said.sm_key.get()), (Some(SmState::Master), shown), "the SM_Key");
                assert_eq!(answer.data[24..], [0; 40], "what is not used is 0");
                assert_eq!(answer.m_key.get(), 0);
            }
            // DISABLE, as a master would send it.
            let mut info = SmInfo::zeroed();
            info.guid.set(0x4711);
            info.set_priority(15);
            info.set_state_raw(SmState::Master.to_wire());
            let mut set = Smp::lid_routed(Method::SET, SmInfo::ID, SmControl::Disable.to_wire());
            set.m_key.set(key.0);
            assert!(info.encode(&mut set.data));
            let answers = ask(&mut rig, stranger, lid, set);
            assert_eq!(answers.len(), usize::from(right), "level {protect}, {key:?}");
            assert_eq!(rig.role(), Role::Master, "a master is disabled by nobody");
        }
    }
}

/// Somebody tries a wrong key again and again: as long as the manager lives no lease runs out, with or without sweeps; when it
/// is dead each port opens when its own has.
#[test]
fn b67_no_lease_runs_out_while_the_manager_lives() {
    for interval in [0, 120] {
        for lost_traps in [false, true] {
            let policy = KeyPolicy { lease_s: 60, ..one(OURS, 2) };
            let sm = SmSettings { sweep_interval: Duration::from_secs(interval), ..settings(&policy) };
            let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), sm, |_| ());
            rig.settle();
            if lost_traps {
                for (name, port, _) in end_ports(&rig.world) {
                    let node = rig.node(&name);
                    let info = &mut rig.world.device_mut(node).ports[usize::from(port)].info;
                    let mask = info.capability_mask.get() & !PortInfo::CAP_IS_TRAP_SUPPORTED;
                    info.capability_mask.set(mask);
                }
            }
            let end = rig.end("H1", 1);
            let stranger = rig.world.attach(end, Box::<Stranger>::default()).unwrap();
            let lids: Vec<u16> =
                ["H3", "L2", "H4"].iter().map(|n| rig.lid(n, u8::from(n.starts_with('H')))).collect();
            let attack = |rig: &mut Rig, seconds: u64| {
                for _ in 0..seconds {
                    for lid in lids.clone() {
                        let mut smp = Smp::lid_routed(Method::GET, PortInfo::ID, 0);
                        smp.m_key.set(FOREIGN.0);
                        assert!(ask(rig, stranger, lid, smp).is_empty(), "it has opened");
                    }
                    rig.run(Duration::from_millis(850));
                }
            };
            attack(&mut rig, 300);
            assert_locked(&rig.world, &policy);
            rig.world.detach(rig.sm);
            attack(&mut rig, 1);
            rig.run(Duration::from_secs(61));
            let smp = Smp::lid_routed(Method::GET, PortInfo::ID, 0);
            assert_eq!(ask(&mut rig, stranger, lids[0], smp).len(), 1, "nobody kept it shut");
        }
    }
}

/// A lease that has run out all the same, as after a long pause of the manager, is seen and the port shut again.
#[test]
fn b67_a_port_that_has_opened_is_shut_again() {
    let policy = KeyPolicy { lease_s: 30, ..derived(2) };
    let mut rig = rig(&policy);
    for name in ["H3", "L1"] {
        let port = u8::from(name.starts_with('H'));
        let node = rig.node(name);
        rig.world.device_mut(node).ports[usize::from(port)].info.set_m_key_protect_bits(0);
    }
    rig.run(Duration::from_secs(40));
    assert_locked(&rig.world, &policy);
}

#[test]
fn b68_a_key_of_its_own_goes_to_no_port_but_the_one_that_it_is_for() {
    let policy = derived(1);
    let seen: Arc<std::sync::Mutex<Vec<(End, u64)>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), settings(&policy), |world| {
        world.observe(Box::new(move |_, at, packet| {
            let smp = Smp::from_mad(packet.mad);
            if packet.is_smp() && smp.m_key.get() != 0 {
                noted.lock().unwrap().push((at, smp.m_key.get()));
            }
        }));
    });
    rig.settle();
    rig.run(Duration::from_secs(30));
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 11, "{} packets with a key", seen.len());
    for (at, key) in seen.iter() {
        let device = rig.world.device(at.node);
        let port = if device.kind() == NodeType::Switch { PortNum(0) } else { at.port };
        let own = policy.key_of(Guid(device.port(port).unwrap().guid));
        assert_eq!(*key, own.0, "{} got another's key", device.name());
    }
}
