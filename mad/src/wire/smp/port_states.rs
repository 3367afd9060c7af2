//! SwitchPortStateTable (specification volume 1, 14.2.5.20): the states of 128 ports of a switch in one attribute, where
//! PortInfo.CapabilityMask2 bit 3 of port 0 is set.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::PortState;
use crate::wire::{Attribute, ids};

/// A nibble for each port, an even port in the upper half of its byte. The modifier's bit 0 is the block of 128 ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SwitchPortStateTable {
    /// The nibbles.
    pub raw: [u8; 64],
}
const _: () = assert!(size_of::<SwitchPortStateTable>() == 64);

impl Attribute for SwitchPortStateTable {
    const ID: u16 = ids::sm::SWITCH_PORT_STATE_TABLE;
}

impl SwitchPortStateTable {
    /// Ports of a block.
    pub const PER_BLOCK: usize = 128;
    /// PortInfo.CapabilityMask2: IsSwitchPortStateTableSupported.
    pub const CAP2_SUPPORTED: u16 = 1 << 3;

    /// The state, as on the wire, of the port at a place of the block; `None` beyond 127.
    pub fn state_raw(&self, index: usize) -> Option<u8> {
        let byte = self.raw.get(index / 2)?;
        Some(if index.is_multiple_of(2) { byte >> 4 } else { byte & 0xf })
    }

    /// The state of the port at a place of the block; `None` beyond 127 or for an undefined value.
    pub fn state(&self, index: usize) -> Option<PortState> {
        self.state_raw(index).and_then(PortState::from_wire)
    }

    /// Sets a state; does nothing beyond 127.
    pub fn set_state(&mut self, index: usize, state: PortState) {
        if let Some(byte) = self.raw.get_mut(index / 2) {
            let nibble = state.to_wire();
            *byte = if index.is_multiple_of(2) { *byte & 0x0f | nibble << 4 } else { *byte & 0xf0 | nibble };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_its_own_nibble() {
        let mut table = SwitchPortStateTable { raw: [0; 64] };
        for (index, state) in [(0, PortState::Active), (1, PortState::Down), (127, PortState::Init)] {
            table.set_state(index, state);
            assert_eq!(table.state(index), Some(state));
        }
        assert_eq!((table.raw[0], table.raw[63]), (0x41, 0x02));
        assert_eq!((table.state(2), table.state_raw(128)), (None, None));
        table.set_state(128, PortState::Active);
        assert_eq!(table.raw.iter().filter(|b| **b != 0).count(), 2);
    }
}
