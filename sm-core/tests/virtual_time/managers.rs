//! Several subnet managers on one fabric: the basics.

use std::time::Duration;

use mad::transport::Datagram;
use mad::types::{Guid, Timestamp};
use mad::wire::smp::{SmInfo, SmState, Smp};
use mad::wire::{Attribute, Mad, Method, Status};
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::{Agent, AgentId, AgentOutput, End, World};
use sm_core::settings::SmSettings;
use sm_core::sm::{Inline, Role, Sm};

use crate::rig::*;

fn priority(priority: u8) -> SmSettings {
    SmSettings { priority, ..SmSettings::default() }
}

fn role(world: &World, id: AgentId) -> Role {
    world.agent::<SmAgent>(id).unwrap().0.sm.role()
}

fn two(first: u8, second: u8) -> (Rig, AgentId) {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(first), |_| ());
    rig.settle();
    let other = attach(&mut rig.world, "H3", priority(second), Default::default());
    rig.run(Duration::from_secs(30));
    (rig, other)
}

/// Managers that start together ask each other before either has seen the fabric: each knows its own name already.
#[test]
fn managers_that_start_together_say_who_they_are() {
    let mut rig = Rig::with(&tree(3, 2, 4), Default::default(), priority(5), |_| ());
    let other = attach(&mut rig.world, "H9", priority(3), Default::default());
    rig.run(Duration::from_secs(30));
    let reports = [rig.sm, other].map(|id| rig.world.agent::<SmAgent>(id).unwrap().0.reports.clone());
    let said = reports.iter().flatten().flat_map(|report| report.findings.iter().chain(&report.failures));
    let names: Vec<&String> = said.filter(|text| text.contains("calls itself")).collect();
    assert!(names.is_empty(), "{names:?}");
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
}

#[test]
fn the_second_one_stands_by_and_sends_no_set() {
    let (mut rig, other) = two(5, 3);
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
    rig.world.reset_stats();
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.world.stats().sets(), 0);
    rig.assert_right();
}

#[test]
fn when_the_master_dies_the_standby_takes_over_and_changes_only_who_is_master() {
    let (mut rig, other) = two(5, 3);
    let lids: Vec<u16> = (0..4).map(|i| rig.lid(&format!("H{i}"), 1)).collect();
    rig.world.detach(rig.sm);
    rig.world.reset_stats();
    rig.run(Duration::from_secs(30));
    assert_eq!(role(&rig.world, other), Role::Master);
    rig.assert_right();
    assert_eq!(lids, (0..4).map(|i| rig.lid(&format!("H{i}"), 1)).collect::<Vec<_>>());
    assert_eq!(rig.sets(LFT), 0, "the tables are right as they are");
    assert_eq!(rig.sets(PORT_INFO), 6, "each end port learns the new SM LID");
    assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid("H3", 1));
    assert_eq!(rig.world.stats().client_reregisters, 4 + 2, "and is told to register there");
}

#[test]
fn a_better_one_becomes_master_by_handover() {
    let (rig, other) = two(3, 5);
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Standby, Role::Master));
    rig.assert_right();
    assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid("H3", 1));
}

/// B58: two fabrics with a master each are joined.
#[test]
fn b58_two_masters_that_meet_become_one() {
    let mut plan = Plan { fabric: two_switches() };
    let cables: Vec<_> =
        plan.fabric.links().filter(|l| l.a.port.0 >= 7 && l.b.port.0 >= 7).copied().collect();
    for cable in &cables {
        plan.fabric.disconnect(cable.a);
    }
    let mut rig = Rig::with(&plan.fabric, Default::default(), priority(3), |_| ());
    let other = attach(&mut rig.world, "H3", priority(4), Default::default());
    rig.run(Duration::from_secs(20));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Master));
    // Each half has given 1, 2 and 3 to its own: of each pair one has to move, and those are all of the lower master's.
    let lids = |rig: &Rig, places: [(&str, u8); 3]| places.map(|(name, port)| rig.lid(name, port));
    let (lower, higher) = ([("H0", 1), ("H1", 1), ("S0", 0)], [("H2", 1), ("H3", 1), ("S1", 0)]);
    let kept = lids(&rig, higher);
    let (a, b) = (rig.end("S0", 7), rig.end("S1", 7));
    assert!(rig.world.connect(a, b));
    rig.run(Duration::from_secs(60));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Standby, Role::Master));
    rig.assert_right();
    assert_eq!(lids(&rig, higher), kept, "nobody of the higher master's half is renumbered");
    let all: std::collections::BTreeSet<u16> = lids(&rig, lower).into_iter().chain(kept).collect();
    assert_eq!(all.len(), 6, "no LID is there twice");
    // Apart again, the lower one goes on with what the other gave, and not with what it gave itself before. Only its own port
    // changes: it takes the LID by which hosts know the master, which is gone from here (B61).
    let moved = lids(&rig, lower);
    rig.world.unlink(a);
    rig.run(Duration::from_secs(120));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Master));
    assert_eq!(lids(&rig, lower), [kept[1], moved[1], moved[2]], "no host is renumbered");
    assert_eq!(lids(&rig, higher), kept);
}

/// H3's place is taken by a device with the GUIDs of H0.
fn with_a_twin_of_h0(rig: &mut Rig) -> End {
    let (twin, free) = (rig.world.device(rig.node("H0")).clone(), rig.end("S1", 4));
    let node = rig.world.add_device(twin);
    rig.world.device_mut(node).reset();
    assert!(rig.world.connect(End::new(node, 1), free));
    End::new(node, 1)
}

/// Two managers whom nobody can tell apart: the one that is master goes on, the other writes nothing and says why.
#[test]
fn b01_a_second_manager_with_our_guid_never_writes_and_ours_goes_on() {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(3), |_| ());
    rig.settle();
    let end = with_a_twin_of_h0(&mut rig);
    rig.run(Duration::from_secs(30));
    let guid = rig.port_guid("H0", 1);
    let sm = Sm::new(priority(9), Default::default(), false, 7).on_port(guid);
    let other = rig.world.attach(end, Box::new(SmAgent(Inline::new(sm)))).unwrap();
    rig.world.reset_stats();
    rig.run(Duration::from_secs(60));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Discovering));
    assert_eq!(rig.world.stats().sets(), 0);
    let said = &rig.world.agent::<SmAgent>(other).unwrap().0.reports;
    let why = "another manager runs under our own GUID: nothing is written until it is gone";
    assert!(said.iter().all(|report| report.failures.iter().any(|line| line == why)), "{said:?}");
    assert!(rig.reports().iter().any(|r| r.findings.iter().any(|line| line.contains("is there twice"))));
    // When the other one is gone it may.
    rig.world.detach(rig.sm);
    let node = rig.node("H0");
    rig.world.unlink(End::new(node, 1));
    rig.run(Duration::from_secs(60));
    assert_eq!(role(&rig.world, other), Role::Master);
}

/// Forged SMInfo: under another SM_Key, under our own GUID, with modifiers that there are not or that are not for our state.
#[test]
fn b64_a_forged_set_of_sm_info_is_refused_and_the_fabric_is_left_as_it_is() {
    let (mut rig, other) = two(5, 3);
    let end = rig.end("H1", 1);
    let stranger = rig.world.attach(end, Box::<Stranger>::default()).unwrap();
    rig.world.reset_stats();
    let mut sent = 0;
    for (host, own) in [("H0", rig.port_guid("H0", 1)), ("H3", rig.port_guid("H3", 1))] {
        let lid = rig.lid(host, 1);
        let master = host == "H0";
        for modifier in 0..=6_u32 {
            for (guid, key, state) in [
                (Guid(0x4711), 0x99, SmState::Master),
                (own, 0, SmState::Master),
                (Guid(0x4711), 0, SmState::Discovering),
                (Guid(0x4711), 0, SmState::NotActive),
                (Guid(0x4711), 0, SmState::Master),
            ] {
                // What a master may ask of a master or a standby is followed.
                let legal = [&[1_u32, 2, 5][..], &[1, 2, 3, 5]][usize::from(!master)].contains(&modifier);
                if legal && (guid, key, state) == (Guid(0x4711), 0, SmState::Master) {
                    continue;
                }
                let mut info = SmInfo::zeroed();
                info.guid.set(guid.0);
                info.sm_key.set(key);
                info.set_priority(15);
                info.set_state_raw(state.to_wire());
                let mut set = Smp::lid_routed(Method::SET, SmInfo::ID, modifier);
                assert!(info.encode(&mut set.data));
                let answers = ask(&mut rig, stranger, lid, set);
                assert_eq!(answers.len(), 1);
                assert_eq!(answers[0].header.status(), Status::INVALID_FIELD, "{modifier} {guid} {state:?}");
                sent += 1;
            }
        }
    }
    rig.run(Duration::from_secs(30));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
    assert_eq!(rig.world.stats().sets(), sent, "none but the stranger's");
    rig.assert_right();
}

/// Light sweeps are off, so that nothing but trap 144 can tell the master. What the trap says is a claim: one without a raised
/// priority behind it changes nothing.
#[test]
fn a_standby_whose_priority_is_raised_says_so_and_is_handed_over_to_at_once() {
    for (first, raised, changes) in [(5, 9, true), (5, 4, false)] {
        let settings =
            |priority| SmSettings { priority, sweep_interval: Duration::ZERO, ..SmSettings::default() };
        let mut rig = Rig::with(&two_switches(), Default::default(), settings(first), |_| ());
        rig.settle();
        let other = attach(&mut rig.world, "H3", settings(3), Default::default());
        rig.run(Duration::from_secs(30));
        assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
        rig.world.reset_stats();
        let first = std::mem::replace(&mut rig.sm, other);
        rig.tell(sm_core::sm::Event::Settings(Box::new(settings(raised))));
        rig.run(Duration::from_secs(1));
        assert_eq!(rig.world.stats().sent_smps(Method::TRAP, mad::wire::smp::Notice::ID), 1, "repressed");
        let roles = (role(&rig.world, first), role(&rig.world, other));
        assert_eq!(roles == (Role::Standby, Role::Master), changes, "{roles:?}");
        rig.run(Duration::from_secs(30));
        rig.assert_right();
    }
}

/// Whose trap is lost repeats it; who is master itself tells nobody.
#[test]
fn a_raised_priority_is_told_again_while_datagrams_are_lost_and_never_by_a_master() {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(5), |_| ());
    rig.settle();
    let other = attach(&mut rig.world, "H3", priority(3), Default::default());
    rig.run(Duration::from_secs(30));
    rig.world.reset_stats();
    rig.tell(sm_core::sm::Event::Settings(Box::new(priority(6))));
    rig.run(Duration::from_secs(30));
    let traps = |rig: &Rig| rig.world.stats().sent_smps(Method::TRAP, mad::wire::smp::Notice::ID);
    assert_eq!(traps(&rig), 0);
    rig.world.config_mut().loss = 1.0;
    rig.sm = other;
    rig.tell(sm_core::sm::Event::Settings(Box::new(priority(9))));
    rig.run(Duration::from_millis(300));
    rig.world.config_mut().loss = 0.0;
    rig.run(Duration::from_secs(2));
    assert!(traps(&rig) > 1, "{}", traps(&rig));
    assert_eq!(rig.role(), Role::Master);
}

/// Two that start together: no port has a LID when the standby sweeps. It learns where the master is from its own port.
#[test]
fn a_standby_learns_the_master_s_lid_from_its_own_port() {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(5), |_| ());
    let other = attach(&mut rig.world, "H3", priority(3), Default::default());
    rig.run(Duration::from_secs(10));
    let master = rig.lid("H0", 1);
    assert_eq!(role(&rig.world, other), Role::Standby);
    let known = rig.world.agent::<SmAgent>(other).unwrap().0.sm.master_lid();
    assert_eq!(known.map(mad::types::Lid::get), Some(master));
}

/// Says that it is a subnet manager, in the state that it is told to claim, and does nothing.
struct Claims(SmState, Vec<Datagram>);

impl Agent for Claims {
    fn accepts(&self, mad: &Mad) -> bool {
        mad.header.attribute_id.get() == SmInfo::ID && mad.header.method() == Method::GET
    }

    fn receive(&mut self, request: Datagram, _: Timestamp) {
        let mut smp = Smp::from_mad(request.mad);
        let mut info = SmInfo::zeroed();
        info.guid.set(CLAIMS.0);
        info.set_priority(3);
        info.set_state_raw(self.0.to_wire());
        assert!(info.encode(&mut smp.data));
        smp.header.method = Method::GET_RESP.0;
        smp.set_returning();
        self.1.push(Datagram { address: request.address, mad: smp.into_mad() });
    }

    fn poll(&mut self, _: Timestamp) -> Option<AgentOutput> {
        self.1.pop().map(AgentOutput::Send)
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

/// PortGUID of H3 in [`two_switches`].
const CLAIMS: Guid = Guid(0x1031);

/// Sets that are left unanswered hold an apply up for seconds, in which another may have taken us for dead: it is asked again before
/// tables are written. A device that never answers some Sets keeps nobody from going on for ever.
#[test]
fn an_apply_that_was_held_up_asks_again_before_it_writes_tables() {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(5), |_| ());
    let end = rig.end("H3", 1);
    assert_eq!(rig.port_guid("H3", 1), CLAIMS);
    let other = rig.world.attach(end, Box::new(Claims(SmState::Standby, Vec::new()))).unwrap();
    rig.world.set_is_sm(other, true);
    rig.settle();
    let deaf = Quirk::always(Misbehaviour::Silence).on(Method::SET, SWITCH_INFO);
    let switch = rig.node("S1");
    rig.world.device_mut(switch).quirks.push(deaf);
    let cut = rig.end("S0", 7);
    rig.world.unlink(cut);
    rig.run(Duration::from_secs(1));
    rig.world.agent_mut::<Claims>(other).unwrap().0 = SmState::Master;
    rig.world.reset_stats();
    rig.run(Duration::from_secs(20));
    assert_eq!(rig.sets(LFT), 0, "it has seen another master");
    rig.world.agent_mut::<Claims>(other).unwrap().0 = SmState::Standby;
    rig.run(Duration::from_secs(60));
    assert!(rig.sets(LFT) > 0);
    assert_eq!(rig.role(), Role::Master);
    rig.assert_right();
}
