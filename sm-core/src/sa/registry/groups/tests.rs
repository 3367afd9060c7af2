use std::collections::HashMap;
use std::time::Duration;

use mad::types::{NodeType, PortNum};
use proptest::prelude::*;

use super::*;
use crate::testing::{Tree, freeze};

const TREE: Tree = Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 };
const FULL: u8 = 1;
const NON: u8 = 2;
const SEND_ONLY: u8 = 4;
const SEND_ONLY_FULL: u8 = 8;

fn host(snapshot: &Snapshot, n: u8) -> &EndPort {
    snapshot.port_by_guid(Tree::host(n / 3, n % 3)).unwrap()
}

/// An application's group: beyond the link, own signature.
fn mgid(n: u128) -> Gid {
    Gid(0xff15_a01b << 96 | n)
}

fn request(snapshot: &Snapshot, n: u8, mgid: Gid, state: u8) -> MemberRequest {
    MemberRequest {
        mgid,
        port_gid: snapshot.gid_of(host(snapshot, n)),
        join_state: JoinState(state),
        ..Default::default()
    }
}

/// A request with all that a new group needs.
fn creation(snapshot: &Snapshot, n: u8, mgid: Gid, state: u8) -> MemberRequest {
    MemberRequest {
        qkey: Some(QKey(0xb1b)),
        tclass: Some(0),
        pkey: Some(PKey(0xffff)),
        flow_label: Some(0),
        sl: Some(0),
        ..request(snapshot, n, mgid, state)
    }
}

fn join(groups: &mut Groups, snapshot: &Snapshot, n: u8, mgid: Gid, state: u8) -> Result<u8, Status> {
    let request = creation(snapshot, n, mgid, state);
    groups.join(snapshot, host(snapshot, n), &request).map(|(_, member)| member.join_state.0)
}

fn leave(groups: &mut Groups, snapshot: &Snapshot, n: u8, mgid: Gid, state: u8) -> Result<u8, Status> {
    let request = request(snapshot, n, mgid, state);
    groups.leave(snapshot, host(snapshot, n), &request).map(|(_, left)| left.join_state.0)
}

/// B31: a member that loses its full part loses nothing that was counted elsewhere; MLIDs come back.
#[test]
fn b31_mlids_don_t_leak() {
    let mut fabric = TREE.fabric();
    let switches: Vec<_> = fabric.switches().map(|(id, _)| id).collect();
    for id in switches {
        fabric.node_mut(id).switch.as_mut().unwrap().multicast_fdb_cap = 8;
    }
    let snapshot = freeze(fabric);
    let mut groups = Groups::default();
    for round in 0..1100 {
        assert_eq!(
            join(&mut groups, &snapshot, 0, mgid(round), FULL | SEND_ONLY_FULL),
            Ok(9),
            "round {round}"
        );
        assert_eq!(leave(&mut groups, &snapshot, 0, mgid(round), FULL), Ok(8));
        assert!(groups.get(mgid(round)).is_some(), "the send-only full member keeps it");
        assert_eq!(leave(&mut groups, &snapshot, 0, mgid(round), SEND_ONLY_FULL), Ok(0));
        assert!(groups.get(mgid(round)).is_none());
    }
    assert!(groups.by_mlid.is_empty() && groups.by_mgid.is_empty());
}

/// B33: neither one port nor all proxies together take the multicast LIDs from the rest.
#[test]
fn b33_nobody_takes_all_mlids() {
    let mut fabric = TREE.fabric();
    let switches: Vec<_> = fabric.switches().map(|(id, _)| id).collect();
    for id in switches {
        fabric.node_mut(id).switch.as_mut().unwrap().multicast_fdb_cap = 32;
    }
    let snapshot = freeze(fabric);
    let mut groups = Groups::default();
    let mut make = |from: u8, to: u8, n: u128| {
        let request = creation(&snapshot, to, mgid(u128::from(from) << 16 | u128::from(to) << 8 | n), FULL);
        groups.join(&snapshot, host(&snapshot, from), &request).map(drop)
    };
    assert_eq!((0..32).filter(|n| make(1, 1, *n).is_ok()).count(), 8, "a quarter");
    assert_eq!(make(1, 1, 40), Err(Status::SA_NO_RESOURCES));
    let by_proxy = (0..32).filter(|n| make(1 + (*n % 2) as u8, 3 + (*n % 3) as u8, *n).is_ok()).count();
    assert_eq!(by_proxy, 8, "a quarter, over all");
    assert_eq!(make(4, 4, 0), Ok(()), "a port for itself");
    assert_eq!(make(1, 1, 3), Ok(()), "what is there already");
}

/// A group of IPoIB has the MTU and rate of its broadcast group, whoever makes it: with smaller ones its hosts could not use it.
#[test]
fn groups_of_ipoib_are_no_smaller_than_their_broadcast_group() {
    let snapshot = freeze(TREE.fabric());
    let mut groups = Groups::default();
    let broadcast = ipoib_broadcast(2, PKey(0xffff));
    let small =
        MemberRequest { mtu: Some(Bound::Exactly(Mtu::M2048)), ..creation(&snapshot, 0, broadcast, FULL) };
    groups.join(&snapshot, host(&snapshot, 0), &small).unwrap();
    let other = Gid(broadcast.0 & !0xffff_ffff | 5);
    let traits = |groups: &Groups, mgid| groups.get(mgid).map(|group| (group.traits.mtu, group.traits.rate));
    for wrong in [Bound::Exactly(Mtu::M1024), Bound::Exactly(Mtu::M4096), Bound::Less(Mtu::M2048)] {
        let request = MemberRequest { mtu: Some(wrong), ..creation(&snapshot, 1, other, FULL) };
        let refused = groups.join(&snapshot, host(&snapshot, 1), &request).map(drop);
        assert_eq!(refused, Err(Status::SA_REQ_INVALID), "{wrong:?}");
    }
    let slow = MemberRequest {
        rate: Some(Bound::Exactly(Rate::from_wire(2).unwrap())),
        ..creation(&snapshot, 1, other, FULL)
    };
    assert_eq!(groups.join(&snapshot, host(&snapshot, 1), &slow).map(drop), Err(Status::SA_REQ_INVALID));
    groups.join(&snapshot, host(&snapshot, 1), &creation(&snapshot, 1, other, FULL)).unwrap();
    assert_eq!(traits(&groups, other), traits(&groups, broadcast));
    assert_eq!(traits(&groups, other).map(|(mtu, _)| mtu), Some(Mtu::M2048));
}

/// A membership by proxy may be ended by who could have begun it, and by nobody else.
#[test]
fn strangers_can_not_take_a_member_out() {
    let snapshot = freeze(TREE.fabric());
    let keys = |n: u8| match n {
        4 => vec![PKey(0x8002)],
        _ => vec![PKey(0xffff), PKey(0x8001)],
    };
    let tables: HashMap<_, _> = (0..6).map(|n| (host(&snapshot, n).end, keys(n))).collect();
    let snapshot = snapshot.with_pkeys(&tables);
    let mut groups = Groups::default();
    let joined = groups.join(&snapshot, host(&snapshot, 1), &creation(&snapshot, 2, mgid(1), FULL));
    assert!(joined.unwrap().1.proxy);
    let leave = |groups: &mut Groups, from| {
        groups.leave(&snapshot, host(&snapshot, from), &request(&snapshot, 2, mgid(1), FULL)).map(drop)
    };
    assert_eq!(leave(&mut groups, 4), Err(Status::SA_REQ_DENIED));
    assert_eq!(leave(&mut groups, 3), Ok(()));
}

/// B32: with the last full member the group goes, and all that are left in it; told once. A permanent group stays.
#[test]
fn b32_groups_end_with_their_last_full_member() {
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    let permanent = ipoib_broadcast(2, PKey(0xffff));
    let traits = creation_traits(&mut groups, &snapshot);
    groups.create_permanent(permanent, traits, 1024).unwrap();
    groups.take_events();
    for group in [mgid(1), permanent] {
        join(&mut groups, &snapshot, 0, group, FULL).unwrap();
        join(&mut groups, &snapshot, 1, group, SEND_ONLY).unwrap();
        join(&mut groups, &snapshot, 2, group, FULL).unwrap();
        leave(&mut groups, &snapshot, 0, group, FULL).unwrap();
        assert_eq!(groups.take_events(), [GroupEvent::Created(group, PKey(0xffff))]);
        leave(&mut groups, &snapshot, 2, group, FULL).unwrap();
        assert_eq!(groups.take_events(), [GroupEvent::Deleted(group, PKey(0xffff))]);
        assert!(groups.get(group).is_none_or(|group| group.members().is_empty()));
    }
    assert!(groups.get(mgid(1)).is_none());
    assert!(groups.get(permanent).is_some());
}

fn creation_traits(groups: &mut Groups, snapshot: &Snapshot) -> GroupTraits {
    join(groups, snapshot, 0, mgid(99), FULL).unwrap();
    let traits = groups.get(mgid(99)).unwrap().traits;
    leave(groups, snapshot, 0, mgid(99), FULL).unwrap();
    traits
}

/// B33: the smallest multicast table of the fabric bounds MLIDs; one asked for beyond it is invalid, none free is a lack.
#[test]
fn b33_mlids_stay_within_the_smallest_table() {
    let mut fabric = TREE.fabric();
    let spine = fabric.find(Tree::spine(0)).unwrap();
    fabric.node_mut(spine).switch.as_mut().unwrap().multicast_fdb_cap = 2;
    let snapshot = freeze(fabric);
    let mut groups = Groups::default();
    let mut ask = |n: u8, mlid| {
        let request = MemberRequest { mlid: Some(mlid), ..creation(&snapshot, n, mgid(n.into()), FULL) };
        groups.join(&snapshot, host(&snapshot, n), &request).map(|(group, _)| group.mlid.get())
    };
    for wrong in [0xc002, 0xc400, 0xbfff, 0xffff] {
        assert_eq!(ask(1, wrong), Err(Status::SA_REQ_INVALID), "{wrong:#x}");
    }
    assert_eq!(ask(1, 0xc001), Ok(0xc001));
    assert_eq!(ask(2, 0xc001), Err(Status::SA_REQ_INVALID), "taken");
    assert_eq!(ask(2, 0), Ok(0xc000), "0 asks for none");
    assert_eq!(join(&mut groups, &snapshot, 3, mgid(3), FULL), Err(Status::SA_NO_RESOURCES));
    leave(&mut groups, &snapshot, 1, mgid(1), FULL).unwrap();
    assert_eq!(join(&mut groups, &snapshot, 3, mgid(3), FULL), Ok(1));
}

/// B34: MTU in force towards the neighbour counts, for joins and for "largest available".
#[test]
fn b34_mtu_in_force() {
    let mut fabric = TREE.fabric();
    let narrow = fabric.find(Guid(Tree::host(0, 1).0 - 1)).unwrap();
    fabric.node_mut(narrow).port_mut(PortNum(1)).unwrap().mtu = Mtu::M2048;
    let snapshot = freeze(fabric);
    let mut groups = Groups::default();
    join(&mut groups, &snapshot, 0, mgid(1), FULL).unwrap();
    assert_eq!(groups.get(mgid(1)).unwrap().traits.mtu, Mtu::M4096);
    assert_eq!(join(&mut groups, &snapshot, 1, mgid(1), FULL), Err(Status::SA_REQ_INVALID));
    let largest = MemberRequest { mtu: Some(Bound::Best), ..creation(&snapshot, 1, mgid(2), FULL) };
    let (group, _) = groups.join(&snapshot, host(&snapshot, 1), &largest).unwrap();
    assert_eq!(group.traits.mtu, Mtu::M2048);
}

/// B36: what a request names must agree with the group; partitions compare without the membership bit.
#[test]
fn b36_named_properties_must_agree() {
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    join(&mut groups, &snapshot, 0, mgid(1), FULL).unwrap();
    let plain = request(&snapshot, 1, mgid(1), FULL);
    let mut ask = |request: MemberRequest| groups.join(&snapshot, host(&snapshot, 1), &request).err();
    assert_eq!(ask(MemberRequest { pkey: Some(PKey(0x7fff)), ..plain }), None);
    let refused = Some(Status::SA_REQ_INVALID);
    for pkey in [0, 0x8000, 0x8001, 1] {
        assert_eq!(ask(MemberRequest { pkey: Some(PKey(pkey)), ..plain }), refused, "P_Key {pkey:#x}");
    }
    assert_eq!(ask(MemberRequest { qkey: Some(QKey(0x1234)), ..plain }), refused);
    assert_eq!(ask(MemberRequest { sl: Some(3), ..plain }), refused);
    assert_eq!(ask(MemberRequest { tclass: Some(1), ..plain }), refused);
    assert_eq!(ask(MemberRequest { flow_label: Some(1), ..plain }), refused);
    assert_eq!(ask(MemberRequest { hop_limit: Some(1), ..plain }), refused);
    assert_eq!(ask(MemberRequest { mlid: Some(0xc005), ..plain }), refused);
    assert_eq!(ask(MemberRequest { mtu: Some(Bound::Greater(Mtu::M4096)), ..plain }), refused);
    assert_eq!(ask(MemberRequest { rate: Rate::from_wire(3).map(Bound::Exactly), ..plain }), refused);
    assert_eq!(ask(MemberRequest { join_state: JoinState(0), ..plain }), refused);
}

/// A port that has no key of the group's partition doesn't get in.
#[test]
fn b36_partitions_of_the_port_count() {
    let snapshot = TREE.snapshot();
    let table = |key: u16| vec![PKey(key), PKey(0x8005)];
    let tables = [(0, 0x8081), (1, 0x0081), (2, 0x8082)];
    let tables: HashMap<_, _> =
        tables.iter().map(|(n, key)| (host(&snapshot, *n).end, table(*key))).collect();
    let snapshot = snapshot.with_pkeys(&tables);
    let mut groups = Groups::default();
    let ask = |groups: &mut Groups, n| {
        let request = MemberRequest { pkey: Some(PKey(0x8081)), ..creation(&snapshot, n, mgid(1), FULL) };
        groups.join(&snapshot, host(&snapshot, n), &request).map(|_| ())
    };
    assert_eq!(
        ask(&mut groups, 2),
        Err(Status::SA_REQ_INVALID),
        "no member of the partition may make the group"
    );
    assert_eq!(ask(&mut groups, 0), Ok(()));
    assert_eq!(ask(&mut groups, 1), Ok(()), "a limited member with a full one");
    assert_eq!(ask(&mut groups, 2), Err(Status::SA_REQ_INVALID));
}

/// B41: own and default prefix are accepted, foreign ones refused.
#[test]
fn b41_prefixes_of_port_gids() {
    let mut snapshot = TREE.snapshot();
    snapshot.sm.gid_prefix = 0xfec0_0000_0000_0006;
    let mut groups = Groups::default();
    let guid = Tree::host(0, 0);
    for (prefix, answer) in [
        (Gid::DEFAULT_PREFIX, Ok(())),
        (0xfec0_0000_0000_0006, Ok(())),
        (0xfec0_0000_0000_0007, Err(Status::SA_INVALID_GID)),
    ] {
        let request =
            MemberRequest { port_gid: Gid::new(prefix, guid), ..creation(&snapshot, 0, mgid(1), FULL) };
        assert_eq!(groups.join(&snapshot, host(&snapshot, 0), &request).map(|_| ()), answer);
    }
}

/// What a group needs at its birth, and MGIDs that can't be.
#[test]
fn creation_is_checked() {
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    let port = host(&snapshot, 0);
    let whole = creation(&snapshot, 0, mgid(1), FULL);
    let mut ask =
        |request: MemberRequest| groups.join(&snapshot, port, &request).map(|(group, _)| group.mgid);
    for part in [
        MemberRequest { qkey: None, ..whole },
        MemberRequest { tclass: None, ..whole },
        MemberRequest { pkey: None, ..whole },
        MemberRequest { flow_label: None, ..whole },
        MemberRequest { sl: None, ..whole },
    ] {
        assert_eq!(ask(part), Err(Status::SA_INSUFFICIENT_COMPONENTS));
    }
    for state in [NON, SEND_ONLY, NON | SEND_ONLY] {
        assert_eq!(ask(MemberRequest { join_state: JoinState(state), ..whole }), Err(Status::SA_REQ_INVALID));
    }
    for wrong in [0xfe15_a01b_u128, 0xff25_a01b, 0xff12_a01b] {
        assert_eq!(ask(MemberRequest { mgid: Gid(wrong << 96 | 1), ..whole }), Err(Status::SA_REQ_INVALID));
    }
    let ipoib = Gid(0xff12_401b << 96 | 0xffff << 80 | 0x1234);
    assert_eq!(
        ask(MemberRequest { mgid: ipoib, ..whole }),
        Err(Status::SA_REQ_INVALID),
        "no broadcast group"
    );
    let made = ask(MemberRequest { mgid: Gid(0), scope: Some(5), ..whole }).unwrap();
    let again = ask(MemberRequest { mgid: Gid(0), scope: Some(5), ..whole }).unwrap();
    assert_eq!((made.0 >> 96, again.0 >> 96), (0xff15_a01b, 0xff15_a01b));
    assert_ne!(made, again);
}

/// RFC 4391: the broadcast group's MGID, and groups that must agree with it.
#[test]
fn ipoib_groups_agree_with_their_broadcast_group() {
    assert_eq!(ipoib_broadcast(2, PKey(0x7fff)).to_string(), "ff12:401b:ffff::ffff:ffff");
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    let traits = creation_traits(&mut groups, &snapshot);
    groups.create_permanent(ipoib_broadcast(2, PKey(0xffff)), traits, 1024).unwrap();
    let v6 = Gid(0xff12_601b << 96 | 0xffff << 80 | 1);
    let bad = MemberRequest { qkey: Some(QKey(1)), ..creation(&snapshot, 0, v6, FULL) };
    assert_eq!(groups.join(&snapshot, host(&snapshot, 0), &bad).err(), Some(Status::SA_REQ_INVALID));
    assert_eq!(join(&mut groups, &snapshot, 0, v6, FULL), Ok(1));
}

/// A port may join another one, but not change what that one did itself.
#[test]
fn proxies() {
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    let for_one = creation(&snapshot, 1, mgid(1), FULL);
    let (_, member) = groups.join(&snapshot, host(&snapshot, 0), &for_one).unwrap();
    assert!(member.proxy);
    let (_, member) = groups.join(&snapshot, host(&snapshot, 1), &for_one).unwrap();
    assert!(!member.proxy, "the port itself has spoken");
    assert_eq!(groups.join(&snapshot, host(&snapshot, 0), &for_one).err(), Some(Status::SA_REQ_DENIED));
    let leaving = request(&snapshot, 1, mgid(1), FULL);
    assert_eq!(groups.leave(&snapshot, host(&snapshot, 0), &leaving).err(), Some(Status::SA_REQ_DENIED));
    assert!(groups.leave(&snapshot, host(&snapshot, 1), &leaving).is_ok());
}

#[test]
fn leaving_takes_only_what_is_there() {
    let snapshot = TREE.snapshot();
    let mut groups = Groups::default();
    let invalid = Err(Status::SA_REQ_INVALID);
    assert_eq!(leave(&mut groups, &snapshot, 0, mgid(1), FULL), invalid);
    join(&mut groups, &snapshot, 0, mgid(1), FULL | NON).unwrap();
    assert_eq!(leave(&mut groups, &snapshot, 0, mgid(1), SEND_ONLY), invalid);
    assert_eq!(leave(&mut groups, &snapshot, 0, mgid(1), 0), invalid);
    assert_eq!(leave(&mut groups, &snapshot, 1, mgid(1), FULL), invalid);
    assert_eq!(leave(&mut groups, &snapshot, 0, mgid(1), NON), Ok(1));
}

proptest! {
    /// B31, B38: after any storm of joins and leaves the state is what a plain model says, and MLIDs are those of the groups.
    #[test]
    fn b38_storms_leave_what_a_plain_model_says(
        steps in proptest::collection::vec((any::<bool>(), 0..6_u8, 0..4_u128, 1..16_u8), 1..200),
    ) {
        let snapshot = TREE.snapshot();
        prop_assert_eq!(snapshot.observed.fabric.nodes().filter(|(_, n)| n.kind == NodeType::Ca).count(), 6);
        let mut groups = Groups::default();
        let mut model: BTreeMap<(u128, u8), u8> = BTreeMap::new();
        for (joins, n, group, state) in steps {
            let full = |model: &BTreeMap<(u128, u8), u8>| {
                model.iter().any(|((g, _), s)| *g == group && s & (FULL | SEND_ONLY_FULL) != 0)
            };
            let exists = full(&model);
            let entry = (group, n);
            if joins {
                let done = join(&mut groups, &snapshot, n, mgid(group), state).is_ok();
                prop_assert_eq!(done, exists || state & (FULL | SEND_ONLY_FULL) != 0);
                if done { *model.entry(entry).or_insert(0) |= state; }
            } else {
                let done = leave(&mut groups, &snapshot, n, mgid(group), state).is_ok();
                let has = model.get(&entry).copied().unwrap_or(0);
                prop_assert_eq!(done, has != 0 && state & !has == 0);
                if done {
                    model.insert(entry, has & !state);
                    model.retain(|_, state| *state != 0);
                    if !full(&model) { model.retain(|(g, _), _| *g != group); }
                }
            }
            let kept: BTreeMap<_, _> = groups.iter().flat_map(|group| {
                let members = group.members().iter();
                members.map(|(guid, m)| ((group.mgid.0 & 0xffff_ffff, *guid), m.join_state.0))
            }).collect();
            let expected: BTreeMap<_, _> =
                model.iter().map(|((g, n), s)| ((*g, Tree::host(n / 3, n % 3)), *s)).collect();
            prop_assert_eq!(kept, expected);
            prop_assert_eq!(groups.by_mlid.len(), groups.by_mgid.len());
        }
    }
}

fn told(doubts: u32, snapshot: &Snapshot, hosts: &[u8]) -> Told {
    let ports = hosts.iter().map(|n| host(snapshot, *n).guid).collect();
    Told { doubts, of_all: doubts, ports, ..Told::default() }
}

/// Hosts 0 to 3 are members in two ways, and nobody can vouch for that. Host 0 joins again in one of them, host 1 in both, host 2 in
/// none, host 3 is not told.
#[test]
fn doubted_memberships_end_that_a_port_does_not_confirm_after_it_was_told() {
    let snapshot = freeze(TREE.fabric());
    let mut groups = Groups::default();
    let group = mgid(1);
    let members = |groups: &Groups| -> Vec<u8> {
        let of = |n| Some(groups.get(group)?.members().get(&host(&snapshot, n).guid)?.join_state.0);
        (0..4).map(|n| of(n).unwrap_or(0)).collect()
    };
    for n in 0..4 {
        join(&mut groups, &snapshot, n, group, FULL).unwrap();
        join(&mut groups, &snapshot, n, group, NON).unwrap();
    }
    let at = |s| Timestamp::from_start(Duration::from_secs(s));
    groups.note_told(&told(0, &snapshot, &[0, 1, 2, 3]), at(1));
    groups.end_doubts(at(1000));
    assert_eq!(members(&groups), [3, 3, 3, 3], "nobody doubts what was there all the time");
    groups.note_told(&told(1, &snapshot, &[]), at(1001));
    assert_eq!(groups.deadline(), None, "nobody was told yet");
    join(&mut groups, &snapshot, 0, group, FULL).unwrap();
    groups.note_told(&told(1, &snapshot, &[0, 1, 2]), at(1010));
    join(&mut groups, &snapshot, 1, group, NON).unwrap();
    join(&mut groups, &snapshot, 1, group, FULL).unwrap();
    groups.note_told(&told(1, &snapshot, &[0, 1, 2]), at(1100));
    assert_eq!(groups.deadline(), Some(at(1130)), "it counts from when they were first told");
    groups.end_doubts(at(1129));
    assert_eq!(members(&groups), [3, 3, 3, 3]);
    let before = groups.generation();
    groups.end_doubts(at(1130));
    assert_eq!(members(&groups), [1, 3, 0, 3]);
    assert!(groups.generation() > before, "the switches hear of it");
    assert_eq!(groups.deadline(), None);
    // Doubted once more, all leave: the group ends, and nothing is left of the doubt.
    groups.take_events();
    groups.note_told(&told(2, &snapshot, &[0, 1, 3]), at(2000));
    groups.end_doubts(at(2120));
    assert!(groups.get(group).is_none());
    assert_eq!(groups.take_events(), [GroupEvent::Deleted(group, PKey(0xffff))]);
    assert_eq!(groups.deadline(), None);
}

/// A port that was out of sight may have left meanwhile; the others have not.
#[test]
fn memberships_of_a_port_that_was_out_of_sight_are_doubted_and_no_others() {
    let snapshot = freeze(TREE.fabric());
    let mut groups = Groups::default();
    for n in 0..2 {
        join(&mut groups, &snapshot, n, mgid(1), FULL).unwrap();
    }
    let of_port = [(host(&snapshot, 1).guid, 3)].into();
    let told = Told { of_all: 0, of_port, ..told(3, &snapshot, &[0, 1]) };
    for s in [1, 50] {
        groups.note_told(&told, Timestamp::from_start(Duration::from_secs(s)));
    }
    groups.end_doubts(Timestamp::from_start(Duration::from_secs(121)));
    let left: Vec<Guid> = groups.get(mgid(1)).unwrap().members().keys().copied().collect();
    assert_eq!(left, [host(&snapshot, 0).guid]);
}

/// Who was joined by another port is not the one that is told.
#[test]
fn who_was_joined_by_another_is_not_doubted() {
    let snapshot = freeze(TREE.fabric());
    let mut groups = Groups::default();
    let request = creation(&snapshot, 1, mgid(1), FULL);
    groups.join(&snapshot, host(&snapshot, 0), &request).unwrap();
    groups.note_told(&told(1, &snapshot, &[0, 1]), Timestamp::ZERO);
    assert_eq!(groups.deadline(), None);
}
