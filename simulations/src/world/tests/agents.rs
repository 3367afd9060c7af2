//! Programs on ports, and the seed that decides all that is random.

use super::*;

#[test]
fn two_agents_on_one_port_get_their_own_answers_and_a_frozen_one_finds_its_later() {
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let (one, two) = (probe(&mut world, "H0"), probe(&mut world, "H0"));
    world.freeze(two, true);
    for agent in [one, two] {
        let mad = directed(Method::GET, NodeInfo::ID, 0, &[1]).into_mad();
        world.send(agent, &Datagram { address: Address::DIRECTED, mad });
    }
    assert_eq!((take(&mut world, one).len(), take(&mut world, two).len()), (1, 0));
    world.freeze(two, false);
    assert_eq!(take(&mut world, two).len(), 1);
    assert!(world.detach(two).is_some());
    assert!(world.agent::<Probe>(two).is_none());
    // SMInfo goes to an agent, by whichever way; who has none on the port hears nothing.
    let other = probe(&mut world, "H1");
    let sm_info = Smp::lid_routed(Method::GET, ids::sm::SM_INFO, 0);
    world.send(other, &Datagram { address: Address::smp(1), mad: sm_info.into_mad() });
    let got = take(&mut world, one);
    assert_eq!((got.len(), got[0].address.lid), (1, 2));
    let mut reply = got[0].mad;
    reply.header.method = Method::GET_RESP.0;
    world.send(one, &Datagram { address: got[0].address, mad: reply });
    assert_eq!(take(&mut world, other).len(), 1);
}

/// The same seed gives the same run, byte for byte; another seed another one.
#[test]
fn a_seed_decides_loss_duplication_and_order() {
    let run = |seed| {
        let fabric = generate(&Topology::tree(3, 2, 2), &Options::default()).unwrap();
        let config = Config {
            seed,
            loss: 0.1,
            duplication: 0.1,
            jitter: Duration::from_micros(50),
            ..Config::default()
        };
        let mut world = World::new(&fabric, config);
        let trace = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&trace);
        world.observe(Box::new(move |now, at, packet| sink.lock().unwrap().push((now, at, packet.mad))));
        let agent = probe(&mut world, "H0");
        for round in 0..200 {
            let path: &[u8] = [&[1][..], &[1, 3], &[1, 3, 2], &[1, 4, 3, 1]][round % 4];
            let mad = directed(Method::GET, NodeInfo::ID, 0, path).into_mad();
            world.send(agent, &Datagram { address: Address::DIRECTED, mad });
        }
        let answers = take(&mut world, agent).len();
        drop(world);
        (Arc::into_inner(trace).unwrap().into_inner().unwrap(), answers)
    };
    let seed = 3;
    println!("seed {seed}");
    let (first, answers) = run(seed);
    assert!(answers > 50 && answers < 200, "{answers}");
    assert_eq!(run(seed).0, first);
    assert_ne!(run(seed + 1).0, first);
}
