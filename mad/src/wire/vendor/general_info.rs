//! GeneralInfo (0xFF17): with attribute modifier 4, which vendor attributes the node has.

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// The capability mask: four words, capability n is bit n mod 32 of word n / 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GeneralInfo {
    /// The words.
    pub capabilities: [U32; 4],
}
const _: () = assert!(size_of::<GeneralInfo>() == 16);

impl Attribute for GeneralInfo {
    const ID: u16 = ids::vendor::GENERAL_INFO;
}

/// A capability, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Capability(pub u8);

impl Capability {
    /// Private LFTs.
    pub const PRIVATE_LFT: Self = Self(0);
    /// Adaptive routing; excludes [`Capability::ADAPTIVE_ROUTING_REV1`].
    pub const ADAPTIVE_ROUTING: Self = Self(1);
    /// Adaptive routing with the LFT form of [`super::AdaptiveRoutingLinearForwardingTable`].
    pub const ADAPTIVE_ROUTING_REV1: Self = Self(2);
    /// ExtendedPortInfo.
    pub const EXTENDED_PORT_INFO: Self = Self(9);
    /// PortSLToPrivateLFTMap.
    pub const PORT_SL_TO_PRIVATE_LFT_MAP: Self = Self(12);
    /// ExtendedNodeInfo.
    pub const EXTENDED_NODE_INFO: Self = Self(13);
    /// Virtualization.
    pub const VIRTUALIZATION: Self = Self(15);
    /// The node is a SHARP aggregation node.
    pub const AGGREGATION_NODE: Self = Self(18);
    /// Fast recovery.
    pub const FAST_RECOVERY: Self = Self(52);
    /// ExtendedSwitchInfo.
    pub const EXTENDED_SWITCH_INFO: Self = Self(67);
}

impl GeneralInfo {
    /// Attribute modifier of the capability mask.
    pub const MODIFIER_CAPABILITY_MASK: u32 = 4;

    /// Whether the node has a capability.
    pub fn has(&self, capability: Capability) -> bool {
        let n = usize::from(capability.0);
        self.capabilities.get(n / 32).is_some_and(|word| word.get() >> (n % 32) & 1 == 1)
    }

    /// Sets or clears a capability; one beyond 127 is left alone.
    pub fn set(&mut self, capability: Capability, on: bool) {
        let n = usize::from(capability.0);
        if let Some(word) = self.capabilities.get_mut(n / 32) {
            let bit = 1 << (n % 32);
            word.set(if on { word.get() | bit } else { word.get() & !bit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_is_one_bit() {
        let mut info = GeneralInfo::zeroed();
        info.set(Capability::EXTENDED_SWITCH_INFO, true);
        assert_eq!(info.capabilities[2].get(), 1 << 3);
        assert!(info.has(Capability::EXTENDED_SWITCH_INFO) && !info.has(Capability(3)));
        info.set(Capability::EXTENDED_SWITCH_INFO, false);
        info.set(Capability(128), true);
        assert_eq!(info, GeneralInfo::zeroed());
        assert!(!info.has(Capability(255)));
    }
}
