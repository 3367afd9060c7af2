use proptest::prelude::*;

use super::*;
use crate::wire::sa::*;
use crate::wire::smp::PortInfo;

/// Bit by bit, in another way than the function under test.
fn agrees_bit_by_bit(record: &[u8], template: &[u8], component: &Component) -> bool {
    (0..component.width_bits).all(|i| {
        let index = usize::from(component.offset_bits + i);
        let bit = |bytes: &[u8]| bytes[index / 8] >> (7 - index % 8) & 1;
        bit(record) == bit(template)
    })
}

fn check_table<R: Record>(record: &[u8], template: &[u8], mask: u64) {
    let selected = R::COMPONENTS.iter().filter(|c| mask & c.mask() != 0 && !c.is_reserved());
    let expected = selected.clone().all(|c| agrees_bit_by_bit(record, template, c));
    let len = size_of::<R>();
    let (record, template) = (&record[..len], &template[..len]);
    assert_eq!(matches(record, template, mask, R::COMPONENTS), expected);
    assert!(matches(record, record, mask, R::COMPONENTS));
    assert!(matches(record, template, 0, R::COMPONENTS));
    for component in R::COMPONENTS {
        // A record that differs from itself in one bit of one component differs in that component alone.
        for i in [0, component.width_bits - 1] {
            let index = usize::from(component.offset_bits + i);
            let mut other = record.to_vec();
            other[index / 8] ^= 1 << (7 - index % 8);
            let differs = !component.is_reserved();
            assert_eq!(
                matches(record, &other, component.mask(), R::COMPONENTS),
                !differs,
                "{}",
                component.name
            );
            assert!(matches(record, &other, !component.mask(), R::COMPONENTS), "{}", component.name);
        }
    }
}

proptest! {
    #[test]
    fn matching_compares_exactly_the_selected_components(
        record in proptest::collection::vec(any::<u8>(), 176),
        flips in proptest::collection::vec(prop_oneof![8 => Just(0_u8), 1 => any::<u8>()], 176),
        mask in any::<u64>(),
    ) {
        let template: Vec<u8> = record.iter().zip(&flips).map(|(a, b)| a ^ b).collect();
        check_table::<NodeRecord>(&record, &template, mask);
        check_table::<PortInfoRecord>(&record, &template, mask);
        check_table::<SwitchInfoRecord>(&record, &template, mask);
        check_table::<LinkRecord>(&record, &template, mask);
        check_table::<SmInfoRecord>(&record, &template, mask);
        check_table::<GuidInfoRecord>(&record, &template, mask);
        check_table::<InformInfoRecord>(&record, &template, mask);
        check_table::<SlToVlMappingTableRecord>(&record, &template, mask);
        check_table::<LinearForwardingTableRecord>(&record, &template, mask);
        check_table::<MulticastForwardingTableRecord>(&record, &template, mask);
        check_table::<VlArbitrationTableRecord>(&record, &template, mask);
        check_table::<PKeyTableRecord>(&record, &template, mask);
        check_table::<PathRecord>(&record, &template, mask);
        check_table::<MultiPathRecord>(&record, &template, mask);
        check_table::<McMemberRecord>(&record, &template, mask);
        check_table::<ServiceRecord>(&record, &template, mask);
        check_table::<TraceRecord>(&record, &template, mask);
    }

    /// No length and no mask makes matching panic; what lies beyond the end never agrees.
    #[test]
    fn fuzz_matches(
        record in proptest::collection::vec(any::<u8>(), 0..80),
        template in proptest::collection::vec(any::<u8>(), 0..80),
        mask in any::<u64>(),
    ) {
        let agrees = matches(&record, &template, mask, PathRecord::COMPONENTS);
        let beyond = PathRecord::COMPONENTS.iter().any(|c| {
            let end = usize::from(c.offset_bits + c.width_bits).div_ceil(8);
            mask & c.mask() != 0 && !c.is_reserved() && end > record.len().min(template.len())
        });
        prop_assert!(!(agrees && beyond));
    }
}

/// The masks that tools and kernels send (infiniband/iba/ib_types.h, umad_sa_mcm.h).
#[test]
fn component_bits_are_those_of_the_specification() {
    assert_eq!(PathRecord::component_mask(&["DGID", "SGID"]), Some(PathRecord::DGID | PathRecord::SGID));
    let all = [
        (PathRecord::component_mask(&["ServiceID8MSB", "ServiceID56LSB"]), PathRecord::SERVICE_ID),
        (PathRecord::component_mask(&["NumbPath"]), 1 << 12),
        (PathRecord::component_mask(&["SL"]), 1 << 15),
        (PathRecord::component_mask(&["PacketLifeTime"]), 1 << 21),
        (McMemberRecord::component_mask(&["MTU"]), 1 << 5),
        (McMemberRecord::component_mask(&["JoinState"]), McMemberRecord::JOIN_STATE),
        (McMemberRecord::component_mask(&["ProxyJoin"]), 1 << 17),
        (NodeRecord::component_mask(&["PortGUID"]), 1 << 8),
        (NodeRecord::component_mask(&["NodeDescription"]), 1 << 14),
        (PortInfoRecord::component_mask(&["CapabilityMask"]), 1 << 7),
        (PortInfoRecord::component_mask(&["LMC"]), 1 << 20),
        (PortInfoRecord::component_mask(&["GUIDCap"]), 1 << 42),
        (PortInfoRecord::component_mask(&["CapabilityMask2"]), 1 << 53),
        (PortInfoRecord::component_mask(&["LinkSpeedExtEnabled"]), 1 << 57),
        (ServiceRecord::component_mask(&["ServiceName"]), 1 << 6),
        (ServiceRecord::component_mask(&["ServiceData64.2"]), 1 << 36),
        (GuidInfoRecord::component_mask(&["GUID7"]), 1 << 11),
        (MultiPathRecord::component_mask(&["SGIDCount"]), 1 << 19),
        (SmInfoRecord::component_mask(&["SMState"]), 1 << 6),
        (InformInfoRecord::component_mask(&["ProducerType/VendorID"]), 1 << 15),
        (MulticastForwardingTableRecord::component_mask(&["BlockNum"]), 1 << 3),
        (LinkRecord::component_mask(&["ToLID"]), 1 << 3),
    ];
    for (n, (found, expected)) in all.into_iter().enumerate() {
        assert_eq!(found, Some(expected), "row {n}");
    }
    assert_eq!(PathRecord::component_mask(&["Nonsense"]), None);
    assert_eq!(PathRecord::component_mask(&[""]), None);
    assert_eq!(unknown_components(u64::MAX, LinkRecord::COMPONENTS), u64::MAX << 4);
    assert_eq!(all_components(LinkRecord::COMPONENTS), 0xf);
    assert_eq!(all_components(PathRecord::COMPONENTS) & (1 << 7 | 1 << 23), 0);
}

/// Distances between records in tables as opensm and infiniband-diags have them.
#[test]
fn table_lengths_are_multiples_of_eight() {
    let lengths = [
        (NodeRecord::TABLE_LEN, 112),
        (PortInfoRecord::TABLE_LEN, 72),
        (SwitchInfoRecord::TABLE_LEN, 24),
        (LinkRecord::TABLE_LEN, 8),
        (SmInfoRecord::TABLE_LEN, 32),
        (McMemberRecord::TABLE_LEN, 56),
        (InformInfoRecord::TABLE_LEN, 64),
        (PathRecord::TABLE_LEN, 64),
        (ServiceRecord::TABLE_LEN, 176),
        (TraceRecord::TABLE_LEN, 48),
        (SlToVlMappingTableRecord::TABLE_LEN, 16),
    ];
    for (n, (found, expected)) in lengths.into_iter().enumerate() {
        assert_eq!(found, expected, "row {n}");
    }
    assert_eq!(McMemberRecord::ATTRIBUTE_OFFSET, 7);
    let mut table = Vec::new();
    LinkRecord::zeroed().push_to(&mut table);
    LinkRecord { from_port: 7, ..LinkRecord::zeroed() }.push_to(&mut table);
    assert_eq!((table.len(), table[10]), (16, 7));
}

/// The components of PortInfoRecord lie where PortInfo's accessors read.
#[test]
fn port_info_components_lie_where_the_accessors_read() {
    let mut a = PortInfoRecord::zeroed();
    let b = a;
    let name = |a: &PortInfoRecord| {
        let differing: Vec<_> = PortInfoRecord::COMPONENTS
            .iter()
            .filter(|c| !c.is_reserved() && !a.matches(&b, c.mask()))
            .map(|c| c.name)
            .collect();
        assert_eq!(differing.len(), 1, "{differing:?}");
        differing[0]
    };
    type Set = fn(&mut PortInfo);
    let sets: [(&str, Set); 9] = [
        ("PortState", |p| p.set_port_state_raw(4)),
        ("LMC", |p| p.set_lmc(7)),
        ("M_KeyProtectBits", |p| p.set_m_key_protect_bits(3)),
        ("NeighborMTU", |p| p.set_neighbor_mtu_raw(5)),
        ("OperationalVLs", |p| p.set_operational_vls(4)),
        ("SubnetTimeOut", |p| p.set_subnet_timeout(18)),
        ("RespTimeValue", |p| p.set_resp_time_value(16)),
        ("LinkSpeedExtActive", |p| p.set_link_speed_ext_active(2)),
        ("LinkSpeedExtEnabled", |p| p.set_link_speed_ext_enabled(30)),
    ];
    for (expected, set) in sets {
        set(&mut a.port_info);
        assert_eq!(name(&a), expected);
        a = b;
    }
}
