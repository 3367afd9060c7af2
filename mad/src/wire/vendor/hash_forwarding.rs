//! Hash-based forwarding: a flow's port is chosen by a hash of its headers. HBFConfig (0xFF24) says of which headers,
//! WHBFConfig (0xFF25) gives the sub-groups weights.

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// What the hash is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct HbfConfig {
    types: u8,
    reserved: [u8; 7],
    /// The seed, where SeedType says that it is given.
    pub seed: U32,
    /// Which header fields take part: bit 20 the destination queue pair, 22 and 23 those of DC transport.
    pub fields_enable: U64,
    reserved2: [u8; 44],
}
const _: () = assert!(size_of::<HbfConfig>() == 64);
const _: () = assert!(std::mem::offset_of!(HbfConfig, fields_enable) == 12);

impl Attribute for HbfConfig {
    const ID: u16 = ids::vendor::HBF_CONFIG;
}

impl HbfConfig {
    /// FieldsEnable: destination queue pair.
    pub const FIELD_DESTINATION_QP: u64 = 1 << 20;

    bits! {
        /// Hash type: 0 CRC, 1 XOR.
        hash_type, set_hash_type: types[7:4];
        /// Seed type: 0 given, 1 random.
        seed_type, set_seed_type: types[1:0];
    }
}

/// The weights of a group's sub-groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SubGroupWeights {
    reserved: u8,
    /// Weights of sub-groups 0, 1 and 2.
    pub weights: [u8; 3],
}

/// Weights of 16 groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct WhbfConfig {
    /// By group.
    pub groups: [SubGroupWeights; 16],
}
const _: () = assert!(size_of::<WhbfConfig>() == 64);

impl Attribute for WhbfConfig {
    const ID: u16 = ids::vendor::WHBF_CONFIG;
}
