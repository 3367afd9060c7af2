//! PortCountersExtended (specification volume 1, 16.1.4.11): 184 bytes; 64-bit counters, so that data counters don't
//! stop after seconds. The error counters at the end exist where CapabilityMask2 says so.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// The 64-bit counters of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortCountersExtended {
    reserved: u8,
    /// PortSelect.
    pub port_select: u8,
    /// CounterSelect.
    pub counter_select: U16,
    /// CounterSelect2.
    pub counter_select2: U32,
    /// PortXmitData, in units of 4 bytes.
    pub port_xmit_data: U64,
    /// PortRcvData, in units of 4 bytes.
    pub port_rcv_data: U64,
    /// PortXmitPkts.
    pub port_xmit_pkts: U64,
    /// PortRcvPkts.
    pub port_rcv_pkts: U64,
    /// PortUnicastXmitPkts.
    pub port_unicast_xmit_pkts: U64,
    /// PortUnicastRcvPkts.
    pub port_unicast_rcv_pkts: U64,
    /// PortMulticastXmitPkts.
    pub port_multicast_xmit_pkts: U64,
    /// PortMulticastRcvPkts.
    pub port_multicast_rcv_pkts: U64,
    /// SymbolErrorCounter.
    pub symbol_error_counter: U64,
    /// LinkErrorRecoveryCounter.
    pub link_error_recovery_counter: U64,
    /// LinkDownedCounter.
    pub link_downed_counter: U64,
    /// PortRcvErrors.
    pub port_rcv_errors: U64,
    /// PortRcvRemotePhysicalErrors.
    pub port_rcv_remote_physical_errors: U64,
    /// PortRcvSwitchRelayErrors.
    pub port_rcv_switch_relay_errors: U64,
    /// PortXmitDiscards.
    pub port_xmit_discards: U64,
    /// PortXmitConstraintErrors.
    pub port_xmit_constraint_errors: U64,
    /// PortRcvConstraintErrors.
    pub port_rcv_constraint_errors: U64,
    /// LocalLinkIntegrityErrors.
    pub local_link_integrity_errors: U64,
    /// ExcessiveBufferOverrunErrors.
    pub excessive_buffer_overrun_errors: U64,
    /// VL15Dropped.
    pub vl15_dropped: U64,
    /// PortXmitWait.
    pub port_xmit_wait: U64,
    /// QP1Dropped.
    pub qp1_dropped: U64,
}
const _: () = assert!(size_of::<PortCountersExtended>() == 184);

impl Attribute for PortCountersExtended {
    const ID: u16 = ids::perf::PORT_COUNTERS_EXTENDED;
}
