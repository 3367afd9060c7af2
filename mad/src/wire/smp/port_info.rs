//! PortInfo (specification volume 1, 14.2.5.6): 64 bytes.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{
    Lid, LinkSpeed, LinkSpeedSet, LinkWidth, LinkWidthSet, Mtu, PortPhysState, PortState, ServiceLevel,
    WireKey,
};
use crate::wire::{Attribute, ids};

/// State and settings of one port. The attribute modifier is the port number; bit 31 says that the sender knows
/// extended link speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortInfo {
    /// M_Key of the port.
    pub m_key: WireKey,
    /// GidPrefix of the subnet.
    pub gid_prefix: U64,
    /// Base LID; see [`PortInfo::lid`].
    pub base_lid: U16,
    /// LID of the master subnet manager.
    pub master_sm_lid: U16,
    /// CapabilityMask.
    pub capability_mask: U32,
    /// DiagCode.
    pub diag_code: U16,
    /// M_KeyLeasePeriod in seconds, 0 for no end.
    pub m_key_lease_period: U16,
    /// The port by which the request came in.
    pub local_port_num: u8,
    /// LinkWidthEnabled; 0 in a Set leaves it, 255 enables all supported.
    pub link_width_enabled: u8,
    /// LinkWidthSupported.
    pub link_width_supported: u8,
    /// LinkWidthActive.
    pub link_width_active: u8,
    speed_supported_and_state: u8,
    phys_state_and_down_default: u8,
    m_key_protect_and_lmc: u8,
    speed_active_and_enabled: u8,
    neighbor_mtu_and_sm_sl: u8,
    vl_cap_and_init_type: u8,
    /// VLHighLimit.
    pub vl_high_limit: u8,
    /// VLArbitrationHighCap: entries of the high-priority table.
    pub vl_arbitration_high_cap: u8,
    /// VLArbitrationLowCap: entries of the low-priority table.
    pub vl_arbitration_low_cap: u8,
    init_type_reply_and_mtu_cap: u8,
    vl_stall_and_hoq_life: u8,
    operational_vls_and_enforcement: u8,
    /// M_KeyViolations.
    pub m_key_violations: U16,
    /// P_KeyViolations.
    pub p_key_violations: U16,
    /// Q_KeyViolations.
    pub q_key_violations: U16,
    /// GUIDCap: entries of the GUIDInfo table.
    pub guid_cap: u8,
    reregister_and_timeout: u8,
    response_time: u8,
    error_thresholds: u8,
    /// MaxCreditHint.
    pub max_credit_hint: U16,
    latency_and_speed_ext2: U32,
    /// CapabilityMask2, valid when [`PortInfo::CAP_CAPABILITY_MASK2`] is set.
    pub capability_mask2: U16,
    speed_ext_active_and_supported: u8,
    speed_ext_enabled: u8,
}
const _: () = assert!(size_of::<PortInfo>() == 64);

impl Attribute for PortInfo {
    const ID: u16 = ids::sm::PORT_INFO;
}

impl PortInfo {
    /// Attribute modifier, bit 31: the sender knows extended link speeds (SMSupportExtendedSpeeds).
    pub const MODIFIER_EXTENDED_SPEEDS: u32 = 1 << 31;

    /// CapabilityMask: IsSM.
    pub const CAP_IS_SM: u32 = 1 << 1;
    /// CapabilityMask: IsNoticeSupported.
    pub const CAP_IS_NOTICE_SUPPORTED: u32 = 1 << 2;
    /// CapabilityMask: IsTrapSupported.
    pub const CAP_IS_TRAP_SUPPORTED: u32 = 1 << 3;
    /// CapabilityMask: IsAutomaticMigrationSupported.
    pub const CAP_AUTOMATIC_MIGRATION: u32 = 1 << 5;
    /// CapabilityMask: IsSLMappingSupported.
    pub const CAP_SL_MAPPING: u32 = 1 << 6;
    /// CapabilityMask: IsSystemImageGUIDSupported.
    pub const CAP_SYSTEM_IMAGE_GUID: u32 = 1 << 11;
    /// CapabilityMask: IsExtendedSpeedsSupported.
    pub const CAP_EXTENDED_SPEEDS: u32 = 1 << 14;
    /// CapabilityMask: IsCapabilityMask2Supported.
    pub const CAP_CAPABILITY_MASK2: u32 = 1 << 15;
    /// CapabilityMask: IsCommunicationManagementSupported.
    pub const CAP_COMMUNICATION_MANAGEMENT: u32 = 1 << 16;
    /// CapabilityMask: IsSNMPTunnelingSupported.
    pub const CAP_SNMP_TUNNELING: u32 = 1 << 17;
    /// CapabilityMask: IsReinitSupported.
    pub const CAP_REINIT: u32 = 1 << 18;
    /// CapabilityMask: IsDeviceManagementSupported.
    pub const CAP_DEVICE_MANAGEMENT: u32 = 1 << 19;
    /// CapabilityMask: IsVendorClassSupported.
    pub const CAP_VENDOR_CLASS: u32 = 1 << 20;
    /// CapabilityMask: IsCapabilityMaskNoticeSupported.
    pub const CAP_CAPABILITY_MASK_NOTICE: u32 = 1 << 22;
    /// CapabilityMask: IsBootManagementSupported.
    pub const CAP_BOOT_MANAGEMENT: u32 = 1 << 23;
    /// CapabilityMask: IsClientReregistrationSupported.
    pub const CAP_CLIENT_REREGISTRATION: u32 = 1 << 25;
    /// CapabilityMask: IsOtherLocalChangesNoticeSupported.
    pub const CAP_OTHER_LOCAL_CHANGES_NOTICE: u32 = 1 << 26;
    /// CapabilityMask2: IsPortInfoExtendedSupported.
    pub const CAP2_PORT_INFO_EXTENDED: u16 = 1 << 1;
    /// CapabilityMask2: IsVirtualizationSupported (`IB_PORT_VIRT_SUP` of the kernel's `ib_mad.h`).
    pub const CAP2_VIRTUALIZATION: u16 = 1 << 2;
    /// CapabilityMask2: IsLinkWidth2xSupported.
    pub const CAP2_LINK_WIDTH_2X: u16 = 1 << 4;
    /// CapabilityMask2: IsLinkSpeedHDRSupported.
    pub const CAP2_LINK_SPEED_HDR: u16 = 1 << 5;
    /// CapabilityMask2: IsLinkSpeedNDRSupported.
    pub const CAP2_LINK_SPEED_NDR: u16 = 1 << 10;
    /// CapabilityMask2: IsExtendedSpeeds2Supported.
    pub const CAP2_EXTENDED_SPEEDS2: u16 = 1 << 11;
    /// CapabilityMask2: IsLinkSpeedXDRSupported.
    pub const CAP2_LINK_SPEED_XDR: u16 = 1 << 12;

    bits! {
        /// LinkSpeedSupported: 1 SDR, 2 DDR, 4 QDR.
        link_speed_supported, set_link_speed_supported: speed_supported_and_state[7:4];
        /// PortState as on the wire; 0 in a Set is "no change".
        port_state_raw, set_port_state_raw: speed_supported_and_state[3:0];
        /// PortPhysicalState as on the wire; 0 in a Set is "no change".
        port_phys_state_raw, set_port_phys_state_raw: phys_state_and_down_default[7:4];
        /// LinkDownDefaultState: 1 Sleep, 2 Polling, 0 in a Set "no change".
        link_down_default_state, set_link_down_default_state: phys_state_and_down_default[3:0];
        /// M_KeyProtectBits, 0 to 3.
        m_key_protect_bits, set_m_key_protect_bits: m_key_protect_and_lmc[7:6];
        /// LMC: 2^LMC LIDs belong to the port.
        lmc, set_lmc: m_key_protect_and_lmc[2:0];
        /// LinkSpeedActive: 1 SDR, 2 DDR, 4 QDR.
        link_speed_active, set_link_speed_active: speed_active_and_enabled[7:4];
        /// LinkSpeedEnabled; 0 in a Set leaves it, 15 enables all supported.
        link_speed_enabled, set_link_speed_enabled: speed_active_and_enabled[3:0];
        /// NeighborMTU as on the wire.
        neighbor_mtu_raw, set_neighbor_mtu_raw: neighbor_mtu_and_sm_sl[7:4];
        /// MasterSMSL.
        master_sm_sl, set_master_sm_sl: neighbor_mtu_and_sm_sl[3:0];
        /// VLCap: 1 = VL0, 2 = VL0–1, 3 = VL0–3, 4 = VL0–7, 5 = VL0–14.
        vl_cap, set_vl_cap: vl_cap_and_init_type[7:4];
        /// InitType.
        init_type, set_init_type: vl_cap_and_init_type[3:0];
        /// InitTypeReply.
        init_type_reply, set_init_type_reply: init_type_reply_and_mtu_cap[7:4];
        /// MTUCap as on the wire.
        mtu_cap_raw, set_mtu_cap_raw: init_type_reply_and_mtu_cap[3:0];
        /// VLStallCount.
        vl_stall_count, set_vl_stall_count: vl_stall_and_hoq_life[7:5];
        /// HOQLife.
        hoq_life, set_hoq_life: vl_stall_and_hoq_life[4:0];
        /// OperationalVLs, coded like VLCap; 0 in a Set is "no change".
        operational_vls, set_operational_vls: operational_vls_and_enforcement[7:4];
        /// PartitionEnforcementInbound.
        partition_enforcement_inbound, set_partition_enforcement_inbound: operational_vls_and_enforcement[3:3];
        /// PartitionEnforcementOutbound.
        partition_enforcement_outbound, set_partition_enforcement_outbound: operational_vls_and_enforcement[2:2];
        /// FilterRawInbound.
        filter_raw_inbound, set_filter_raw_inbound: operational_vls_and_enforcement[1:1];
        /// FilterRawOutbound.
        filter_raw_outbound, set_filter_raw_outbound: operational_vls_and_enforcement[0:0];
        /// ClientReregister.
        client_reregister, set_client_reregister: reregister_and_timeout[7:7];
        /// McastPKeyTrapSuppressionEnabled.
        multicast_pkey_trap_suppression, set_multicast_pkey_trap_suppression: reregister_and_timeout[6:5];
        /// SubnetTimeOut: 4.096 µs · 2^n.
        subnet_timeout, set_subnet_timeout: reregister_and_timeout[4:0];
        /// RespTimeValue: 4.096 µs · 2^n.
        resp_time_value, set_resp_time_value: response_time[4:0];
        /// LocalPhyErrors threshold.
        local_phy_errors, set_local_phy_errors: error_thresholds[7:4];
        /// OverrunErrors threshold.
        overrun_errors, set_overrun_errors: error_thresholds[3:0];
        /// LinkSpeedExtActive: 1 FDR, 2 EDR, 4 HDR, 8 NDR.
        link_speed_ext_active, set_link_speed_ext_active: speed_ext_active_and_supported[7:4];
        /// LinkSpeedExtSupported, the same bits.
        link_speed_ext_supported, set_link_speed_ext_supported: speed_ext_active_and_supported[3:0];
        /// LinkSpeedExtEnabled; 0 in a Set leaves it, 30 disables, 31 enables all supported.
        link_speed_ext_enabled, set_link_speed_ext_enabled: speed_ext_enabled[4:0];
    }

    word_bits! {
        /// LinkSpeedExt2Active: 1 XDR.
        link_speed_ext2_active_word, set_link_speed_ext2_active: latency_and_speed_ext2 as u32[30:29];
        /// LinkSpeedExt2Supported: 1 XDR.
        link_speed_ext2_supported_word, set_link_speed_ext2_supported: latency_and_speed_ext2 as u32[28:27];
        /// LinkSpeedExt2Enabled: 1 XDR, 7 all supported, 0 in a Set leaves it.
        link_speed_ext2_enabled_word, set_link_speed_ext2_enabled: latency_and_speed_ext2 as u32[26:24];
        /// LinkRoundTripLatency.
        link_round_trip_latency, set_link_round_trip_latency: latency_and_speed_ext2 as u32[23:0];
    }

    /// LinkSpeedExt2Active: 1 XDR.
    pub const fn link_speed_ext2_active(&self) -> u8 {
        self.link_speed_ext2_active_word() as u8
    }

    /// LinkSpeedExt2Supported: 1 XDR.
    pub const fn link_speed_ext2_supported(&self) -> u8 {
        self.link_speed_ext2_supported_word() as u8
    }

    /// LinkSpeedExt2Enabled: 1 XDR, 7 all supported, 0 in a Set leaves it.
    pub const fn link_speed_ext2_enabled(&self) -> u8 {
        self.link_speed_ext2_enabled_word() as u8
    }

    /// Sets the three LinkSpeedExt2 fields (active, supported: 2 bits; enabled: 3 bits).
    pub fn set_link_speed_ext2(&mut self, active: u8, supported: u8, enabled: u8) {
        self.set_link_speed_ext2_active(active.into());
        self.set_link_speed_ext2_supported(supported.into());
        self.set_link_speed_ext2_enabled(enabled.into());
    }

    /// The base LID; `None` for 0, a multicast LID or 0xFFFF, which all mean "none" (B16).
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.base_lid.get())
    }

    /// PortState; `None` for an undefined value.
    pub const fn port_state(&self) -> Option<PortState> {
        PortState::from_wire(self.port_state_raw())
    }

    /// PortPhysicalState; `None` for an undefined value.
    pub const fn port_phys_state(&self) -> Option<PortPhysState> {
        PortPhysState::from_wire(self.port_phys_state_raw())
    }

    /// MTUCap; `None` for an undefined value.
    pub const fn mtu_cap(&self) -> Option<Mtu> {
        Mtu::from_wire(self.mtu_cap_raw())
    }

    /// NeighborMTU; `None` for an undefined value.
    pub const fn neighbor_mtu(&self) -> Option<Mtu> {
        Mtu::from_wire(self.neighbor_mtu_raw())
    }

    /// MasterSMSL.
    pub const fn sm_sl(&self) -> ServiceLevel {
        ServiceLevel(self.master_sm_sl())
    }

    /// LinkWidthActive; `None` for an undefined value.
    pub const fn link_width(&self) -> Option<LinkWidth> {
        LinkWidth::from_wire(self.link_width_active)
    }

    /// LinkWidthSupported.
    pub const fn widths_supported(&self) -> LinkWidthSet {
        LinkWidthSet(self.link_width_supported)
    }

    /// The speed in force, over all three speed fields; `fdr10` is the vendor's ExtendedPortInfo bit.
    pub const fn link_speed(&self, fdr10: bool) -> Option<LinkSpeed> {
        LinkSpeed::from_active(
            self.link_speed_active(),
            self.link_speed_ext_active(),
            self.link_speed_ext2_active(),
            fdr10,
        )
    }

    /// The speeds that the port can do.
    pub const fn speeds_supported(&self) -> LinkSpeedSet {
        LinkSpeedSet::from_fields(
            self.link_speed_supported(),
            self.link_speed_ext_supported(),
            self.link_speed_ext2_supported(),
            false,
        )
    }

    /// Whether all bits of `mask` are set in CapabilityMask.
    pub fn has_capability(&self, mask: u32) -> bool {
        self.capability_mask.get() & mask == mask
    }

    /// Whether CapabilityMask2 is there and has all bits of `mask`.
    pub fn has_capability2(&self, mask: u16) -> bool {
        self.has_capability(Self::CAP_CAPABILITY_MASK2) && self.capability_mask2.get() & mask == mask
    }
}
