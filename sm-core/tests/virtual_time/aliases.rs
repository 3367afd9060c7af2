//! Alias GUIDs in the ports: by difference, after resets, and what is told of a port that does not take them.

use std::sync::Arc;
use std::time::Duration;

use mad::types::{Guid, PortNum};
use mad::wire::smp::GuidInfo;
use mad::wire::{Attribute, Method};
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::{Config, World};
use sm_core::aliases::AliasTable;
use sm_core::settings::SmSettings;
use sm_core::sm::Event;
use sm_core::store::Restored;

use crate::rig::*;

fn port_guid(rig: &Rig, name: &str) -> Guid {
    Guid(rig.world.device(rig.node(name)).port(PortNum(1)).unwrap().guid)
}

/// The aliases in a simulated adapter, with their places.
fn held(rig: &Rig, name: &str) -> Vec<(usize, u64)> {
    let port = rig.world.device(rig.node(name)).port(PortNum(1)).unwrap();
    let places = port.alias_guids.iter().copied().enumerate().skip(1);
    places.filter(|(_, guid)| *guid != 0).collect()
}

fn tell(rig: &mut Rig, table: &AliasTable) {
    rig.tell(Event::Aliases(Arc::new(table.clone())));
    rig.run(Duration::from_secs(1));
}

/// What the SA gave is in the adapter shortly after, one Set for each block that differs and none for others; what it took away is
/// not. An adapter that was reset gets its aliases back before its link is raised.
#[test]
fn b49_the_fabric_is_written_afterwards_and_by_difference() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let (h2, h3) = (port_guid(&rig, "H2"), port_guid(&rig, "H3"));
    let mut table = AliasTable::default();
    assert!(
        table.put(h2, 0, 1, Guid(0xa1)) && table.put(h2, 2, 5, Guid(0xa2)) && table.put(h3, 0, 7, Guid(0xa3))
    );
    rig.world.reset_stats();
    tell(&mut rig, &table);
    assert_eq!(held(&rig, "H2"), [(1, 0xa1), (21, 0xa2)]);
    assert_eq!(held(&rig, "H3"), [(7, 0xa3)]);
    assert_eq!((rig.sets(GuidInfo::ID), rig.world.stats().sets()), (3, 3), "and nothing else is sent");
    assert_eq!(rig.world.stats().client_reregisters, 0);
    assert!(rig.last().failures.is_empty());

    rig.world.reset_stats();
    assert!(table.put(h2, 2, 5, Guid::NONE));
    tell(&mut rig, &table);
    assert_eq!(held(&rig, "H2"), [(1, 0xa1)]);
    assert_eq!(rig.world.stats().sets(), 1);
    rig.assert_quiet();

    let node = rig.node("H2");
    rig.world.power_off(node);
    rig.run(Duration::from_secs(1));
    rig.world.power_on(node);
    assert_eq!(held(&rig, "H2"), []);
    rig.run(Duration::from_secs(30));
    assert_eq!(held(&rig, "H2"), [(1, 0xa1)]);
    rig.assert_right();
    rig.assert_quiet();
}

/// A block that is not taken is named in the report, and tried again.
#[test]
fn b49_a_failed_write_is_told_and_repeated() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let h2 = port_guid(&rig, "H2");
    let mut table = AliasTable::default();
    assert!(table.put(h2, 0, 1, Guid(0xa1)));
    let node = rig.node("H2");
    let refuse = Misbehaviour::Refuse { status: 0x1c, garbage: true };
    rig.world.device_mut(node).quirks = vec![Quirk::always(refuse).on(Method::SET, GuidInfo::ID)];
    tell(&mut rig, &table);
    let failures = rig.reports().iter().flat_map(|report| &report.failures);
    assert!(failures.clone().any(|f| f.contains("Guids") && f.contains("H2")), "{:?}", rig.last().failures);
    rig.world.device_mut(node).quirks.clear();
    rig.run(Duration::from_secs(60));
    assert_eq!(held(&rig, "H2"), [(1, 0xa1)]);
    assert!(rig.last().failures.is_empty());
}

/// A manager that goes on from its state, or with a copy of another's, brings them back at once, also that a block is empty now.
#[test]
fn b48_aliases_outlive_the_manager() {
    let mut world = World::new(&two_switches(), Config::default());
    let guid = |world: &World, name: &str| {
        Guid(world.device(world.find_name(name).unwrap()).port(PortNum(1)).unwrap().guid)
    };
    let (h2, h3) = (guid(&world, "H2"), guid(&world, "H3"));
    let mut table = AliasTable::default();
    assert!(table.put(h2, 1, 0, Guid(0xa1)) && table.put(h3, 0, 2, Guid(0xdead)));
    assert!(table.put(h3, 0, 2, Guid::NONE));
    let stale = world.find_name("H3").unwrap();
    world.device_mut(stale).port_mut(PortNum(1)).unwrap().alias_guids = vec![0, 0, 0xdead];
    let restored = Restored { aliases: Arc::new(table), ..Restored::default() };
    let sm = attach(&mut world, "H0", SmSettings::default(), restored);
    let mut rig = Rig { world, sm };
    rig.settle();
    assert_eq!((held(&rig, "H2"), held(&rig, "H3")), (vec![(8, 0xa1)], vec![]));
    rig.assert_quiet();
}
