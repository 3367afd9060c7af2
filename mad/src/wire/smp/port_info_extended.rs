//! PortInfoExtended (specification volume 1, 14.2.5.19): forward error correction modes of a port. The modifier is the
//! port. Valid where PortInfo.CapabilityMask2 bit 1 is set.

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// FEC modes, supported and enabled, by speed: bit 0 none, 1 FireCode, 2 Reed–Solomon, 3 low-latency Reed–Solomon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortInfoExtended {
    /// CapabilityMask: bit 0 says that the FEC fields are valid.
    pub capability_mask: U32,
    /// FECModeActive: 0 none, 1 FireCode, 2 Reed–Solomon, 3 low-latency Reed–Solomon.
    pub fec_mode_active: U16,
    /// FDRFECModeSupported.
    pub fdr_fec_mode_supported: U16,
    /// FDRFECModeEnabled.
    pub fdr_fec_mode_enabled: U16,
    /// EDRFECModeSupported.
    pub edr_fec_mode_supported: U16,
    /// EDRFECModeEnabled.
    pub edr_fec_mode_enabled: U16,
    /// HDRFECModeSupported.
    pub hdr_fec_mode_supported: U16,
    /// HDRFECModeEnabled.
    pub hdr_fec_mode_enabled: U16,
    /// NDRFECModeSupported.
    pub ndr_fec_mode_supported: U16,
    /// NDRFECModeEnabled.
    pub ndr_fec_mode_enabled: U16,
    reserved: [u8; 42],
}
const _: () = assert!(size_of::<PortInfoExtended>() == 64);

impl Attribute for PortInfoExtended {
    const ID: u16 = ids::sm::PORT_INFO_EXTENDED;
}

impl PortInfoExtended {
    /// CapabilityMask: the FEC fields are valid.
    pub const CAP_FEC_MODES: u32 = 1 << 0;
}
