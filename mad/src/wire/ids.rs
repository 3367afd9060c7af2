//! Attribute IDs, by management class (specification volume 1: 13.4.8, 14.2.5, 15.2.5, 16.1.3). The same number means
//! different attributes in different classes: always look at (class, attribute).

/// Attributes that every class has (13.4.8).
pub mod common {
    /// ClassPortInfo.
    pub const CLASS_PORT_INFO: u16 = 0x0001;
    /// Notice.
    pub const NOTICE: u16 = 0x0002;
    /// InformInfo.
    pub const INFORM_INFO: u16 = 0x0003;
}

/// Subnet management, classes 0x01 and 0x81 (14.2.5).
pub mod sm {
    pub use super::common::NOTICE;
    /// NodeDescription.
    pub const NODE_DESCRIPTION: u16 = 0x0010;
    /// NodeInfo.
    pub const NODE_INFO: u16 = 0x0011;
    /// SwitchInfo.
    pub const SWITCH_INFO: u16 = 0x0012;
    /// GUIDInfo.
    pub const GUID_INFO: u16 = 0x0014;
    /// PortInfo.
    pub const PORT_INFO: u16 = 0x0015;
    /// P_KeyTable.
    pub const PKEY_TABLE: u16 = 0x0016;
    /// SLtoVLMappingTable.
    pub const SL_TO_VL_MAPPING_TABLE: u16 = 0x0017;
    /// VLArbitrationTable.
    pub const VL_ARBITRATION_TABLE: u16 = 0x0018;
    /// LinearForwardingTable.
    pub const LINEAR_FORWARDING_TABLE: u16 = 0x0019;
    /// RandomForwardingTable. No device is known that has one, and no layout is given here.
    pub const RANDOM_FORWARDING_TABLE: u16 = 0x001a;
    /// MulticastForwardingTable.
    pub const MULTICAST_FORWARDING_TABLE: u16 = 0x001b;
    /// LinkSpeedWidthPairsTable.
    pub const LINK_SPEED_WIDTH_PAIRS_TABLE: u16 = 0x001c;
    /// VendorSpecificMadsTable.
    pub const VENDOR_SPECIFIC_MADS_TABLE: u16 = 0x001d;
    /// HierarchyInfo.
    pub const HIERARCHY_INFO: u16 = 0x001e;
    /// SMInfo.
    pub const SM_INFO: u16 = 0x0020;
    /// VendorDiag.
    pub const VENDOR_DIAG: u16 = 0x0030;
    /// LedInfo.
    pub const LED_INFO: u16 = 0x0031;
    /// CableInfo.
    pub const CABLE_INFO: u16 = 0x0032;
    /// PortInfoExtended.
    pub const PORT_INFO_EXTENDED: u16 = 0x0033;
    /// SwitchPortStateTable.
    pub const SWITCH_PORT_STATE_TABLE: u16 = 0x0034;
}

/// Subnet administration, class 0x03 (15.2.5).
pub mod sa {
    pub use super::common::{CLASS_PORT_INFO, INFORM_INFO, NOTICE};
    /// NodeRecord.
    pub const NODE_RECORD: u16 = 0x0011;
    /// PortInfoRecord.
    pub const PORT_INFO_RECORD: u16 = 0x0012;
    /// SLtoVLMappingTableRecord.
    pub const SL_TO_VL_MAPPING_TABLE_RECORD: u16 = 0x0013;
    /// SwitchInfoRecord.
    pub const SWITCH_INFO_RECORD: u16 = 0x0014;
    /// LinearForwardingTableRecord.
    pub const LINEAR_FORWARDING_TABLE_RECORD: u16 = 0x0015;
    /// RandomForwardingTableRecord.
    pub const RANDOM_FORWARDING_TABLE_RECORD: u16 = 0x0016;
    /// MulticastForwardingTableRecord.
    pub const MULTICAST_FORWARDING_TABLE_RECORD: u16 = 0x0017;
    /// SMInfoRecord.
    pub const SM_INFO_RECORD: u16 = 0x0018;
    /// LinkSpeedWidthPairsTableRecord.
    pub const LINK_SPEED_WIDTH_PAIRS_TABLE_RECORD: u16 = 0x0019;
    /// LinkRecord.
    pub const LINK_RECORD: u16 = 0x0020;
    /// GUIDInfoRecord.
    pub const GUID_INFO_RECORD: u16 = 0x0030;
    /// ServiceRecord.
    pub const SERVICE_RECORD: u16 = 0x0031;
    /// P_KeyTableRecord.
    pub const PKEY_TABLE_RECORD: u16 = 0x0033;
    /// PathRecord.
    pub const PATH_RECORD: u16 = 0x0035;
    /// VLArbitrationTableRecord.
    pub const VL_ARBITRATION_TABLE_RECORD: u16 = 0x0036;
    /// MCMemberRecord.
    pub const MC_MEMBER_RECORD: u16 = 0x0038;
    /// TraceRecord.
    pub const TRACE_RECORD: u16 = 0x0039;
    /// MultiPathRecord.
    pub const MULTI_PATH_RECORD: u16 = 0x003a;
    /// ServiceAssociationRecord.
    pub const SERVICE_ASSOCIATION_RECORD: u16 = 0x003b;
    /// HierarchyInfoRecord.
    pub const HIERARCHY_INFO_RECORD: u16 = 0x003c;
    /// CableInfoRecord.
    pub const CABLE_INFO_RECORD: u16 = 0x003d;
    /// PortInfoExtendedRecord.
    pub const PORT_INFO_EXTENDED_RECORD: u16 = 0x003e;
    /// InformInfoRecord.
    pub const INFORM_INFO_RECORD: u16 = 0x00f3;
}

/// Performance management, class 0x04 (16.1.3, 16.1.4).
pub mod perf {
    pub use super::common::CLASS_PORT_INFO;
    /// PortSamplesControl.
    pub const PORT_SAMPLES_CONTROL: u16 = 0x0010;
    /// PortSamplesResult.
    pub const PORT_SAMPLES_RESULT: u16 = 0x0011;
    /// PortCounters.
    pub const PORT_COUNTERS: u16 = 0x0012;
    /// PortRcvErrorDetails.
    pub const PORT_RCV_ERROR_DETAILS: u16 = 0x0015;
    /// PortXmitDiscardDetails.
    pub const PORT_XMIT_DISCARD_DETAILS: u16 = 0x0016;
    /// PortCountersExtended.
    pub const PORT_COUNTERS_EXTENDED: u16 = 0x001d;
}

/// Mellanox/NVIDIA attributes of the subnet management classes.
pub mod vendor {
    /// PrivateLFTInfo.
    pub const PRIVATE_LFT_INFO: u16 = 0xff10;
    /// PrivateLFTDef.
    pub const PRIVATE_LFT_DEF: u16 = 0xff11;
    /// PrivateLFTMap.
    pub const PRIVATE_LFT_MAP: u16 = 0xff12;
    /// PortSLToPrivateLFTMap.
    pub const PORT_SL_TO_PRIVATE_LFT_MAP: u16 = 0xff14;
    /// GeneralInfo.
    pub const GENERAL_INFO: u16 = 0xff17;
    /// AdaptiveRoutingInfo.
    pub const ADAPTIVE_ROUTING_INFO: u16 = 0xff20;
    /// AdaptiveRoutingGroupTable.
    pub const ADAPTIVE_ROUTING_GROUP_TABLE: u16 = 0xff21;
    /// Adaptive routing LinearForwardingTable.
    pub const ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE: u16 = 0xff23;
    /// HBFConfig.
    pub const HBF_CONFIG: u16 = 0xff24;
    /// WHBFConfig.
    pub const WHBF_CONFIG: u16 = 0xff25;
    /// pFRNConfig.
    pub const PFRN_CONFIG: u16 = 0xff61;
    /// ExtendedPortInfo.
    pub const MLNX_EXTENDED_PORT_INFO: u16 = 0xff90;
    /// ExtendedNodeInfo.
    pub const EXTENDED_NODE_INFO: u16 = 0xff91;
    /// ExtendedSwitchInfo.
    pub const EXTENDED_SWITCH_INFO: u16 = 0xff92;
    /// RNGenStringTable.
    pub const RN_GEN_STRING_TABLE: u16 = 0xffb8;
    /// RNRcvString.
    pub const RN_RCV_STRING: u16 = 0xffb9;
    /// RNSubGroupDirectionTable.
    pub const RN_SUB_GROUP_DIRECTION_TABLE: u16 = 0xffba;
    /// RNXmitPortMask.
    pub const RN_XMIT_PORT_MASK: u16 = 0xffbc;
    /// AdaptiveRoutingGroupTableCopy.
    pub const ADAPTIVE_ROUTING_GROUP_TABLE_COPY: u16 = 0xffbd;
    /// RNGenBySubGroupPriority.
    pub const RN_GEN_BY_SUB_GROUP_PRIORITY: u16 = 0xffbe;
}
