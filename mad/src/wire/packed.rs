//! The test for the whole kind: every packed field's setter changes exactly its bits, and its getter reads them. The
//! expected bytes are computed bit by bit from offset and width, in another way than the macros compute their masks.

use proptest::prelude::*;

use super::*;

/// A field that shares a byte or word with others, as `bits!` and `word_bits!` list it.
pub(in crate::wire) struct PackedField<T> {
    /// Name of the getter.
    pub(in crate::wire) name: &'static str,
    /// The getter.
    pub(in crate::wire) get: fn(&T) -> u64,
    /// The setter; drops what doesn't fit.
    pub(in crate::wire) set: fn(&mut T, u64),
    /// First bit, counted from the most significant bit of the first byte.
    pub(in crate::wire) start: usize,
    /// Number of bits.
    pub(in crate::wire) width: usize,
}

/// Sets every field to many values on several backgrounds and compares all bytes.
fn check<T>(fields: &[PackedField<T>])
where
    T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout,
{
    let type_name = std::any::type_name::<T>();
    for field in fields {
        let place = format!("{type_name}::{}", field.name);
        let largest = u64::MAX >> (64 - field.width);
        let spread = [largest, largest ^ 1, largest / 3, largest / 2, largest / 2 + 1];
        for background in [0x00, 0xff, 0xa5, 0x3c_u8] {
            for value in (0..=255).filter(|v| *v <= largest).chain(spread) {
                let mut expected = vec![background; size_of::<T>()];
                for i in 0..field.width {
                    let index = field.start + i;
                    let mask = 1 << (7 - index % 8);
                    let wanted = value >> (field.width - 1 - i) & 1 == 1;
                    expected[index / 8] =
                        if wanted { expected[index / 8] | mask } else { expected[index / 8] & !mask };
                }
                let mut it = T::read_from_bytes(&vec![background; size_of::<T>()]).unwrap();
                (field.set)(&mut it, value);
                assert_eq!(it.as_bytes(), expected, "{place} = {value}");
                assert_eq!((field.get)(&it), value, "{place}");
                // Bits of a value that doesn't fit must not reach the neighbours.
                (field.set)(&mut it, u64::MAX);
                (field.set)(&mut it, value);
                assert_eq!(it.as_bytes(), expected, "{place} = {value} after an overlarge value");
            }
        }
    }
    let mut taken = vec![None; size_of::<T>() * 8];
    for field in fields {
        for (i, slot) in taken[field.start..field.start + field.width].iter_mut().enumerate() {
            assert_eq!(*slot, None, "{type_name}: bit {i} of {} is another field's too", field.name);
            *slot = Some(field.name);
        }
    }
}

macro_rules! packed_fields {
    ($($test:ident: $type:ty, $($list:ident)+;)*) => {$(
        #[test]
        fn $test() {
            $(check(<$type>::$list);)+
        }
    )*};
}

packed_fields! {
    ar_info: vendor::AdaptiveRoutingInfo, BYTE_FIELDS WORD_FIELDS;
    ar_lft_entry: vendor::AdaptiveRoutingEntry, BYTE_FIELDS;
    bad_key_data: smp::BadKeyData, WORD_FIELDS;
    bad_m_key_data: smp::BadMKeyData, BYTE_FIELDS;
    bad_switch_p_key_data: smp::BadSwitchPKeyData, WORD_FIELDS;
    class_port_info: ClassPortInfo, WORD_FIELDS;
    extended_node_info: vendor::ExtendedNodeInfo, BYTE_FIELDS;
    extended_switch_info: vendor::ExtendedSwitchInfo, BYTE_FIELDS WORD_FIELDS;
    hbf_config: vendor::HbfConfig, BYTE_FIELDS;
    inform_info: smp::InformInfo, WORD_FIELDS;
    led_info: smp::LedInfo, WORD_FIELDS;
    mc_member_record: sa::McMemberRecord, BYTE_FIELDS WORD_FIELDS;
    mft_record: sa::MulticastForwardingTableRecord, WORD_FIELDS;
    mlnx_extended_port_info: vendor::MlnxExtendedPortInfo, BYTE_FIELDS WORD_FIELDS;
    multi_path_record: sa::MultiPathRecord, BYTE_FIELDS WORD_FIELDS;
    node_info: smp::NodeInfo, WORD_FIELDS;
    notice: smp::Notice, BYTE_FIELDS WORD_FIELDS;
    path_record: sa::PathRecord, BYTE_FIELDS WORD_FIELDS;
    pfrn_config: vendor::PfrnConfig, BYTE_FIELDS WORD_FIELDS;
    port_counters: perf::PortCounters, BYTE_FIELDS;
    port_info: smp::PortInfo, BYTE_FIELDS WORD_FIELDS;
    private_lft_map: vendor::PrivateLftMap, BYTE_FIELDS;
    rmpp_header: rmpp::RmppHeader, BYTE_FIELDS;
    sm_info: smp::SmInfo, BYTE_FIELDS;
    switch_info: smp::SwitchInfo, BYTE_FIELDS;
}

/// Decodes arbitrary bytes as `T` twice: encode(decode(x)) == x, short input is refused, nothing panics.
fn fuzz_attribute<T: Attribute + std::fmt::Debug>(bytes: &[u8]) {
    let len = size_of::<T>();
    match T::decode(bytes) {
        None => assert!(bytes.len() < len),
        Some(value) => {
            let mut back = vec![0; len];
            assert!(value.encode(&mut back));
            assert_eq!(back, bytes[..len]);
            assert!(!value.encode(&mut back[1..]), "no room");
            assert!(!format!("{value:?}").is_empty());
        }
    }
}

macro_rules! round_trips {
    ($($fuzz:ident: $type:ty;)*) => {
        $(fn $fuzz(bytes: &[u8]) {
            fuzz_attribute::<$type>(bytes);
        })*
        proptest! {
            #[test]
            fn every_attribute_decodes_any_bytes_and_encodes_them_again(
                bytes in proptest::collection::vec(any::<u8>(), 0..260),
            ) {
                $($fuzz(&bytes);)*
            }
        }
    };
}

round_trips! {
    fuzz_node_description: smp::NodeDescription;
    fuzz_node_info: smp::NodeInfo;
    fuzz_switch_info: smp::SwitchInfo;
    fuzz_guid_info: smp::GuidInfo;
    fuzz_port_info: smp::PortInfo;
    fuzz_port_info_extended: smp::PortInfoExtended;
    fuzz_p_key_table: smp::PKeyTable;
    fuzz_sl_to_vl_mapping_table: smp::SlToVlMappingTable;
    fuzz_vl_arbitration_table: smp::VlArbitrationTable;
    fuzz_linear_forwarding_table: smp::LinearForwardingTable;
    fuzz_multicast_forwarding_table: smp::MulticastForwardingTable;
    fuzz_sm_info: smp::SmInfo;
    fuzz_notice: smp::Notice;
    fuzz_inform_info: smp::InformInfo;
    fuzz_led_info: smp::LedInfo;
    fuzz_switch_port_state_table: smp::SwitchPortStateTable;
    fuzz_class_port_info: ClassPortInfo;
    fuzz_port_counters: perf::PortCounters;
    fuzz_port_counters_extended: perf::PortCountersExtended;
    fuzz_mlnx_extended_port_info: vendor::MlnxExtendedPortInfo;
    fuzz_adaptive_routing_info: vendor::AdaptiveRoutingInfo;
    fuzz_adaptive_routing_group_table: vendor::AdaptiveRoutingGroupTable;
    fuzz_adaptive_routing_lft: vendor::AdaptiveRoutingLinearForwardingTable;
    fuzz_adaptive_routing_group_table_copy: vendor::AdaptiveRoutingGroupTableCopy;
    fuzz_general_info: vendor::GeneralInfo;
    fuzz_extended_node_info: vendor::ExtendedNodeInfo;
    fuzz_extended_switch_info: vendor::ExtendedSwitchInfo;
    fuzz_hbf_config: vendor::HbfConfig;
    fuzz_whbf_config: vendor::WhbfConfig;
    fuzz_private_lft_info: vendor::PrivateLftInfo;
    fuzz_private_lft_def: vendor::PrivateLftDef;
    fuzz_private_lft_map: vendor::PrivateLftMap;
    fuzz_port_sl_to_private_lft_map: vendor::PortSlToPrivateLftMap;
    fuzz_pfrn_config: vendor::PfrnConfig;
    fuzz_rn_gen_string_table: vendor::RnGenStringTable;
    fuzz_rn_rcv_string: vendor::RnRcvString;
    fuzz_rn_sub_group_direction_table: vendor::RnSubGroupDirectionTable;
    fuzz_rn_xmit_port_mask: vendor::RnXmitPortMask;
    fuzz_rn_gen_by_sub_group_priority: vendor::RnGenBySubGroupPriority;
    fuzz_report: sa::Report;
    fuzz_node_record: sa::NodeRecord;
    fuzz_port_info_record: sa::PortInfoRecord;
    fuzz_sl_to_vl_record: sa::SlToVlMappingTableRecord;
    fuzz_switch_info_record: sa::SwitchInfoRecord;
    fuzz_lft_record: sa::LinearForwardingTableRecord;
    fuzz_mft_record: sa::MulticastForwardingTableRecord;
    fuzz_sm_info_record: sa::SmInfoRecord;
    fuzz_link_record: sa::LinkRecord;
    fuzz_guid_info_record: sa::GuidInfoRecord;
    fuzz_service_record: sa::ServiceRecord;
    fuzz_p_key_table_record: sa::PKeyTableRecord;
    fuzz_path_record: sa::PathRecord;
    fuzz_vl_arbitration_record: sa::VlArbitrationTableRecord;
    fuzz_mc_member_record: sa::McMemberRecord;
    fuzz_trace_record: sa::TraceRecord;
    fuzz_multi_path_record: sa::MultiPathRecord;
    fuzz_inform_info_record: sa::InformInfoRecord;
}

/// Decodes a whole datagram as each packet of 256 bytes; nothing panics and the bytes come back.
fn fuzz_packets(bytes: &[u8]) {
    let Some(mad) = Mad::decode(bytes) else {
        assert!(bytes.len() < header::MAD_LEN);
        return;
    };
    assert_eq!(mad.bytes(), &bytes[..header::MAD_LEN]);
    assert_eq!(sa::SaMad::from_mad(mad).into_mad(), mad);
    assert_eq!(perf::PerfMad::from_mad(mad).into_mad(), mad);
    let smp = smp::Smp::from_mad(mad);
    assert_eq!(smp.into_mad(), mad);
    if let Some(path) = smp.path() {
        assert_eq!(path.len(), usize::from(mad.header.hop_count));
    }
    if let Some(notice) = smp::Notice::decode(&smp.data) {
        assert!(!format!("{:?}", notice.details()).is_empty());
    }
}

proptest! {
    #[test]
    fn every_packet_decodes_any_bytes_and_encodes_them_again(
        bytes in proptest::collection::vec(any::<u8>(), 200..300),
    ) {
        fuzz_packets(&bytes);
    }
}
