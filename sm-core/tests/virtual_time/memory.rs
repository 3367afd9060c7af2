//! What the manager remembers from before.

use mad::types::{Guid, Lid, PortNum};
use simulations::world::{Config, World};
use sm_core::plan::lids::{LidMemory, LidRange};
use sm_core::settings::SmSettings;
use sm_core::store::Restored;

use crate::rig::*;

fn with_memory(guids: &[u64]) -> Rig {
    let lid = |n: usize| LidRange::new(Lid::new(100 + n as u16).unwrap(), 0).unwrap();
    let lids: LidMemory = guids.iter().enumerate().map(|(n, guid)| (Guid(*guid), lid(n))).collect();
    let mut world = World::new(&two_switches(), Config::default());
    let sm = attach(&mut world, "H0", SmSettings::default(), Restored { lids, ..Restored::default() });
    Rig { world, sm }
}

fn port_guid(name: &str) -> u64 {
    let rig = Rig::new(&two_switches());
    rig.world.device(rig.node(name)).port(PortNum(1)).unwrap().guid
}

/// The state directory moved here with its host: our own port is in it, all others are elsewhere.
#[test]
fn a_memory_of_another_fabric_is_said_and_not_used() {
    let own = port_guid("H0");
    let mut rig = with_memory(&[own, 0xdead_0001, 0xdead_0002]);
    rig.settle();
    let said = |r: &sm_core::sm::Report| r.failures.iter().any(|f| f.contains("of another fabric"));
    assert!(said(&rig.reports()[0]), "{:?}", rig.reports()[0].failures);
    assert!(rig.lid("H0", 1) < 100, "given anew: {}", rig.lid("H0", 1));
    rig.assert_right();
    rig.assert_quiet();
}

/// One port in common is enough: the others may be away for now, and keep their LIDs.
#[test]
fn a_memory_with_one_port_of_this_fabric_is_used() {
    let other = port_guid("H3");
    let mut rig = with_memory(&[0xdead_0001, other]);
    let report = rig.settle();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert_eq!(rig.lid("H3", 1), 101);
}
