//! Private forwarding tables: a switch keeps several linear forwarding tables and chooses one by input port and service
//! level. PrivateLFTInfo (0xFF10), PrivateLFTDef (0xFF11), PrivateLFTMap (0xFF12), PortSLToPrivateLFTMap (0xFF14).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::ServiceLevel;
use crate::wire::{Attribute, ids};

/// How a switch can divide its table memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrivateLftInfo {
    reserved: u8,
    num_plfts_raw: u8,
    /// ModeCap: the modes that can be chosen.
    pub mode_cap: u8,
    /// ActiveMode: the mode in force; 0 when private tables are off.
    pub active_mode: u8,
    /// The modes.
    pub modes: [PrivateLftMode; 7],
    reserved2: [u8; 46],
}
const _: () = assert!(size_of::<PrivateLftInfo>() == 64);

impl Attribute for PrivateLftInfo {
    const ID: u16 = ids::vendor::PRIVATE_LFT_INFO;
}

/// A way to divide the table memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrivateLftMode {
    /// Size of a bank in units of 1024 LIDs.
    pub bank_size: u8,
    /// Number of banks.
    pub banks: u8,
}

impl PrivateLftInfo {
    /// Number of private tables; the wire's 0 means 36.
    pub const fn num_plfts(&self) -> u8 {
        if self.num_plfts_raw == 0 { 36 } else { self.num_plfts_raw }
    }
}

/// Where the tables lie: 16 of them in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrivateLftDef {
    /// The tables.
    pub tables: [PrivateLftPlace; 16],
}
const _: () = assert!(size_of::<PrivateLftDef>() == 64);

impl Attribute for PrivateLftDef {
    const ID: u16 = ids::vendor::PRIVATE_LFT_DEF;
}

/// Where a private table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrivateLftPlace {
    /// Force-sub-group-0 flag and bank.
    pub flag_and_bank: u8,
    /// LIDs of the table in units of 512, 1 to 96.
    pub lid_space: u8,
    reserved: u8,
    /// First LID of the table in the bank, in units of 512.
    pub lid_offset: u8,
}

/// The LFT top of a private table, and the ports that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrivateLftMap {
    reserved: [u8; 3],
    control: u8,
    /// 256 ports, a bit each; which bit is which port is the vendor's.
    pub port_mask: [u8; 32],
    reserved2: [u8; 2],
    /// LinearFDBTop of the table.
    pub lft_top: U16,
    reserved3: [u8; 24],
}
const _: () = assert!(size_of::<PrivateLftMap>() == 64);
const _: () = assert!(std::mem::offset_of!(PrivateLftMap, lft_top) == 38);

impl Attribute for PrivateLftMap {
    const ID: u16 = ids::vendor::PRIVATE_LFT_MAP;
}

impl PrivateLftMap {
    bits! {
        /// A Set means the LFT top.
        lft_top_valid, set_lft_top_valid: control[1:1];
        /// A Set means the port mask.
        port_mask_valid, set_port_mask_valid: control[0:0];
    }
}

/// The private table of each service level, for 4 input ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortSlToPrivateLftMap {
    /// Table numbers by port and service level.
    pub tables: [[u8; 16]; 4],
}
const _: () = assert!(size_of::<PortSlToPrivateLftMap>() == 64);

impl Attribute for PortSlToPrivateLftMap {
    const ID: u16 = ids::vendor::PORT_SL_TO_PRIVATE_LFT_MAP;
}

impl PortSlToPrivateLftMap {
    /// Ports of a block.
    pub const PORTS: usize = 4;

    /// The table of a port of the block and a service level; `None` for a port beyond 3 or a service level beyond 15.
    pub fn table(&self, port: usize, sl: ServiceLevel) -> Option<u8> {
        self.tables.get(port)?.get(usize::from(sl.0)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_port_and_service_level() {
        let mut map = PortSlToPrivateLftMap::zeroed();
        map.tables[2][5] = 3;
        assert_eq!(map.as_bytes()[2 * 16 + 5], 3);
        assert_eq!(map.table(2, ServiceLevel(5)), Some(3));
        assert_eq!((map.table(4, ServiceLevel(0)), map.table(0, ServiceLevel(16))), (None, None));
        assert_eq!(PrivateLftInfo::zeroed().num_plfts(), 36);
    }
}
