//! SMInfo (specification volume 1, 14.2.5.13): 21 bytes; how subnet managers see each other.

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::Guid;
use crate::wire::{Attribute, ids};

/// What a subnet manager says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SmInfo {
    /// GUID of the port where it runs.
    pub guid: U64,
    /// SM_Key; shown only to a manager that is trusted.
    pub sm_key: U64,
    /// ActCount: grows while the manager lives.
    pub act_count: U32,
    priority_and_state: u8,
}
const _: () = assert!(size_of::<SmInfo>() == 21);

impl Attribute for SmInfo {
    const ID: u16 = ids::sm::SM_INFO;
}

impl SmInfo {
    bits! {
        /// Priority: the higher one becomes master; of equal ones the lower GUID.
        priority, set_priority: priority_and_state[7:4];
        /// SMState as on the wire.
        state_raw, set_state_raw: priority_and_state[3:0];
    }

    /// The port's GUID.
    pub fn guid(&self) -> Guid {
        Guid(self.guid.get())
    }

    /// SMState; `None` for an undefined value.
    pub const fn state(&self) -> Option<SmState> {
        SmState::from_wire(self.state_raw())
    }
}

/// SMState (14.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SmState {
    /// Disabled by another manager.
    NotActive,
    /// Looks for other managers.
    Discovering,
    /// Watches the master.
    Standby,
    /// Manages the subnet.
    Master,
}

impl SmState {
    /// From the wire; `None` for an undefined value.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::NotActive),
            1 => Some(Self::Discovering),
            2 => Some(Self::Standby),
            3 => Some(Self::Master),
            _ => None,
        }
    }

    /// The wire's value.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::NotActive => 0,
            Self::Discovering => 1,
            Self::Standby => 2,
            Self::Master => 3,
        }
    }
}

/// What a Set(SMInfo) asks for: the attribute modifier (14.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SmControl {
    /// HANDOVER: be master in my place.
    Handover,
    /// ACKNOWLEDGE: the handover is accepted.
    Acknowledge,
    /// DISABLE: stop managing.
    Disable,
    /// STANDBY: leave the disabled state for standby.
    Standby,
    /// DISCOVER: look for other managers.
    Discover,
}

impl SmControl {
    /// From the attribute modifier; `None` for an undefined value.
    pub const fn from_wire(modifier: u32) -> Option<Self> {
        match modifier {
            1 => Some(Self::Handover),
            2 => Some(Self::Acknowledge),
            3 => Some(Self::Disable),
            4 => Some(Self::Standby),
            5 => Some(Self::Discover),
            _ => None,
        }
    }

    /// The attribute modifier.
    pub const fn to_wire(self) -> u32 {
        match self {
            Self::Handover => 1,
            Self::Acknowledge => 2,
            Self::Disable => 3,
            Self::Standby => 4,
            Self::Discover => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_controls_survive_the_wire_and_undefined_ones_are_refused() {
        for raw in 0..=255_u8 {
            assert_eq!(SmState::from_wire(raw).map(SmState::to_wire), (raw < 4).then_some(raw));
            let modifier = u32::from(raw);
            let defined = (1..=5).contains(&raw).then_some(modifier);
            assert_eq!(SmControl::from_wire(modifier).map(SmControl::to_wire), defined);
        }
    }
}
