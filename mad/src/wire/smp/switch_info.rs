//! SwitchInfo (specification volume 1, 14.2.5.4): 20 bytes.

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// A switch's tables and abilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SwitchInfo {
    /// Entries of the linear forwarding table.
    pub linear_fdb_cap: U16,
    /// Entries of the random forwarding table.
    pub random_fdb_cap: U16,
    /// Entries of the multicast forwarding table.
    pub multicast_fdb_cap: U16,
    /// Highest LID in use of the linear forwarding table; packets beyond are dropped.
    pub linear_fdb_top: U16,
    /// Port for LIDs that the random table doesn't hold.
    pub default_port: u8,
    /// Default port for multicast, primary.
    pub default_multicast_primary_port: u8,
    /// Default port for multicast that came in by the primary port.
    pub default_multicast_not_primary_port: u8,
    life_time_and_state: u8,
    /// LIDs per port for the random table.
    pub lids_per_port: U16,
    /// Entries of the P_Key tables of external ports.
    pub partition_enforcement_cap: U16,
    enforcement_flags: u8,
    reserved: u8,
    /// Highest multicast LID in use, 0 when not supported.
    pub multicast_fdb_top: U16,
}
const _: () = assert!(size_of::<SwitchInfo>() == 20);

impl Attribute for SwitchInfo {
    const ID: u16 = ids::sm::SWITCH_INFO;
}

impl SwitchInfo {
    bits! {
        /// LifeTimeValue: a packet lives 4.096 µs · 2^n in the switch; above 19 for ever.
        life_time_value, set_life_time_value: life_time_and_state[7:3];
        /// PortStateChange: 1 when a port changed state since it was cleared; a Set with 1 clears it.
        port_state_change, set_port_state_change: life_time_and_state[2:2];
        /// OptimizedSLtoVLMappingProgramming: 0 to 3.
        optimized_sl_to_vl, set_optimized_sl_to_vl: life_time_and_state[1:0];
        /// InboundEnforcementCap.
        inbound_enforcement_cap, set_inbound_enforcement_cap: enforcement_flags[7:7];
        /// OutboundEnforcementCap.
        outbound_enforcement_cap, set_outbound_enforcement_cap: enforcement_flags[6:6];
        /// FilterRawInboundCap.
        filter_raw_inbound_cap, set_filter_raw_inbound_cap: enforcement_flags[5:5];
        /// FilterRawOutboundCap.
        filter_raw_outbound_cap, set_filter_raw_outbound_cap: enforcement_flags[4:4];
        /// EnhancedPort0: port 0 is a full port of its own.
        enhanced_port_0, set_enhanced_port_0: enforcement_flags[3:3];
    }
}
