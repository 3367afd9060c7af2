//! Adaptive routing: AdaptiveRoutingInfo (0xFF20), the group table (0xFF21) and the forwarding table (0xFF23).
//!
//! A switch with adaptive routing keeps, for each LID, besides the static port a group of ports, of which it picks one for
//! each packet.

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::PortNum;
use crate::wire::{Attribute, ids};

/// Abilities and settings of a switch's adaptive routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AdaptiveRoutingInfo {
    caps: u8,
    /// Directions of routing notification supported.
    pub direction_num_supported: u8,
    sub_groups: u8,
    enables: u8,
    groups: U32,
    /// Service levels that are routed adaptively, where BySLEn is set.
    pub enable_by_sl_mask: U16,
    /// Sub-groups supported, read-only.
    pub sub_groups_supported: u8,
    versions: u8,
    reserved: [u8; 3],
    /// Transports that are not routed adaptively: bit 0 UD, 1 RC, 2 UC, 3 DC.
    pub by_transport_disable: u8,
    /// Ageing time in microseconds.
    pub ageing_time: U32,
    hash_caps: u8,
    reserved2: u8,
    hash_enables: u8,
    reserved3: [u8; 3],
    /// Service levels for hash-based forwarding.
    pub enable_by_sl_mask_hbf: U16,
    reserved4: [u8; 36],
}
const _: () = assert!(size_of::<AdaptiveRoutingInfo>() == 64);
const _: () = assert!(std::mem::offset_of!(AdaptiveRoutingInfo, by_transport_disable) == 15);
const _: () = assert!(std::mem::offset_of!(AdaptiveRoutingInfo, enable_by_sl_mask_hbf) == 26);

impl Attribute for AdaptiveRoutingInfo {
    const ID: u16 = ids::vendor::ADAPTIVE_ROUTING_INFO;
}

impl AdaptiveRoutingInfo {
    bits! {
        /// DynCapCalcSup: capabilities are calculated when enabled.
        dynamic_cap_calculation, set_dynamic_cap_calculation: caps[6:6];
        /// ByTranspCap.
        by_transport_cap, set_by_transport_cap: caps[5:5];
        /// BySLEn.
        by_sl_enabled, set_by_sl_enabled: caps[4:4];
        /// BySLCap.
        by_sl_cap, set_by_sl_cap: caps[3:3];
        /// GlbGroups: the group table is shared by all ports.
        global_groups, set_global_groups: caps[2:2];
        /// IS4Mode.
        is4_mode, set_is4_mode: caps[1:1];
        /// NoFallback.
        no_fallback, set_no_fallback: caps[0:0];
        /// Group table copy is supported.
        group_table_copy, set_group_table_copy: sub_groups[7:4];
        /// Sub-groups in use.
        sub_groups_active, set_sub_groups_active: sub_groups[3:0];
        /// Routing notifications are sent.
        rn_xmit_enabled, set_rn_xmit_enabled: enables[5:5];
        /// Fast recovery is on.
        fr_enabled, set_fr_enabled: enables[4:4];
        /// Fast recovery is supported.
        fr_supported, set_fr_supported: enables[3:3];
        /// Fault routing notification is supported.
        frn_supported, set_frn_supported: enables[2:2];
        /// Adaptive routing notification is supported.
        arn_supported, set_arn_supported: enables[1:1];
        /// E: adaptive routing is on.
        enabled, set_enabled: enables[0:0];
        /// Version of routing notification.
        rn_version_cap, set_rn_version_cap: versions[7:4];
        /// Version of adaptive routing.
        ar_version_cap, set_ar_version_cap: versions[3:0];
        /// Hash-based forwarding is supported.
        hbf_supported, set_hbf_supported: hash_caps[7:7];
        /// Weighted hash-based forwarding is supported.
        whbf_supported, set_whbf_supported: hash_caps[6:6];
        /// Packet-based fault routing notification is supported.
        pfrn_supported, set_pfrn_supported: hash_caps[1:1];
        /// Hash-based forwarding by SL is on.
        hbf_by_sl_enabled, set_hbf_by_sl_enabled: hash_enables[7:7];
        /// Weighted hash-based forwarding is on.
        whbf_enabled, set_whbf_enabled: hash_enables[6:6];
        /// Packet-based fault routing notification is on.
        pfrn_enabled, set_pfrn_enabled: hash_enables[4:4];
    }

    word_bits! {
        /// StringWidthCap.
        string_width_cap, set_string_width_cap: groups as u32[31:28];
        /// GroupTableCap.
        group_table_cap, set_group_table_cap: groups as u32[27:24];
        /// GroupTop: highest group in use.
        group_top, set_group_top: groups as u32[23:12];
        /// GroupCap: number of groups.
        group_cap, set_group_cap: groups as u32[11:0];
    }
}

/// A block of the group table: the ports of two sub-groups, 256 bits each. No public source says which bit is which port;
/// here a mask is one big number, as everything on the wire, and port p its bit p.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AdaptiveRoutingGroupTable {
    /// The masks of sub-groups 0 and 1.
    pub sub_groups: [[u8; 32]; 2],
}
const _: () = assert!(size_of::<AdaptiveRoutingGroupTable>() == 64);

impl Attribute for AdaptiveRoutingGroupTable {
    const ID: u16 = ids::vendor::ADAPTIVE_ROUTING_GROUP_TABLE;
}

impl AdaptiveRoutingGroupTable {
    /// Whether a port is in a sub-group; false for a sub-group beyond 1.
    pub fn has_port(&self, sub_group: usize, port: PortNum) -> bool {
        self.sub_groups
            .get(sub_group)
            .is_some_and(|mask| mask[31 - port.index() / 8] >> (port.0 % 8) & 1 == 1)
    }

    /// Puts a port into a sub-group; does nothing for a sub-group beyond 1.
    pub fn add_port(&mut self, sub_group: usize, port: PortNum) {
        if let Some(mask) = self.sub_groups.get_mut(sub_group) {
            mask[31 - port.index() / 8] |= 1 << (port.0 % 8);
        }
    }
}

/// Copies groups to others; the attribute modifier's bits 11:0 are the group to copy from. The order of the two ends of a
/// range is not known for certain: the public descriptions contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AdaptiveRoutingGroupTableCopy {
    /// Ranges of groups to copy to: 12 bits of each end count.
    pub ranges: [[U16; 2]; 16],
}
const _: () = assert!(size_of::<AdaptiveRoutingGroupTableCopy>() == 64);

impl Attribute for AdaptiveRoutingGroupTableCopy {
    const ID: u16 = ids::vendor::ADAPTIVE_ROUTING_GROUP_TABLE_COPY;
}

/// How packets to a LID are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LidState {
    /// Adaptively, but a flow stays on its port.
    Bounded,
    /// Adaptively, packet by packet.
    Free,
    /// By the static port only.
    Static,
    /// By a hash of the flow.
    HashBased,
}

impl LidState {
    /// From the wire's two bits; higher bits don't count.
    pub const fn from_wire(raw: u8) -> Self {
        match raw & 3 {
            0 => Self::Bounded,
            1 => Self::Free,
            2 => Self::Static,
            _ => Self::HashBased,
        }
    }

    /// The wire's value.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Bounded => 0,
            Self::Free => 1,
            Self::Static => 2,
            Self::HashBased => 3,
        }
    }
}

/// One LID's entry in the adaptive forwarding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AdaptiveRoutingEntry {
    state_and_table: u8,
    /// The static port.
    pub default_port: u8,
    /// The group.
    pub group: U16,
}

impl AdaptiveRoutingEntry {
    bits! {
        /// LID state as on the wire.
        lid_state_raw, set_lid_state_raw: state_and_table[7:6];
        /// Number of the group table.
        group_table, set_group_table: state_and_table[3:0];
    }

    /// An entry of group table 0.
    pub fn new(state: LidState, port: PortNum, group: u16) -> Self {
        Self { state_and_table: state.to_wire() << 6, default_port: port.0, group: U16::new(group) }
    }

    /// How packets to the LID are forwarded.
    pub const fn lid_state(&self) -> LidState {
        LidState::from_wire(self.lid_state_raw())
    }
}

/// A block of the adaptive forwarding table: LIDs 16·n to 16·n+15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AdaptiveRoutingLinearForwardingTable {
    /// The entries.
    pub entries: [AdaptiveRoutingEntry; 16],
}
const _: () = assert!(size_of::<AdaptiveRoutingLinearForwardingTable>() == 64);

impl Attribute for AdaptiveRoutingLinearForwardingTable {
    const ID: u16 = ids::vendor::ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE;
}

impl AdaptiveRoutingLinearForwardingTable {
    /// LIDs of a block.
    pub const PER_BLOCK: usize = 16;
}
