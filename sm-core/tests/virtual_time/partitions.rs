//! Partitions: P_Key tables of hosts, and the switch ports that keep others out.

use std::sync::Arc;

use mad::types::{PKey, PortNum};
use simulations::world::{Config, World};
use sm_core::partitions;
use sm_core::settings::SmSettings;

use crate::rig::*;

fn keys(world: &World, name: &str, port: u8) -> Vec<PKey> {
    let device = world.device(world.find_name(name).unwrap());
    let keys = device.port(PortNum(port)).unwrap().p_keys.iter().copied();
    keys.filter(|key| key.is_valid()).collect()
}

fn partitioned(text: &str) -> SmSettings {
    let mut settings = SmSettings::default();
    settings.plan.partitions = Arc::new(partitions::read(text).unwrap());
    settings
}

#[test]
fn members_get_their_keys_and_switches_enforce_them() {
    let fabric = tree(2, 1, 2);
    let plain = World::new(&fabric, Config::default());
    let guid = |name| plain.device(plain.find_name(name).unwrap()).port(PortNum(1)).unwrap().guid;
    let text = format!(
        "Default=0x7fff, ipoib : ALL=limited, SELF=full;\nlab=0x21 : {:#x}=full, {:#x}=limited;",
        guid("H1"),
        guid("H2")
    );
    let mut rig = Rig::with(&fabric, Config::default(), partitioned(&text), |_| ());
    let report = rig.settle();
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!(keys(&rig.world, "H0", 1), [PKey(0xffff)], "the subnet manager is a full member");
    assert_eq!(keys(&rig.world, "H1", 1), [PKey(0x7fff), PKey(0x8021)]);
    assert_eq!(keys(&rig.world, "H2", 1), [PKey(0x7fff), PKey(0x0021)]);
    assert_eq!(keys(&rig.world, "H3", 1), [PKey(0x7fff)]);
    let facing = rig.port_info("L0", 2);
    assert_eq!((facing.partition_enforcement_inbound(), facing.partition_enforcement_outbound()), (1, 1));
    let mut enforced = keys(&rig.world, "L0", 2);
    enforced.sort();
    assert_eq!(enforced, [PKey(0x7fff), PKey(0x8021)]);
    assert_eq!(rig.port_info("L0", 3).partition_enforcement_inbound(), 0, "links between switches carry all");
    rig.assert_right();
    rig.assert_quiet();
    let snapshot = rig.inline().sm.snapshot().unwrap();
    let port = |name| snapshot.port_by_guid(mad::types::Guid(guid(name))).unwrap();
    assert!(port("H1").shares_partition(port("H2")) && !port("H2").shares_partition(port("H3")));
}

/// Without a file everybody is in the default partition, as adapters are when they start: nothing is set.
#[test]
fn the_default_partition_costs_no_set() {
    let mut rig = Rig::new(&tree(2, 1, 2));
    rig.settle();
    assert_eq!((rig.sets(0x16), keys(&rig.world, "H3", 1)), (0, vec![PKey(0xffff)]));
}
