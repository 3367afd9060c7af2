//! Alias GUIDs from the host that asks for one to the adapter that holds it, and across managers.

use std::time::Duration;

use mad::transport::{Address, Datagram};
use mad::types::{PortNum, ServiceLevel, Timestamp};
use mad::wire::sa::{GuidInfoRecord, SaMad};
use mad::wire::{Attribute, Method, Status};
use simulations::generate::{Options, Topology, generate};
use simulations::scenario::ManagerSpec;
use simulations::world::{Agent, AgentId, AgentOutput, Config, End, World};
use zerocopy::FromZeros;

use simulated_manager::Manager;

/// Sends one datagram and keeps what is answered.
struct Asker {
    question: Option<Datagram>,
    answers: Vec<SaMad>,
}

impl Agent for Asker {
    fn receive(&mut self, datagram: Datagram, _now: Timestamp) {
        self.answers.push(SaMad::from_mad(datagram.mad));
    }

    fn poll(&mut self, _now: Timestamp) -> Option<AgentOutput> {
        self.question.take().map(AgentOutput::Send)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.question.is_some().then_some(Timestamp::ZERO)
    }
}

fn run(world: &mut World, seconds: u64) {
    world.run_until(world.now() + Duration::from_secs(seconds));
}

fn end(world: &World, name: &str) -> End {
    End::new(world.find_name(name).unwrap(), 1)
}

/// A host asks the manager that it was told of for the alias `guid` at place 3 of its port; what it is answered.
fn ask_for(world: &mut World, name: &str, guid: u64) -> Vec<(Status, u64)> {
    let end = end(world, name);
    let port = world.device(end.node).port(PortNum(1)).unwrap().info;
    let mut record = GuidInfoRecord::new_zeroed();
    record.lid = port.base_lid;
    record.guid_info.guids[3].set(guid);
    let mask = GuidInfoRecord::LID | GuidInfoRecord::BLOCK_NUM | GuidInfoRecord::GUID_0 << 3;
    let mut mad = SaMad::request(Method::SET, GuidInfoRecord::ID, mask);
    mad.header.transaction_id.set(1);
    assert!(record.encode(&mut mad.data));
    let address = Address::gsi(port.master_sm_lid.get(), ServiceLevel(0));
    let question = Some(Datagram { address, mad: mad.into_mad() });
    let asker = world.attach(end, Box::new(Asker { question, answers: Vec::new() })).unwrap();
    run(world, 1);
    let answers = &world.agent::<Asker>(asker).unwrap().answers;
    let said = |mad: &SaMad| {
        let guid = GuidInfoRecord::decode(&mad.data).unwrap().guid_info.guids[3].get();
        (mad.header.status(), guid)
    };
    let said = answers.iter().map(said).collect();
    world.detach(asker);
    said
}

/// What the adapter holds at place 3.
fn held(world: &World, name: &str) -> u64 {
    let end = end(world, name);
    let port = world.device(end.node).port(PortNum(1)).unwrap();
    port.alias_guids.get(3).copied().unwrap_or(0)
}

fn power_cycle(world: &mut World, name: &str) {
    let node = end(world, name).node;
    world.power_off(node);
    run(world, 1);
    world.power_on(node);
    run(world, 30);
}

/// The adapter holds what its host was given, another host can't have it, and a standby that takes over knows of it, so that an
/// adapter that is reset after that gets it back.
#[test]
fn b49_a_host_gets_its_alias_and_keeps_it_under_the_next_manager() {
    let fabric = generate(&Topology::tree(3, 2, 4), &Options::default()).unwrap();
    let mut world = World::new(&fabric, Config::default());
    let mut start = Manager::of_scenario();
    let mut manager = |world: &mut World, node: &str, priority| -> AgentId {
        let secret = Some("a secret of managers".to_owned());
        let spec = ManagerSpec { node: node.to_owned(), priority, secret, ..ManagerSpec::default() };
        let agent = start(&spec, world.now()).unwrap();
        world.attach(end(world, node), agent).unwrap()
    };
    let first = manager(&mut world, "H0", 5);
    run(&mut world, 30);
    let standby = manager(&mut world, "H9", 3);
    run(&mut world, 30);

    assert_eq!(ask_for(&mut world, "H5", 0xa11a5), [(Status::OK, 0xa11a5)]);
    assert_eq!(held(&world, "H5"), 0xa11a5);
    assert_eq!(ask_for(&mut world, "H6", 0xa11a5), [(Status::OK, 0)], "it is H5's");
    let [(status, given)] = ask_for(&mut world, "H6", 0)[..] else { panic!("one answer") };
    assert_eq!((status, given >> 40, held(&world, "H6")), (Status::OK, 0x1405, given));
    power_cycle(&mut world, "H5");
    assert_eq!(held(&world, "H5"), 0xa11a5);

    run(&mut world, 10);
    world.detach(first);
    run(&mut world, 120);
    assert!(world.agent::<Manager>(standby).unwrap().is_master());
    power_cycle(&mut world, "H5");
    assert_eq!((held(&world, "H5"), held(&world, "H6")), (0xa11a5, given));
    assert_eq!(ask_for(&mut world, "H7", given), [(Status::OK, 0)], "the new one knows whose it is");
}
