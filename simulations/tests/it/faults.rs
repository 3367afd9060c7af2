//! Faults one at a time, and what the subnet manager makes of them.

use std::time::Duration;

use mad::wire::Method;
use mad::wire::ids::sm as id;
use simulations::device::{Misbehaviour, Quirk};
use simulations::generate::{Options, Topology};
use simulations::world::{Config, End, World};
use sm_core::settings::SmSettings;
use sm_core::sm::Role;

use super::bring_up::{brought_up, settle};
use simulated_manager::Manager;

fn tree() -> (World, simulations::world::AgentId) {
    brought_up(&Topology::tree(4, 2, 2), &Options::default(), Config::default())
}

/// Runs for a while, so that traps arrive and what they start is done.
fn run(world: &mut World, seconds: u64) {
    world.run_until(world.now() + Duration::from_secs(seconds));
}

fn assert_right(world: &World) {
    assert_eq!(world.stats().idle_wakes, 0, "a manager spins");
    let verdict = world.check();
    assert!(verdict.is_right(false), "at {}:\n{verdict}", world.now());
}

#[test]
fn a_sweep_of_an_unchanged_fabric_sends_no_set() {
    let (mut world, _) = tree();
    world.reset_stats();
    run(&mut world, 60);
    assert!(world.stats().total_sent() > 0, "it does look");
    assert_eq!(world.stats().sets(), 0);
    assert_eq!(world.stats().client_reregisters, 0);
}

/// B20: a successor without memory reads what is there, and leaves it.
#[test]
fn b20_a_restart_on_an_unchanged_fabric_writes_no_table_and_moves_no_lid() {
    let (mut world, first) = tree();
    let lids = |world: &World| -> Vec<u16> {
        world.devices().iter().flat_map(|d| d.ports.iter().map(|p| p.info.base_lid.get())).collect()
    };
    let before = lids(&world);
    world.detach(first);
    world.reset_stats();
    let second = Manager::start(&mut world, "H0", SmSettings::default()).unwrap();
    settle(&mut world, second);
    assert_eq!(lids(&world), before);
    assert_eq!(world.stats().sent_smps(Method::SET, id::LINEAR_FORWARDING_TABLE), 0);
    assert_right(&world);
}

#[test]
fn a_lossy_fabric_comes_up_all_the_same() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let config = Config {
            seed,
            loss: 0.02,
            duplication: 0.02,
            jitter: Duration::from_millis(1),
            ..Config::default()
        };
        let (mut world, _) = brought_up(&Topology::tree(4, 2, 2), &Options::default(), config);
        world.config_mut().loss = 0.0;
        run(&mut world, 60);
        assert_right(&world);
    }
}

#[test]
fn cut_links_are_routed_around_and_used_again() {
    let (mut world, _) = tree();
    let leaf = world.find_name("S1_2").unwrap();
    for port in [3, 4] {
        assert!(world.unlink(End::new(leaf, port)).is_some());
        run(&mut world, 20);
        assert_right(&world);
        assert!(world.relink(End::new(leaf, port)));
        run(&mut world, 20);
        assert_right(&world);
    }
}

/// B04: a switch that loses its tables is configured from scratch.
#[test]
fn b04_power_cycles_of_a_leaf_a_spine_and_a_host_are_repaired() {
    let (mut world, _) = tree();
    for name in ["S1_1", "S2_0", "H3", "S1_0"] {
        let node = world.find_name(name).unwrap();
        world.power_off(node);
        run(&mut world, 5);
        world.power_on(node);
        run(&mut world, 40);
        assert_right(&world);
    }
}

#[test]
fn b04_a_switch_that_is_reset_in_the_middle_of_a_sweep_is_not_left_half_configured() {
    for micros in (0..4_000).step_by(150) {
        let fabric = simulations::generate::generate(&Topology::tree(4, 2, 2), &Options::default()).unwrap();
        let mut world = World::new(&fabric, Config::default());
        let manager = Manager::start(&mut world, "H0", SmSettings::default()).unwrap();
        let leaf = world.find_name("S1_2").unwrap();
        let when = world.now() + Duration::from_micros(micros);
        world.at(when, move |world| {
            world.power_off(leaf);
            world.power_on(leaf);
        });
        settle(&mut world, manager);
        run(&mut world, 60);
        let verdict = world.check();
        assert!(verdict.is_right(false), "reset after {micros} us:\n{verdict}");
    }
}

#[test]
fn swapped_cables_and_a_moved_host_are_followed() {
    let (mut world, _) = tree();
    let (a, b) = (world.find_name("H2").unwrap(), world.find_name("H5").unwrap());
    assert!(world.swap_cables(End::new(a, 1), End::new(b, 1)));
    run(&mut world, 30);
    assert_right(&world);
    let (old, host) = (world.find_name("H7").unwrap(), world.find_name("H3").unwrap());
    world.unlink(End::new(old, 1)).unwrap();
    run(&mut world, 30);
    let far = world.peer(End::new(host, 1)).unwrap();
    world.unlink(far).unwrap();
    assert!(world.connect(far, End::new(old, 1)));
    run(&mut world, 30);
    assert_right(&world);
}

#[test]
fn a_standby_takes_over_without_a_set_and_the_first_one_back_stands_by() {
    let (mut world, first) = tree();
    let standby = Manager::start(&mut world, "H5", SmSettings::default()).unwrap();
    run(&mut world, 60);
    let roles = |world: &World, id| world.agent::<Manager>(id).unwrap().role();
    assert_eq!((roles(&world, first), roles(&world, standby)), (Role::Master, Role::Standby));
    world.detach(first);
    world.reset_stats();
    run(&mut world, 120);
    assert_eq!(roles(&world, standby), Role::Master);
    assert_eq!(world.stats().sent_smps(Method::SET, id::LINEAR_FORWARDING_TABLE), 0);
    assert_right(&world);
}

/// B58: two masters that are joined: one is left.
#[test]
fn b58_after_a_split_and_merge_exactly_one_is_master() {
    let (mut world, first) = tree();
    let names = ["S1_3", "H6", "H7"];
    let part: Vec<u32> = names.iter().map(|name| world.find_name(name).unwrap()).collect();
    let second =
        Manager::start(&mut world, "H6", SmSettings { priority: 2, ..SmSettings::default() }).unwrap();
    run(&mut world, 60);
    let cables = world.split(|node| part.contains(&node));
    run(&mut world, 120);
    let role = |world: &World, id| world.agent::<Manager>(id).unwrap().role();
    assert_eq!((role(&world, first), role(&world, second)), (Role::Master, Role::Master));
    assert_eq!(world.merge(&cables), cables.len());
    run(&mut world, 120);
    let masters = [first, second].into_iter().filter(|id| role(&world, *id) == Role::Master).count();
    assert_eq!(masters, 1);
    assert_right(&world);
}

/// B05: who never answers is not routed over and holds nobody up.
#[test]
fn b05_a_silent_host_and_a_silent_switch_do_not_stop_the_rest() {
    for name in ["H3", "S2_1"] {
        let fabric = simulations::generate::generate(&Topology::tree(4, 2, 2), &Options::default()).unwrap();
        let mut world = World::new(&fabric, Config::default());
        let silent = world.find_name(name).unwrap();
        world.device_mut(silent).quirks.push(Quirk::always(Misbehaviour::Silence));
        let manager = Manager::start(&mut world, "H0", SmSettings::default()).unwrap();
        settle(&mut world, manager);
        let peers: Vec<End> = (1..=world.device(silent).num_ports())
            .filter_map(|port| world.peer(End::new(silent, port)))
            .collect();
        for peer in peers {
            world.unlink(peer);
        }
        run(&mut world, 60);
        world.power_off(silent);
        assert_right(&world);
    }
}

/// B01, B02: a twin GUID and a cable from a switch to itself neither end the manager nor spoil the others.
#[test]
fn b01_b02_twins_and_loopback_cables_are_lived_with() {
    let options = Options::default();
    let fabric = simulations::generate::generate(&Topology::tree(4, 2, 2), &options).unwrap();
    let mut world = World::new(&fabric, Config::default());
    let (leaf, host) = (world.find_name("S1_1").unwrap(), world.find_name("H5").unwrap());
    // Both uplinks of one leaf are pulled; the ports that are free now are joined with each other.
    world.unlink(End::new(leaf, 3)).unwrap();
    let spine = world.find_name("S2_0").unwrap();
    world.unlink(End::new(spine, 1)).unwrap();
    assert!(world.connect(End::new(spine, 1), End::new(spine, 2)));
    let mut twin = world.device(host).clone();
    twin.ports.iter_mut().for_each(|port| {
        port.set_state(mad::types::PortState::Down, mad::types::PortPhysState::Polling);
    });
    let twin = world.add_device(twin);
    assert!(world.connect(End::new(twin, 1), End::new(leaf, 3)));
    let manager = Manager::start(&mut world, "H0", SmSettings::default()).unwrap();
    run(&mut world, 60);
    assert_eq!(world.agent::<Manager>(manager).unwrap().role(), Role::Master);
    // All but the twins are in order once these are gone.
    world.power_off(twin);
    run(&mut world, 60);
    assert_right(&world);
}
