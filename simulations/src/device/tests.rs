use std::time::Duration;

use mad::types::{DirectedPath, Guid, LinkSpeedSet, PortPhysState, PortState, Timestamp};
use mad::wire::ids::sm as id;
use mad::wire::smp::{PortInfo, Smp, SwitchInfo};
use mad::wire::{Attribute, Method, Status};
use routing::fabric::{Node, SwitchFacts};

use super::*;

const NOW: Timestamp = Timestamp(1);

/// A switch with ports 1 to 8 in Init.
pub(super) fn switch() -> Device {
    let mut node = Node::new(NodeType::Switch, Guid(0x10), "sw", 8);
    node.switch = Some(SwitchFacts { linear_fdb_cap: 1024, multicast_fdb_cap: 64, enhanced_port_0: false });
    up(Device::new(&node))
}

pub(super) fn adapter() -> Device {
    up(Device::new(&Node::new(NodeType::Ca, Guid(0x20), "ca", 2)))
}

pub(super) fn up(mut device: Device) -> Device {
    for port in device.ports.iter_mut().skip(1) {
        port.set_state(PortState::Init, PortPhysState::LinkUp);
    }
    device
}

pub(super) fn request(method: Method, attribute: u16, modifier: u32) -> Smp {
    Smp::directed(method, attribute, modifier, &DirectedPath::LOCAL)
}

/// Asks a device; status, data and effects.
pub(super) fn ask(device: &mut Device, smp: &Smp) -> Option<(Status, [u8; 64], Vec<Effect>)> {
    let mut effects = Vec::new();
    let answer = device.subnet_management(PortNum(1), smp, NOW, &mut effects)?;
    assert_eq!(answer.smp.header.method(), Method::GET_RESP);
    Some((answer.smp.header.status(), answer.smp.data, effects))
}

pub(super) fn get(device: &mut Device, attribute: u16, modifier: u32) -> Option<(Status, [u8; 64])> {
    ask(device, &request(Method::GET, attribute, modifier)).map(|(status, data, _)| (status, data))
}

pub(super) fn set(
    device: &mut Device,
    attribute: u16,
    modifier: u32,
    data: &[u8; 64],
) -> (Status, Vec<Effect>) {
    let mut smp = request(Method::SET, attribute, modifier);
    smp.data = *data;
    ask(device, &smp).map(|(status, _, effects)| (status, effects)).unwrap()
}

pub(super) fn port_info(device: &mut Device, modifier: u32) -> PortInfo {
    let (status, data) = get(device, PortInfo::ID, modifier).unwrap();
    assert!(status.is_ok());
    PortInfo::decode(&data).unwrap()
}

/// Sets PortInfo as read, changed by `change`.
pub(super) fn change_port(
    device: &mut Device,
    port: u32,
    change: impl FnOnce(&mut PortInfo),
) -> (Status, Vec<Effect>) {
    let mut info = port_info(device, port);
    info.set_port_state_raw(0);
    info.set_port_phys_state_raw(0);
    if info.lid().is_none() {
        info.base_lid.set(5);
    }
    change(&mut info);
    let mut data = [0; 64];
    assert!(info.encode(&mut data));
    set(device, PortInfo::ID, port, &data)
}

/// The whole table of port state transitions that a Set can ask for: current state by asked value, and what comes of it.
#[test]
fn a_port_goes_up_one_step_at_a_time_and_refuses_every_other_transition() {
    let states = [PortState::Down, PortState::Init, PortState::Armed, PortState::Active];
    for now in states {
        for asked in 0..16_u8 {
            let mut device = switch();
            device.ports[3].set_state(now, PortPhysState::LinkUp);
            let before = device.ports[3].info;
            let (status, effects) = change_port(&mut device, 3, |info| info.set_port_state_raw(asked));
            let state = device.ports[3].state();
            match (now, asked) {
                (_, 0) => assert_eq!((status, state, effects.len()), (Status::OK, now, 0)),
                (_, 1) => assert_eq!((status, effects), (Status::OK, vec![Effect::Retrain(PortNum(3))])),
                (PortState::Init | PortState::Armed, 3) => {
                    assert_eq!((status, state), (Status::OK, PortState::Armed));
                }
                (PortState::Armed | PortState::Active, 4) => {
                    assert_eq!((status, state), (Status::OK, PortState::Active));
                }
                _ => {
                    assert_eq!(status, Status::INVALID_FIELD, "{now:?} to {asked}");
                    assert_eq!(device.ports[3].info, before, "{now:?} to {asked}");
                }
            }
        }
    }
}

#[test]
fn a_physical_state_is_set_only_together_with_down_and_only_to_sleep_polling_or_disabled() {
    for phys in 0..16_u8 {
        let mut device = switch();
        let (status, effects) = change_port(&mut device, 2, |info| {
            info.set_port_state_raw(1);
            info.set_port_phys_state_raw(phys);
        });
        let expected = match phys {
            0..=2 => vec![Effect::Retrain(PortNum(2))],
            3 => vec![Effect::Disable(PortNum(2))],
            _ => Vec::new(),
        };
        assert_eq!((status.is_ok(), effects), (phys < 4, expected), "{phys}");
        let (status, _) = change_port(&mut device, 2, |info| info.set_port_phys_state_raw(phys));
        assert_eq!(status.is_ok(), phys == 0, "{phys}");
    }
}

#[test]
fn illegal_values_get_0x1c_and_change_nothing_and_legal_ones_are_kept() {
    type Change = fn(&mut PortInfo);
    let illegal: [(&str, Change); 9] = [
        ("LID 0", |i| i.base_lid.set(0)),
        ("multicast LID", |i| i.base_lid.set(0xc000)),
        ("LID not aligned to LMC", |i| i.set_lmc(1)),
        ("SM LID", |i| i.master_sm_lid.set(0xffff)),
        ("MTU 0", |i| i.set_neighbor_mtu_raw(0)),
        ("MTU beyond capability", |i| i.set_neighbor_mtu_raw(6)),
        ("VLs beyond capability", |i| i.set_operational_vls(5)),
        ("width not supported", |i| i.link_width_enabled = 8),
        ("down default", |i| i.set_link_down_default_state(3)),
    ];
    for (what, change) in illegal {
        let mut device = adapter();
        let before = device.ports[1].info;
        let (status, effects) = change_port(&mut device, 1, change);
        assert_eq!((status, effects.len()), (Status::INVALID_FIELD, 0), "{what}");
        assert_eq!(device.ports[1].info, before, "{what}");
    }
    let mut device = adapter();
    let (status, effects) = change_port(&mut device, 1, |info| {
        info.base_lid.set(8);
        info.set_lmc(3);
        info.master_sm_lid.set(1);
        info.m_key_lease_period.set(60);
        info.set_m_key_protect_bits(1);
        info.set_neighbor_mtu_raw(5);
        info.set_operational_vls(2);
        info.set_hoq_life(7);
        info.vl_high_limit = 9;
        info.set_subnet_timeout(20);
        info.set_local_phy_errors(3);
        info.set_overrun_errors(4);
        info.set_client_reregister(1);
    });
    assert_eq!((status, effects), (Status::OK, vec![Effect::ClientReregister(PortNum(1))]));
    let info = port_info(&mut device, 1);
    assert_eq!((info.lid().unwrap().get(), info.lmc(), info.master_sm_lid.get()), (8, 3, 1));
    assert_eq!((info.neighbor_mtu_raw(), info.operational_vls(), info.hoq_life()), (5, 2, 7));
    assert_eq!(
        (info.vl_high_limit, info.subnet_timeout(), info.local_phy_errors(), info.overrun_errors()),
        (9, 20, 3, 4)
    );
    // The bit is an order, not a state.
    assert_eq!((info.client_reregister(), device.ports[1].client_reregisters), (0, 1));
}

/// B19: base port 0 keeps no LMC, MTU or state; B16: what it reports is Active.
#[test]
fn b19_base_port_0_takes_a_lid_and_leaves_the_rest_alone() {
    let mut device = switch();
    let before = port_info(&mut device, 0);
    let (status, effects) = change_port(&mut device, 0, |info| {
        info.base_lid.set(8);
        info.set_lmc(2);
        info.set_neighbor_mtu_raw(1);
        info.set_port_state_raw(2);
    });
    assert_eq!((status, effects.len()), (Status::OK, 0));
    let info = port_info(&mut device, 0);
    assert_eq!((info.lid().unwrap().get(), info.lmc()), (8, 0));
    assert_eq!(info.neighbor_mtu_raw(), before.neighbor_mtu_raw());
    assert_eq!(info.port_state(), Some(PortState::Active));
}

/// B10: three kinds of devices, told apart by bit 31 of the attribute modifier.
#[test]
fn b10_extended_speeds_are_told_always_or_when_asked_or_refused() {
    const BIT: u32 = PortInfo::MODIFIER_EXTENDED_SPEEDS;
    let mut device = adapter();
    assert_eq!(port_info(&mut device, 1).speeds_supported(), LinkSpeedSet(0b11_0111));
    device.extended_speeds = ExtendedSpeeds::WhenAsked;
    assert_eq!(port_info(&mut device, 1).speeds_supported(), LinkSpeedSet(0b111));
    assert_eq!(port_info(&mut device, 1 | BIT).speeds_supported(), LinkSpeedSet(0b11_0111));
    assert!(port_info(&mut device, 1).has_capability(PortInfo::CAP_EXTENDED_SPEEDS));
    let (status, _) = change_port(&mut device, 1, |info| info.set_link_speed_ext_enabled(30));
    assert!(status.is_ok());
    assert_eq!(port_info(&mut device, 1 | BIT).link_speed_ext_enabled(), 31);
    device.extended_speeds = ExtendedSpeeds::Refused;
    assert_eq!(get(&mut device, PortInfo::ID, 1 | BIT).unwrap().0, Status::INVALID_FIELD);
}

/// Protection levels 0 to 3 by method and key (specification volume 1, 14.2.4.1).
#[test]
fn b64_m_key_protects_by_level_counts_violations_and_gives_up_when_the_lease_ends() {
    for level in 0..4 {
        let mut device = adapter();
        device.ports[1].info.m_key.set(0x77);
        device.ports[1].info.m_key_lease_period.set(60);
        device.ports[1].info.set_m_key_protect_bits(level);
        for (method, key) in [(Method::GET, 0), (Method::SET, 0), (Method::GET, 0x77), (Method::SET, 0x77)] {
            let mut smp = request(method, PortInfo::ID, 1);
            smp.m_key.set(key);
            let mut info = device.ports[1].info;
            info.base_lid.set(3);
            info.set_port_state_raw(0);
            info.set_port_phys_state_raw(0);
            assert!(info.encode(&mut smp.data));
            let answer = ask(&mut device, &smp);
            let passes = key == 0x77 || (method == Method::GET && level < 2);
            assert_eq!(answer.is_some(), passes, "level {level} {method:?} key {key}");
            if let Some((status, data, _)) = answer {
                assert!(status.is_ok());
                let shown = key == 0x77 || level == 0;
                assert_eq!(PortInfo::decode(&data).unwrap().m_key.get(), if shown { 0x77 } else { 0 });
            }
        }
        let violations = device.ports[1].info.m_key_violations.get();
        assert_eq!(violations, if level < 2 { 1 } else { 2 });
    }
    let mut device = adapter();
    device.ports[1].info.m_key.set(0x77);
    device.ports[1].info.m_key_lease_period.set(60);
    device.ports[1].info.set_m_key_protect_bits(3);
    let mut effects = Vec::new();
    let smp = request(Method::GET, id::NODE_INFO, 0);
    for (seconds, answered) in [(0, false), (59, false), (60, true)] {
        let now = NOW + Duration::from_secs(seconds);
        assert_eq!(device.subnet_management(PortNum(1), &smp, now, &mut effects).is_some(), answered);
    }
    assert_eq!(effects.len(), 2);
}

#[test]
fn switch_info_keeps_what_may_be_set_and_clears_port_state_change_on_order() {
    let mut device = switch();
    let read = |device: &mut Device| SwitchInfo::decode(&get(device, SwitchInfo::ID, 0).unwrap().1).unwrap();
    let write = |device: &mut Device, info: &SwitchInfo| {
        let mut data = [0; 64];
        assert!(info.encode(&mut data));
        set(device, SwitchInfo::ID, 0, &data)
    };
    let mut info = read(&mut device);
    assert_eq!(info.port_state_change(), 1);
    info.set_port_state_change(0);
    info.linear_fdb_top.set(100);
    info.linear_fdb_cap.set(9);
    info.set_life_time_value(18);
    assert_eq!(write(&mut device, &info), (Status::OK, vec![Effect::LinearTopRaised { from: 0 }]));
    info = read(&mut device);
    assert_eq!(
        (info.linear_fdb_top.get(), info.linear_fdb_cap.get(), info.life_time_value()),
        (100, 1024, 18)
    );
    assert_eq!(info.port_state_change(), 1);
    assert!(write(&mut device, &info).0.is_ok());
    assert_eq!(read(&mut device).port_state_change(), 0);
    info.linear_fdb_top.set(1024);
    assert_eq!(write(&mut device, &info).0, Status::INVALID_FIELD);
    assert_eq!(get(&mut adapter(), SwitchInfo::ID, 0).unwrap().0, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
}

#[test]
fn forwarding_tables_hold_what_was_written_within_their_caps() {
    let mut device = switch();
    let mut block = [255; 64];
    block[3] = 7;
    let (status, effects) = set(&mut device, id::LINEAR_FORWARDING_TABLE, 2, &block);
    assert_eq!((status, effects), (Status::OK, vec![Effect::LinearBlock { first: 128, old: [255; 64] }]));
    assert_eq!(get(&mut device, id::LINEAR_FORWARDING_TABLE, 2).unwrap(), (Status::OK, block));
    assert_eq!(get(&mut device, id::LINEAR_FORWARDING_TABLE, 15).unwrap(), (Status::OK, [255; 64]));
    assert_eq!(get(&mut device, id::LINEAR_FORWARDING_TABLE, 16).unwrap().0, Status::INVALID_FIELD);
    let tables = device.switch.as_mut().unwrap();
    assert_eq!(tables.exit(131), 255, "beyond LinearFDBTop");
    tables.info.linear_fdb_top.set(200);
    assert_eq!((tables.exit(131), tables.exit(130)), (7, 255));

    let mut masks = [0; 64];
    masks[2..4].copy_from_slice(&0x0180_u16.to_be_bytes());
    assert!(set(&mut device, id::MULTICAST_FORWARDING_TABLE, 1, &masks).0.is_ok());
    assert_eq!(get(&mut device, id::MULTICAST_FORWARDING_TABLE, 1).unwrap(), (Status::OK, masks));
    let lid = mad::types::MulticastLid::new(0xc000 + 33).unwrap();
    assert_eq!(device.switch.as_ref().unwrap().multicast_ports(lid)[0], 0x0180);
    // B33: 64 MLIDs are two blocks; 8 ports are one position.
    for modifier in [2, 1 << 28, 0x200] {
        assert_eq!(
            get(&mut device, id::MULTICAST_FORWARDING_TABLE, modifier).unwrap().0,
            Status::INVALID_FIELD
        );
    }
}

#[test]
fn p_keys_arbitration_sl_to_vl_and_guids_are_kept_by_block_and_port() {
    let mut device = switch();
    let (status, data) = get(&mut device, id::PKEY_TABLE, 0).unwrap();
    assert_eq!((status, &data[..4]), (Status::OK, &[0xff, 0xff, 0, 0][..]));
    let keys: [u8; 64] = std::array::from_fn(|i| i as u8);
    assert!(set(&mut device, id::PKEY_TABLE, 5 << 16 | 1, &keys).0.is_ok());
    assert_eq!(get(&mut device, id::PKEY_TABLE, 5 << 16 | 1).unwrap(), (Status::OK, keys));
    assert_eq!(get(&mut device, id::PKEY_TABLE, 6 << 16 | 1).unwrap(), (Status::OK, [0; 64]));
    for modifier in [2, 9 << 16, 255 << 16] {
        assert_eq!(get(&mut device, id::PKEY_TABLE, modifier).unwrap().0, Status::INVALID_FIELD);
    }
    // By default VL = SL modulo 8.
    let (status, data) = get(&mut device, id::SL_TO_VL_MAPPING_TABLE, 2 << 8 | 3).unwrap();
    assert_eq!((status, &data[..8]), (Status::OK, &[0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67][..]));
    let mut table = [0; 64];
    table[..8].copy_from_slice(&[0x10; 8]);
    assert!(set(&mut device, id::SL_TO_VL_MAPPING_TABLE, 2 << 8 | 3, &table).0.is_ok());
    assert_eq!(get(&mut device, id::SL_TO_VL_MAPPING_TABLE, 2 << 8 | 3).unwrap().1, table);
    assert_ne!(get(&mut device, id::SL_TO_VL_MAPPING_TABLE, 3 << 8 | 3).unwrap().1, table);
    for modifier in [9 << 8 | 3, 3 << 8 | 9, 0x30000] {
        let status = set(&mut device, id::SL_TO_VL_MAPPING_TABLE, modifier, &table).0;
        assert_eq!(status, Status::INVALID_FIELD);
    }
    device.switch.as_mut().unwrap().info.set_optimized_sl_to_vl(1);
    assert!(set(&mut device, id::SL_TO_VL_MAPPING_TABLE, 0x30000, &table).0.is_ok());
    assert_eq!(get(&mut device, id::SL_TO_VL_MAPPING_TABLE, 7 << 8 | 8).unwrap().1, table);

    let mut weights = [0; 64];
    weights[..4].copy_from_slice(&[1, 64, 7, 1]);
    assert!(set(&mut device, id::VL_ARBITRATION_TABLE, 1 << 16 | 4, &weights).0.is_ok());
    assert_eq!(get(&mut device, id::VL_ARBITRATION_TABLE, 1 << 16 | 4).unwrap(), (Status::OK, weights));
    for modifier in [4, 2 << 16 | 4, 4 << 16 | 4, 5 << 16 | 4, 1 << 16 | 9] {
        assert_eq!(get(&mut device, id::VL_ARBITRATION_TABLE, modifier).unwrap().0, Status::INVALID_FIELD);
    }
    let mut device = adapter();
    let guids: [u8; 64] = std::array::from_fn(|i| i as u8 + 1);
    assert!(set(&mut device, id::GUID_INFO, 0, &guids).0.is_ok());
    let (_, data) = get(&mut device, id::GUID_INFO, 0).unwrap();
    assert_eq!((&data[..8], &data[8..]), (&0x21_u64.to_be_bytes()[..], &guids[8..]));
    assert_eq!(get(&mut device, id::GUID_INFO, 4).unwrap().0, Status::INVALID_FIELD);
}

#[test]
fn unknown_attributes_methods_and_versions_are_refused_with_their_own_status() {
    let mut device = adapter();
    assert_eq!(get(&mut device, 0x1234, 0).unwrap().0, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
    assert_eq!(set(&mut device, id::NODE_INFO, 0, &[0; 64]).0, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
    let mut smp = request(Method::GET, id::NODE_INFO, 0);
    smp.header.class_version = 2;
    assert_eq!(ask(&mut device, &smp).unwrap().0, Status::BAD_VERSION);
    for number in [3, 200, 255] {
        assert_eq!(get(&mut device, PortInfo::ID, number).unwrap().0, Status::INVALID_FIELD);
    }
}

/// B03, B05, B07: wrong, missing and refused answers, as often as they are asked for.
#[test]
fn b07_quirks_refuse_falsify_and_swallow_requests() {
    let mut device = adapter();
    device.quirks = vec![
        Quirk { times: Some(1), ..Quirk::always(Misbehaviour::Silence).on(Method::GET, id::NODE_INFO) },
        Quirk::always(Misbehaviour::Overwrite { offset: 36, bytes: vec![9] }).on(Method::GET, id::NODE_INFO),
        Quirk::always(Misbehaviour::Refuse { status: 0x1c, garbage: true }).on(Method::SET, PortInfo::ID),
        Quirk::always(Misbehaviour::Pretend).on(Method::SET, id::PKEY_TABLE),
    ];
    assert!(get(&mut device, id::NODE_INFO, 0).is_none());
    let (_, data) = get(&mut device, id::NODE_INFO, 0).unwrap();
    assert_eq!(NodeInfo::decode(&data).unwrap().local_port_num(), PortNum(9));
    let before = device.ports[1].info;
    let (status, data, effects) = ask(&mut device, &request(Method::SET, PortInfo::ID, 1)).unwrap();
    assert_eq!((status, data, effects.len()), (Status::INVALID_FIELD, [0xa5; 64], 0));
    assert_eq!(device.ports[1].info, before);
    assert!(set(&mut device, id::PKEY_TABLE, 0, &[7; 64]).0.is_ok());
    assert_eq!(get(&mut device, id::PKEY_TABLE, 0).unwrap().1[..4], [0xff, 0xff, 0, 0]);
}

/// A share of an attribute's requests is lost, evenly spread.
#[test]
fn b08_a_share_of_requests_is_swallowed() {
    for (percent, lost) in [(0, 0), (1, 1), (25, 25), (60, 60), (100, 100)] {
        let mut device = adapter();
        let silence = Quirk::always(Misbehaviour::Silence).on(Method::GET, id::NODE_INFO);
        device.quirks = vec![Quirk { percent, ..silence }];
        let swallowed = (0..100).filter(|_| get(&mut device, id::NODE_INFO, 0).is_none()).count();
        assert_eq!(swallowed, lost, "{percent} per cent");
        assert!(get(&mut device, id::NODE_DESCRIPTION, 0).is_some());
    }
}

#[test]
fn a_device_that_loses_power_forgets_what_was_set_and_keeps_what_it_is() {
    let mut device = switch();
    let fresh = device.clone();
    assert!(change_port(&mut device, 0, |info| info.base_lid.set(3)).0.is_ok());
    assert!(set(&mut device, id::LINEAR_FORWARDING_TABLE, 0, &[1; 64]).0.is_ok());
    assert!(set(&mut device, id::PKEY_TABLE, 0, &[1; 64]).0.is_ok());
    device.reset();
    assert_eq!(device.port(PortNum(0)).unwrap().info.lid(), None);
    assert_eq!(device.switch.as_ref().unwrap().exit(1), 255);
    assert_eq!(device.ports[0].p_keys, fresh.ports[0].p_keys);
    assert_eq!((device.guid(), device.name()), (fresh.guid(), fresh.name()));
    assert!(device.ports[1..].iter().all(|port| !port.is_up()));
}

/// Whatever bytes come: an answer or none, never a panic; a refused Set changes nothing.
#[test]
fn any_request_is_survived() {
    use rand::{RngExt, SeedableRng};
    let seed = std::env::var("RSM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    println!("RSM_SEED={seed}");
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let attributes = [0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1b, 0x31, 0x34, 0xff90, 0x99];
    let mut devices = [switch(), adapter()];
    for _ in 0..20_000 {
        let device = &mut devices[usize::from(rng.random_bool(0.5))];
        let method = if rng.random_bool(0.5) { Method::GET } else { Method::SET };
        let attribute = attributes[rng.random_range(0..attributes.len())];
        let modifier = match rng.random_range(0..3) {
            0 => rng.random_range(0..10),
            1 => rng.random::<u32>(),
            _ => rng.random_range(0..10_u32) << 16 | rng.random_range(0..10),
        };
        let mut smp = request(method, attribute, modifier);
        smp.data = std::array::from_fn(|_| if rng.random_bool(0.6) { 0 } else { rng.random() });
        let mut effects = Vec::new();
        let in_port = PortNum(rng.random_range(1..=2));
        // The M_Key of the moment, so that a random one doesn't end the run.
        smp.m_key = device.ports[device.end_port(in_port).index()].info.m_key;
        let before = device.ports.iter().map(|port| port.info).collect::<Vec<_>>();
        let answer = device.subnet_management(in_port, &smp, NOW, &mut effects).unwrap();
        if !answer.smp.header.status().is_ok() {
            assert!(device.ports.iter().map(|port| port.info).eq(before), "{:?}", smp.header);
            assert!(effects.is_empty());
        }
    }
}

/// A router is an end node with several ports: nothing of a switch, each port with a LID and GUIDs of its own.
#[test]
fn a_router_answers_on_each_of_its_ports_and_has_no_tables() {
    let mut router = up(Device::new(&Node::new(NodeType::Router, Guid(0x30), "router", 2)));
    let mut effects = Vec::new();
    for port in 1..=2_u8 {
        let smp = request(Method::GET, id::NODE_INFO, 0);
        let answer = router.subnet_management(PortNum(port), &smp, NOW, &mut effects).unwrap();
        let info = NodeInfo::decode(&answer.smp.data).unwrap();
        assert_eq!((info.node_type(), info.local_port_num()), (Some(NodeType::Router), PortNum(port)));
        assert_eq!(info.port_guid.get(), 0x30 + u64::from(port));
        let (status, _) = change_port(&mut router, port.into(), |info| {
            info.base_lid.set(8 * u16::from(port));
            info.set_lmc(2);
        });
        assert!(status.is_ok());
    }
    assert_eq!([1, 2].map(|port| router.ports[port].info.base_lid.get()), [8, 16]);
    for attribute in [id::SWITCH_INFO, id::LINEAR_FORWARDING_TABLE, id::MULTICAST_FORWARDING_TABLE] {
        assert_eq!(get(&mut router, attribute, 0).unwrap().0, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
    }
    assert_eq!(get(&mut router, PortInfo::ID, 3).unwrap().0, Status::INVALID_FIELD);
}

/// Enhanced port 0 has an LMC, an MTU and lanes, as an adapter's port, but no link to take down.
#[test]
fn enhanced_port_0_keeps_what_an_end_port_keeps_but_has_no_link() {
    let mut node = Node::new(NodeType::Switch, Guid(0x10), "sw", 8);
    node.switch = Some(SwitchFacts { linear_fdb_cap: 1024, multicast_fdb_cap: 64, enhanced_port_0: true });
    let mut device = Device::new(&node);
    let (status, effects) = change_port(&mut device, 0, |info| {
        info.base_lid.set(8);
        info.set_lmc(2);
        info.set_neighbor_mtu_raw(2);
        info.set_port_state_raw(1);
    });
    assert_eq!((status, effects.len()), (Status::OK, 0));
    let info = port_info(&mut device, 0);
    assert_eq!((info.lid().unwrap().get(), info.lmc(), info.neighbor_mtu_raw()), (8, 2, 2));
    assert_eq!(info.port_state(), Some(PortState::Active));
}
