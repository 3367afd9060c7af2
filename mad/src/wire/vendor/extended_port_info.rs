//! ExtendedPortInfo (0xFF90): above all whether a link of QDR signalling runs at FDR10. The modifier is the port.

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// Vendor's additions to PortInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MlnxExtendedPortInfo {
    flags: u8,
    reserved: [u8; 2],
    /// StateChangeEnable: which of the settings below a Set means.
    pub state_change_enable: u8,
    bandwidth_utilisation_word: U16,
    /// Why the port is kept out of use: 1 no reason, 2 credit watchdog, 3 symmetry, 4 raw, 5 effective, 6 symbol bit
    /// error rate, 8 contain-and-drain; 0 where not known.
    pub unhealthy_reason: u8,
    /// LinkSpeedSupported: bit 0 FDR10.
    pub link_speed_supported: u8,
    reserved2: [u8; 3],
    /// LinkSpeedEnabled: bit 0 FDR10.
    pub link_speed_enabled: u8,
    reserved3: [u8; 3],
    /// LinkSpeedActive: bit 0 FDR10.
    pub link_speed_active: u8,
    reserved4: [u8; 2],
    /// CapabilityMask.
    pub capability_mask: U16,
    reserved5: [u8; 27],
    special_port: u8,
    reserved6: [u8; 16],
}
const _: () = assert!(size_of::<MlnxExtendedPortInfo>() == 64);
const _: () = assert!(std::mem::offset_of!(MlnxExtendedPortInfo, link_speed_active) == 15);
const _: () = assert!(std::mem::offset_of!(MlnxExtendedPortInfo, special_port) == 47);

impl Attribute for MlnxExtendedPortInfo {
    const ID: u16 = ids::vendor::MLNX_EXTENDED_PORT_INFO;
}

impl MlnxExtendedPortInfo {
    /// LinkSpeedSupported, LinkSpeedEnabled, LinkSpeedActive: FDR10.
    pub const FDR10: u8 = 1 << 0;

    bits! {
        /// 1 when the port belongs to a SHARP aggregation node that is in use.
        sharp_enabled, set_sharp_enabled: flags[6:6];
        /// 1 when the switch's router LID forwarding is in use.
        router_lid_enabled, set_router_lid_enabled: flags[5:5];
        /// 1 for a port that serves the switch itself, not a cable.
        is_special_port, set_is_special_port: special_port[7:7];
        /// Kind of special port.
        special_port_type, set_special_port_type: special_port[3:0];
    }

    word_bits! {
        /// 1 when the bandwidth utilisation counts.
        bandwidth_utilisation_enabled, set_bandwidth_utilisation_enabled: bandwidth_utilisation_word as u16[10:10];
        /// Bandwidth utilisation.
        bandwidth_utilisation, set_bandwidth_utilisation: bandwidth_utilisation_word as u16[9:0];
    }

    /// Whether the link runs at FDR10.
    pub const fn is_fdr10_active(&self) -> bool {
        self.link_speed_active & Self::FDR10 != 0
    }
}
