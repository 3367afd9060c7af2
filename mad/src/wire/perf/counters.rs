//! PortCounters (specification volume 1, 16.1.3.5): 44 bytes. All counters stop at their largest value.

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// Error and data counters of a port. A Set writes the counters that CounterSelect names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortCounters {
    reserved: u8,
    /// PortSelect.
    pub port_select: u8,
    /// CounterSelect: bit n for the n-th counter, in a Set.
    pub counter_select: U16,
    /// SymbolErrorCounter.
    pub symbol_error_counter: U16,
    /// LinkErrorRecoveryCounter.
    pub link_error_recovery_counter: u8,
    /// LinkDownedCounter.
    pub link_downed_counter: u8,
    /// PortRcvErrors.
    pub port_rcv_errors: U16,
    /// PortRcvRemotePhysicalErrors.
    pub port_rcv_remote_physical_errors: U16,
    /// PortRcvSwitchRelayErrors.
    pub port_rcv_switch_relay_errors: U16,
    /// PortXmitDiscards.
    pub port_xmit_discards: U16,
    /// PortXmitConstraintErrors.
    pub port_xmit_constraint_errors: u8,
    /// PortRcvConstraintErrors.
    pub port_rcv_constraint_errors: u8,
    /// CounterSelect2.
    pub counter_select2: u8,
    integrity_and_overrun: u8,
    /// QP1Dropped, where ClassPortInfo says that it is counted.
    pub qp1_dropped: U16,
    /// VL15Dropped.
    pub vl15_dropped: U16,
    /// PortXmitData, in units of 4 bytes.
    pub port_xmit_data: U32,
    /// PortRcvData, in units of 4 bytes.
    pub port_rcv_data: U32,
    /// PortXmitPkts.
    pub port_xmit_pkts: U32,
    /// PortRcvPkts.
    pub port_rcv_pkts: U32,
    /// PortXmitWait in ticks, where ClassPortInfo says that it is counted.
    pub port_xmit_wait: U32,
}
const _: () = assert!(size_of::<PortCounters>() == 44);

impl Attribute for PortCounters {
    const ID: u16 = ids::perf::PORT_COUNTERS;
}

impl PortCounters {
    bits! {
        /// LocalLinkIntegrityErrors.
        local_link_integrity_errors, set_local_link_integrity_errors: integrity_and_overrun[7:4];
        /// ExcessiveBufferOverrunErrors.
        excessive_buffer_overrun_errors, set_excessive_buffer_overrun_errors: integrity_and_overrun[3:0];
    }
}
