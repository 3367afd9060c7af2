//! From nothing to a working fabric, on every kind of network.

use std::time::Duration;

use simulations::generate::{Options, Topology, generate};
use simulations::world::{Agent, AgentId, Config, World};
use sm_core::settings::SmSettings;
use sm_core::sm::Role;

use simulated_manager::Manager;

/// A world with a subnet manager on H0, run until that has settled.
pub(crate) fn brought_up(topology: &Topology, options: &Options, config: Config) -> (World, AgentId) {
    let fabric = generate(topology, options).unwrap();
    let mut world = World::new(&fabric, config);
    let manager = Manager::start(&mut world, "H0", SmSettings::default()).unwrap();
    settle(&mut world, manager);
    (world, manager)
}

/// Runs until the subnet manager has settled, for a minute at most.
pub(crate) fn settle(world: &mut World, manager: AgentId) {
    let until = world.now() + Duration::from_secs(60);
    let settled = world.run_while(until, |world| {
        let manager = world.agent::<Manager>(manager).unwrap();
        !manager.reports().is_empty() && manager.is_settled()
    });
    assert!(settled, "not settled at {}", world.now());
}

#[test]
fn every_kind_of_network_comes_up_with_right_tables_and_no_loop_on_the_way() {
    let topologies = [
        Topology::line(3),
        Topology::tree(4, 2, 3),
        Topology::Xgft { m: vec![4, 5], w: vec![1, 2], p: vec![1, 2] },
        Topology::fat_tree(&[3, 3, 3], &[1, 3, 3]),
        Topology::Torus { dims: vec![4, 3], hosts: 2 },
        Topology::RandomRegular { switches: 12, degree: 4, hosts: 2 },
        Topology::Dragonfly { p: 2, a: 4, h: 2, g: 5 },
        Topology::DragonflyPlus { p: 2, leaves: 2, spines: 2, h: 1, g: 3 },
        Topology::HyperX { dims: vec![3, 3], width: 1, hosts: 2 },
        Topology::Kautz { degree: 2, diameter: 2, hosts: 1 },
    ];
    for topology in topologies {
        for options in [Options::default(), Options { dual_port: true, ..Options::default() }] {
            let (world, manager) = brought_up(&topology, &options, Config::default());
            let verdict = world.check();
            assert!(verdict.is_right(false), "{topology:?}:\n{verdict}");
            assert_eq!(world.agent::<Manager>(manager).unwrap().role(), Role::Master);
        }
    }
}
