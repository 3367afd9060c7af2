//! Routing notification: a switch that has no good port left for a packet tells those before it (ARN for congestion, FRN
//! for faults), and they choose another way. RNGenStringTable (0xFFB8), RNRcvString (0xFFB9), RNSubGroupDirectionTable
//! (0xFFBA), RNXmitPortMask (0xFFBC), RNGenBySubGroupPriority (0xFFBE), pFRNConfig (0xFF61).

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// The string to send, by direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnGenStringTable {
    /// 32 directions.
    pub strings: [U16; 32],
}
const _: () = assert!(size_of::<RnGenStringTable>() == 64);

impl Attribute for RnGenStringTable {
    const ID: u16 = ids::vendor::RN_GEN_STRING_TABLE;
}

/// What to do with strings that come, 16 in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnRcvString {
    /// By string.
    pub strings: [RnRcvDecision; 16],
}
const _: () = assert!(size_of::<RnRcvString>() == 64);

impl Attribute for RnRcvString {
    const ID: u16 = ids::vendor::RN_RCV_STRING;
}

/// What to do with a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnRcvDecision {
    /// The string to send on, when the decision is to pass on.
    pub new_string: U16,
    /// The private table concerned.
    pub plft_id: u8,
    /// 0 discard, 1 consume ARN, 2 consume ARN and FRN, 3 pass on.
    pub decision: u8,
}

/// The direction of each sub-group, 64 in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnSubGroupDirectionTable {
    /// By sub-group.
    pub directions: [u8; 64],
}
const _: () = assert!(size_of::<RnSubGroupDirectionTable>() == 64);

impl Attribute for RnSubGroupDirectionTable {
    const ID: u16 = ids::vendor::RN_SUB_GROUP_DIRECTION_TABLE;
}

/// What may be sent on which port: 128 ports, 4 bits each (1 generate ARN, 2 generate FRN, 4 pass on). Which half of a byte
/// is which port is the vendor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnXmitPortMask {
    /// Two ports a byte.
    pub masks: [u8; 64],
}
const _: () = assert!(size_of::<RnXmitPortMask>() == 64);

impl Attribute for RnXmitPortMask {
    const ID: u16 = ids::vendor::RN_XMIT_PORT_MASK;
}

/// What is generated for sub-groups of each priority: bit 0 ARN, bit 1 FRN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RnGenBySubGroupPriority {
    /// By priority.
    pub priorities: [U32; 16],
}
const _: () = assert!(size_of::<RnGenBySubGroupPriority>() == 64);

impl Attribute for RnGenBySubGroupPriority {
    const ID: u16 = ids::vendor::RN_GEN_BY_SUB_GROUP_PRIORITY;
}

impl RnGenBySubGroupPriority {
    /// Generate ARN.
    pub const ARN: u32 = 1 << 0;
    /// Generate FRN.
    pub const FRN: u32 = 1 << 1;
}

/// Fault notification by packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PfrnConfig {
    /// Bit 0: a policy can be chosen.
    pub capability: U32,
    reserved: [u8; 4],
    sl_byte: u8,
    reserved2: [u8; 2],
    policy_byte: u8,
    mask_force_clear_word: U16,
    mask_clear_word: U16,
    reserved3: [u8; 48],
}
const _: () = assert!(size_of::<PfrnConfig>() == 64);
const _: () = assert!(std::mem::offset_of!(PfrnConfig, policy_byte) == 11);

impl Attribute for PfrnConfig {
    const ID: u16 = ids::vendor::PFRN_CONFIG;
}

impl PfrnConfig {
    bits! {
        /// SL of the notifications.
        sl, set_sl: sl_byte[7:4];
        /// 0 for trees (sub-group 0), 1 for dragonfly+ (sub-groups 0 and 1).
        policy, set_policy: policy_byte[3:0];
    }

    word_bits! {
        /// Seconds after which a mask is cleared in any case.
        mask_force_clear_timeout, set_mask_force_clear_timeout: mask_force_clear_word as u16[9:0];
        /// Seconds after the last notification after which a mask is cleared.
        mask_clear_timeout, set_mask_clear_timeout: mask_clear_word as u16[9:0];
    }
}
