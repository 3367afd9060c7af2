//! ClassPortInfo (specification volume 1, 13.4.8.1): 72 bytes; what a class agent can do, and where to redirect to.

use zerocopy::big_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Attribute, ids};
use crate::types::Gid;

/// Abilities of the agent of one management class (SA, performance, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ClassPortInfo {
    /// Supported MAD base version.
    pub base_version: u8,
    /// Supported version of the class.
    pub class_version: u8,
    /// CapabilityMask: bits 0 and 1 are common, 8 and above the class's own.
    pub capability_mask: U16,
    capability_mask2_and_response_time: U32,
    /// RedirectGID; 0 for no redirection by GID.
    pub redirect_gid: U128,
    redirect_tclass_sl_flow_label: U32,
    /// RedirectLID; 0 to use the GID.
    pub redirect_lid: U16,
    /// RedirectP_Key.
    pub redirect_pkey: U16,
    redirect_qp_word: U32,
    /// RedirectQ_Key.
    pub redirect_qkey: U32,
    /// TrapGID: where the agent sends traps.
    pub trap_gid: U128,
    trap_tclass_sl_flow_label: U32,
    /// TrapLID.
    pub trap_lid: U16,
    /// TrapP_Key.
    pub trap_pkey: U16,
    trap_hop_limit_and_qp: U32,
    /// TrapQ_Key.
    pub trap_qkey: U32,
}
const _: () = assert!(size_of::<ClassPortInfo>() == 72);

impl Attribute for ClassPortInfo {
    const ID: u16 = ids::common::CLASS_PORT_INFO;
}

impl ClassPortInfo {
    /// CapabilityMask: the agent sends traps.
    pub const CAP_TRAP: u16 = 1 << 0;
    /// CapabilityMask: Get(Notice) and Set(Notice) are supported.
    pub const CAP_GET_SET_NOTICE: u16 = 1 << 1;

    /// SA CapabilityMask: IsSubnetOptionalRecordsSupported.
    pub const SA_CAP_OPTIONAL_RECORDS: u16 = 1 << 8;
    /// SA CapabilityMask: IsUDMulticastSupported.
    pub const SA_CAP_UD_MULTICAST: u16 = 1 << 9;
    /// SA CapabilityMask: IsMultipathSupported.
    pub const SA_CAP_MULTIPATH: u16 = 1 << 10;
    /// SA CapabilityMask: IsReinitSupported.
    pub const SA_CAP_REINIT: u16 = 1 << 11;
    /// SA CapabilityMask: IsPortInfoCapMaskMatchSupported.
    pub const SA_CAP_PORT_INFO_CAP_MASK_MATCH: u16 = 1 << 13;
    /// SA CapabilityMask2: IsQoSSupported.
    pub const SA_CAP2_QOS: u32 = 1 << 1;
    /// SA CapabilityMask2: IsReversiblePathPKeyMembershipBitSupported.
    pub const SA_CAP2_REVERSIBLE_PATH_PKEY: u32 = 1 << 2;
    /// SA CapabilityMask2: IsMulticastTopSupported.
    pub const SA_CAP2_MULTICAST_TOP: u32 = 1 << 3;
    /// SA CapabilityMask2: IsAdditionalGUIDSupported (alias GUIDs).
    pub const SA_CAP2_ADDITIONAL_GUID: u32 = 1 << 5;
    /// SA CapabilityMask2: IsFullPortInfoRecordSupported.
    pub const SA_CAP2_FULL_PORT_INFO_RECORD: u32 = 1 << 6;
    /// SA CapabilityMask2: IsExtendedSpeedsSupported.
    pub const SA_CAP2_EXTENDED_SPEEDS: u32 = 1 << 7;
    /// SA CapabilityMask2: IsPortInfoCapMask2MatchSupported.
    pub const SA_CAP2_PORT_INFO_CAP_MASK2_MATCH: u32 = 1 << 10;

    /// Performance CapabilityMask: AllPortSelect.
    pub const PERF_CAP_ALL_PORT_SELECT: u16 = 1 << 8;
    /// Performance CapabilityMask: IsExtendedWidthSupported (PortCountersExtended with all counters).
    pub const PERF_CAP_EXTENDED_WIDTH: u16 = 1 << 9;
    /// Performance CapabilityMask: IsExtendedWidthSupportedNoIETF (without unicast and multicast counters).
    pub const PERF_CAP_EXTENDED_WIDTH_NO_IETF: u16 = 1 << 10;
    /// Performance CapabilityMask: PortCountersXmitWaitSupported.
    pub const PERF_CAP_XMIT_WAIT: u16 = 1 << 12;
    /// Performance CapabilityMask: IsQP1DroppedSupported.
    pub const PERF_CAP_QP1_DROPPED: u16 = 1 << 15;
    /// Performance CapabilityMask2: IsAdditionalPortCountersExtendedSupported (64-bit error counters).
    pub const PERF_CAP2_ADDITIONAL_EXTENDED: u32 = 1 << 1;

    word_bits! {
        /// CapabilityMask2, 27 bits.
        capability_mask2, set_capability_mask2: capability_mask2_and_response_time as u32[31:5];
        /// RespTimeValue: the agent answers within 4.096 µs · 2^n.
        resp_time_value, set_resp_time_value: capability_mask2_and_response_time as u32[4:0];
        /// RedirectTC.
        redirect_tclass, set_redirect_tclass: redirect_tclass_sl_flow_label as u32[31:24];
        /// RedirectSL.
        redirect_sl, set_redirect_sl: redirect_tclass_sl_flow_label as u32[23:20];
        /// RedirectFL.
        redirect_flow_label, set_redirect_flow_label: redirect_tclass_sl_flow_label as u32[19:0];
        /// RedirectQP.
        redirect_qp, set_redirect_qp: redirect_qp_word as u32[23:0];
        /// TrapTC.
        trap_tclass, set_trap_tclass: trap_tclass_sl_flow_label as u32[31:24];
        /// TrapSL.
        trap_sl, set_trap_sl: trap_tclass_sl_flow_label as u32[23:20];
        /// TrapFL.
        trap_flow_label, set_trap_flow_label: trap_tclass_sl_flow_label as u32[19:0];
        /// TrapHL.
        trap_hop_limit, set_trap_hop_limit: trap_hop_limit_and_qp as u32[31:24];
        /// TrapQP.
        trap_qp, set_trap_qp: trap_hop_limit_and_qp as u32[23:0];
    }

    /// RedirectGID.
    pub const fn redirect_gid(&self) -> Gid {
        Gid(self.redirect_gid.get())
    }

    /// Whether the agent asks to be addressed elsewhere.
    pub const fn is_redirect(&self) -> bool {
        self.redirect_lid.get() != 0 || self.redirect_gid.get() != 0
    }
}
