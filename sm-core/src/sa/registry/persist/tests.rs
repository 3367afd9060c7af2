//! Entries put back are what was registered.

use std::collections::BTreeMap;

use mad::types::Timestamp;
use mad::wire::sa::GuidInfoRecord;
use proptest::prelude::*;
use std::time::Duration;

use super::*;
use crate::sa::records::Context;
use crate::sa::registry::MemberRequest;
use crate::snapshot::{EndPort, Snapshot};
use crate::testing::{Tree, freeze};

const TREE: Tree = Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 };
const EPOCH: Epoch = Epoch(1_700_000_000_000);

fn host(snapshot: &Snapshot, n: u8) -> &EndPort {
    snapshot.port_by_guid(Tree::host(n / 3, n % 3)).unwrap()
}

/// One request of host `n`, of whatever kind; refusals are fine.
fn act(
    registry: &mut Registry,
    snapshot: &Snapshot,
    (n, kind, group, bits): (u8, u8, u8, u8),
    now: Timestamp,
) {
    let port = host(snapshot, n % 6);
    let member = MemberRequest {
        mgid: Gid(0xff15_a01b << 96 | u128::from(group % 4)),
        port_gid: snapshot.gid_of(port),
        join_state: JoinState(bits & 0xf),
        qkey: Some(QKey(0xb1b)),
        tclass: Some(3),
        pkey: Some(mad::types::PKey::DEFAULT_FULL),
        flow_label: Some(0x12345),
        sl: Some(1),
        hop_limit: Some(7),
        ..MemberRequest::default()
    };
    let mut service = <ServiceRecord as zerocopy::FromZeros>::new_zeroed();
    service.service_id.set(u64::from(group));
    service.service_gid.set(snapshot.gid_of(port).0);
    service.service_lease.set(u32::from(bits) + 1);
    let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID | ServiceRecord::SERVICE_LEASE;
    let mut inform = <InformInfo as zerocopy::FromZeros>::new_zeroed();
    inform.is_generic = 1;
    inform.lid_range_begin.set(InformInfo::ALL);
    inform.notice_type.set(InformInfo::ALL);
    inform.trap_number_or_device_id.set(64 + u16::from(group % 4));
    inform.subscribe = u8::from(bits % 3 != 0);
    let route = GlobalRoute {
        gid: snapshot.gid_of(port),
        gid_index: 1,
        hop_limit: 2,
        traffic_class: 3,
        flow_label: 4,
    };
    let address = Address {
        grh: (group % 2 == 0).then_some(route),
        path_bits: 1,
        ..Address::gsi(port.lid.get(), ServiceLevel(2))
    };
    let context = Context { snapshot, requester: port, trusted: false };
    let mut wanted = <GuidInfoRecord as zerocopy::FromZeros>::new_zeroed();
    wanted.lid.set(port.lid.get());
    wanted.guid_info.guids.iter_mut().for_each(|guid| guid.set(u64::from(group % 8)));
    let places = GuidInfoRecord::LID | GuidInfoRecord::BLOCK_NUM | GuidInfoRecord::GUID_0 << (1 + bits % 7);
    match kind % 10 {
        0..=2 => drop(registry.groups.join(snapshot, port, &member).map(drop)),
        3 => drop(registry.groups.leave(snapshot, port, &member)),
        4 => drop(registry.services.set(snapshot, port, &service, named, now)),
        5 => drop(registry.services.delete(snapshot, port, &service, named)),
        6 => drop(registry.subscriptions.set(port, address, &inform, false, now)),
        7 => drop(registry.aliases.set(&context, &registry.groups, &wanted, places)),
        8 => drop(registry.aliases.delete(&context, &registry.groups, &wanted, places)),
        _ => {
            registry.aliases.remove_port(port.guid);
            registry.groups.remove_port(port.guid);
            registry.services.remove_port(port.guid);
            registry.subscriptions.remove_port(port.guid);
        }
    }
    registry.expire(now);
}

fn seen(registry: &Registry, now: Timestamp) -> impl PartialEq + std::fmt::Debug {
    let groups: Vec<Group> = registry.groups.iter().cloned().collect();
    let services: Vec<ServiceRecord> = registry.services.records(now).collect();
    let subscriptions: Vec<_> =
        registry.subscriptions.iter().map(|(id, s)| (id, s.address, s.port, s.inform)).collect();
    let aliases: BTreeMap<Guid, Guid> = registry.aliases.table().iter().collect();
    (groups, services, subscriptions, aliases)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// B48: whenever the manager ends, what is put back is what was there, leases included, and the demand for switches
    /// is the same.
    #[test]
    fn b48_what_is_put_back_is_what_was_registered(
        actions in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..60),
        end in 0..60_usize,
        away in 0..300_u64,
    ) {
        let snapshot = freeze(TREE.fabric());
        let mut registry = Registry::default();
        let mut entries = Entries::new();
        let mut now = Timestamp::ZERO;
        for action in actions.into_iter().take(end + 1) {
            now += Duration::from_secs(1);
            act(&mut registry, &snapshot, action, now);
            registry.take_changes(EPOCH).into_iter().for_each(|change| change.apply_to(&mut entries));
        }
        // The next run starts `away` seconds after the end of this one.
        let later = Epoch(EPOCH.to_unix_ms(now) + away * 1000);
        let mut again = Registry::default();
        prop_assert_eq!(again.restore(&entries, later, Timestamp::ZERO), 0);
        registry.expire(now + Duration::from_secs(away));
        prop_assert_eq!(seen(&again, Timestamp::ZERO), seen(&registry, now + Duration::from_secs(away)));
        prop_assert_eq!(again.groups.demand().groups, registry.groups.demand().groups);
        for n in 0..6 {
            let blocks = |registry: &Registry| {
                let table = registry.aliases.table();
                table.blocks_of(host(&snapshot, n).guid).map(|(n, guids)| (n, *guids)).collect::<Vec<_>>()
            };
            prop_assert_eq!(blocks(&again), blocks(&registry), "emptied ones too: ports are told so");
        }
        for change in again.take_changes(later) {
            prop_assert!(change.value.is_none(), "only ended leases are changes: {:?}", change);
        }
    }

    /// Bytes of whatever kind are refused, not obeyed, and never panic.
    #[test]
    fn damaged_entries_are_refused(kind in 1..=7_u8, id in prop::collection::vec(any::<u8>(), 0..40), value in prop::collection::vec(any::<u8>(), 0..260)) {
        let kind = Kind::from_number(kind).unwrap();
        let entries = Entries::from([(Key::new(kind, id), value)]);
        let mut registry = Registry::default();
        prop_assert!(registry.restore(&entries, EPOCH, Timestamp::ZERO) <= 1);
    }
}

/// Members as they were kept before aliases could join: known by their PortGUID.
#[test]
fn members_of_earlier_versions_are_put_back() {
    let snapshot = freeze(TREE.fabric());
    let mut registry = Registry::default();
    act(&mut registry, &snapshot, (1, 0, 0, 1), Timestamp::ZERO);
    let mut entries = Entries::new();
    registry.take_changes(EPOCH).into_iter().for_each(|change| change.apply_to(&mut entries));
    let members = entries.iter_mut().filter(|(key, _)| key.kind == Kind::Member);
    for (_, value) in members {
        value.truncate(value.len() - size_of::<U64>());
    }
    let mut again = Registry::default();
    assert_eq!(again.restore(&entries, EPOCH, Timestamp::ZERO), 0);
    assert_eq!(seen(&again, Timestamp::ZERO), seen(&registry, Timestamp::ZERO));
}
