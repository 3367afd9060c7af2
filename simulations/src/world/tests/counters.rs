//! Counters as devices keep them.

use super::*;

/// Counts, sums and clears like an adapter; B78: all ports at once.
#[test]
fn performance_counters_count_saturate_grow_and_are_cleared_by_selection() {
    use crate::device::Counter;
    use mad::wire::perf::{ALL_PORTS, PerfMad, PortCounters, PortCountersExtended};
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let leaf = world.find_name("S1_0").unwrap();
    let lid = world.device(leaf).ports[0].info.base_lid.get();
    let ask = |world: &mut World, method: Method, attribute: u16, data: &[u8]| {
        let mut request = PerfMad::request(method, attribute);
        request.data[..data.len()].copy_from_slice(data);
        let address = Address::gsi(lid, ServiceLevel(0));
        world.send(agent, &Datagram { address, mad: request.into_mad() });
        let [answer] = take(world, agent)[..] else { panic!("no answer") };
        PerfMad::from_mad(answer.mad)
    };
    let select = |port: u8| [0, port, 0, 0];
    let before = ask(&mut world, Method::GET, PortCounters::ID, &select(1));
    let before = PortCounters::decode(&before.data).unwrap();
    assert_eq!((before.port_select, before.port_rcv_pkts.get(), before.port_rcv_data.get()), (1, 1, 72));
    let counters = &mut world.device_mut(leaf).ports[2].counters;
    counters.set(Counter::SymbolErrorCounter, 70_000);
    counters.set(Counter::LinkDownedCounter, 3);
    counters.grow(Counter::PortXmitWait, 10.0, Timestamp::ZERO);
    let start = world.now();
    world.run_until(Timestamp::from_start(Duration::from_millis(1_050)).max(start));
    let got = PortCounters::decode(&ask(&mut world, Method::GET, PortCounters::ID, &select(2)).data).unwrap();
    assert_eq!(
        (got.symbol_error_counter.get(), got.link_downed_counter, got.port_xmit_wait.get()),
        (0xffff, 3, 10)
    );
    let wide = ask(&mut world, Method::GET, PortCountersExtended::ID, &select(ALL_PORTS));
    let wide = PortCountersExtended::decode(&wide.data).unwrap();
    assert_eq!((wide.symbol_error_counter.get(), wide.port_xmit_wait.get()), (70_000, 10));
    assert!(wide.port_rcv_pkts.get() >= 3);
    // Only SymbolErrorCounter is selected.
    let cleared = ask(&mut world, Method::SET, PortCounters::ID, &[0, 2, 0, 1]);
    let cleared = PortCounters::decode(&cleared.data).unwrap();
    assert_eq!((cleared.symbol_error_counter.get(), cleared.link_downed_counter), (0, 3));
    let refused = ask(&mut world, Method::GET, PortCounters::ID, &select(77));
    assert_eq!(refused.header.status(), mad::wire::Status::INVALID_FIELD);
    assert_eq!(Counter::from_name("portxmitwait"), Some(Counter::PortXmitWait));
    // What the tables can't forward is counted where it came in.
    let mut smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
    smp.header.transaction_id.set(9);
    world.send(agent, &Datagram { address: Address::smp(500), mad: smp.into_mad() });
    assert_eq!(world.device(leaf).ports[1].counters.get(Counter::PortRcvSwitchRelayErrors), 1);
}
