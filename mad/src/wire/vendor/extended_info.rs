//! ExtendedNodeInfo (0xFF91) and ExtendedSwitchInfo (0xFF92).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// Vendor's additions to NodeInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtendedNodeInfo {
    /// Out-of-band interfaces.
    pub oob_count: u8,
    /// PCIe interfaces.
    pub pcie_count: u8,
    /// SLtoVL mapping in force.
    pub sl_to_vl_active: u8,
    /// SLtoVL mappings that can be chosen.
    pub sl_to_vl_cap: u8,
    reserved: [u8; 9],
    /// Highest anycast LID in use.
    pub anycast_lid_top: u8,
    /// Number of anycast LIDs.
    pub anycast_lid_cap: u8,
    /// Extended node type.
    pub extended_node_type: u8,
    enables: u8,
    reserved2: [u8; 2],
    /// Most planes that the device can have (XDR: 2 to 4).
    pub max_planes: u8,
    reserved3: [u8; 44],
}
const _: () = assert!(size_of::<ExtendedNodeInfo>() == 64);
const _: () = assert!(std::mem::offset_of!(ExtendedNodeInfo, max_planes) == 19);

impl Attribute for ExtendedNodeInfo {
    const ID: u16 = ids::vendor::EXTENDED_NODE_INFO;
}

impl ExtendedNodeInfo {
    bits! {
        /// The planes of a port may differ.
        multiplane_asymmetry_enabled, set_multiplane_asymmetry_enabled: enables[7:7];
        /// Links retrain by themselves.
        link_auto_retrain_enabled, set_link_auto_retrain_enabled: enables[6:6];
    }
}

/// Vendor's additions to SwitchInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtendedSwitchInfo {
    reserved: [u8; 3],
    modes: u8,
    /// Which of the further fields exist.
    pub advanced_fields: u8,
    reserved2: u8,
    request_delay_word: U16,
    set_threshold_word: U16,
    reset_threshold_word: U16,
    reserved3: [u8; 2],
    trigger_window_word: U16,
    reserved4: [u8; 48],
}
const _: () = assert!(size_of::<ExtendedSwitchInfo>() == 64);
const _: () = assert!(std::mem::offset_of!(ExtendedSwitchInfo, trigger_window_word) == 14);

impl Attribute for ExtendedSwitchInfo {
    const ID: u16 = ids::vendor::EXTENDED_SWITCH_INFO;
}

impl ExtendedSwitchInfo {
    bits! {
        /// Firmware update in service: 0 idle, 1 requested, 2 error, 3 approved.
        issu, set_issu: modes[5:4];
        /// TurboPath is supported.
        turbo_path_cap, set_turbo_path_cap: modes[3:3];
        /// TurboPath in force.
        turbo_path_enabled, set_turbo_path_enabled: modes[2:0];
    }

    word_bits! {
        /// Request delay.
        request_delay, set_request_delay: request_delay_word as u16[9:0];
        /// Set-trigger threshold.
        set_trigger_threshold, set_set_trigger_threshold: set_threshold_word as u16[9:0];
        /// Reset-trigger threshold.
        reset_trigger_threshold, set_reset_trigger_threshold: reset_threshold_word as u16[9:0];
        /// Trigger window.
        trigger_window, set_trigger_window: trigger_window_word as u16[9:0];
    }
}
