//! Layouts and numbers of the kernel's umad interface, ABI version 5 (`<rdma/ib_user_mad.h>`).

use zerocopy::big_endian::{U16 as Be16, U32 as Be32};
use zerocopy::native_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What `/sys/class/infiniband_mad/abi_version` says.
pub const ABI_VERSION: u32 = 5;
/// Agents that one open descriptor can hold.
pub const MAX_AGENTS: usize = 32;
/// Bytes of the header before `ENABLE_PKEY`: without the P_Key index.
pub const OLD_HEADER_LEN: usize = 56;
/// Bytes of the header after `ENABLE_PKEY`.
pub const HEADER_LEN: usize = 64;
/// Bytes of a datagram.
pub const MAD_LEN: usize = 256;
/// Bytes of the common MAD header.
pub const MAD_HEADER_LEN: usize = 24;
/// Bytes of the common MAD header and the RMPP header: the least that a write must have after the umad header.
pub const RMPP_HEADER_LEN: usize = 36;

/// ioctl: register an agent, [`RegisterAgent`].
pub const REGISTER_AGENT: u32 = 0xc01c_1b01;
/// ioctl: unregister the agent of the number pointed to.
pub const UNREGISTER_AGENT: u32 = 0x4004_1b02;
/// ioctl: headers have the P_Key index from now on.
pub const ENABLE_PKEY: u32 = 0x0000_1b03;
/// ioctl: register an agent, [`RegisterAgent2`].
pub const REGISTER_AGENT2: u32 = 0xc028_1b04;

/// Flag of [`RegisterAgent2`]: the program does RMPP itself.
pub const USER_RMPP: u32 = 1;

/// `struct ib_user_mad_hdr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Agent: to send with, or that received.
    pub id: U32,
    /// 0 for a datagram received, `ETIMEDOUT` for a request that comes back unanswered.
    pub status: U32,
    /// Milliseconds to wait for a response.
    pub timeout_ms: U32,
    /// Automatic retries.
    pub retries: U32,
    /// Bytes of header and data (set on receive).
    pub length: U32,
    /// Remote queue pair.
    pub qpn: Be32,
    /// Remote Q_Key.
    pub qkey: Be32,
    /// Remote LID.
    pub lid: Be16,
    /// Service level.
    pub sl: u8,
    /// Local path bits.
    pub path_bits: u8,
    /// Whether the fields of the global route header below mean something.
    pub grh_present: u8,
    /// Local GID index.
    pub gid_index: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Remote GID.
    pub gid: [u8; 16],
    /// Flow label.
    pub flow_label: Be32,
    /// P_Key index; not there in the old header.
    pub pkey_index: U16,
    /// Reserved.
    pub reserved: [u8; 6],
}
const _: () = assert!(size_of::<Header>() == HEADER_LEN);

impl Header {
    /// All zero.
    pub fn zeroed() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }

    /// The header at the head of `bytes`, of which `header_len` are header; `None` when fewer came.
    pub fn decode(bytes: &[u8], header_len: usize) -> Option<Self> {
        let mut header = Self::zeroed();
        header.as_mut_bytes()[..header_len].copy_from_slice(bytes.get(..header_len)?);
        Some(header)
    }
}

/// `struct ib_user_mad_reg_req`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegisterAgent {
    /// Set by the device.
    pub id: U32,
    /// Methods of requests to receive, one bit each.
    pub method_mask: [U64; 2],
    /// 0 or 1.
    pub qpn: u8,
    /// Management class; 0 for an agent that receives no requests.
    pub mgmt_class: u8,
    /// Class version.
    pub mgmt_class_version: u8,
    /// For vendor classes 0x30 to 0x4f.
    pub oui: [u8; 3],
    /// 1: the device does RMPP.
    pub rmpp_version: u8,
    /// Padding of the C structure.
    pub padding: u8,
}
const _: () = assert!(size_of::<RegisterAgent>() == 28);

/// `struct ib_user_mad_reg_req2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegisterAgent2 {
    /// Set by the device.
    pub id: U32,
    /// 0 or 1.
    pub qpn: U32,
    /// Management class; 0 for an agent that receives no requests.
    pub mgmt_class: u8,
    /// Class version.
    pub mgmt_class_version: u8,
    /// Ignored.
    pub res: U16,
    /// [`USER_RMPP`]; a refused value comes back as what is possible.
    pub flags: U32,
    /// Methods of requests to receive, one bit each.
    pub method_mask: [U64; 2],
    /// For vendor classes 0x30 to 0x4f; 24 bits.
    pub oui: U32,
    /// 1: RMPP, by the device unless [`USER_RMPP`].
    pub rmpp_version: u8,
    /// Reserved.
    pub reserved: [u8; 3],
}
const _: () = assert!(size_of::<RegisterAgent2>() == 40);

#[cfg(test)]
mod tests {
    use super::*;

    /// `_IOC(direction, 0x1b, number, size)` of the structures above.
    #[test]
    fn ioctl_numbers_carry_the_sizes_of_their_structures() {
        let ioc = |dir: u32, nr: u32, size: usize| dir << 30 | (size as u32) << 16 | 0x1b << 8 | nr;
        assert_eq!(REGISTER_AGENT, ioc(3, 1, size_of::<RegisterAgent>()));
        assert_eq!(UNREGISTER_AGENT, ioc(1, 2, 4));
        assert_eq!(ENABLE_PKEY, ioc(0, 3, 0));
        assert_eq!(REGISTER_AGENT2, ioc(3, 4, size_of::<RegisterAgent2>()));
    }

    #[test]
    fn the_old_header_is_the_new_one_without_its_end() {
        let bytes: Vec<u8> = (0..64).collect();
        let old = Header::decode(&bytes, OLD_HEADER_LEN).unwrap();
        let new = Header::decode(&bytes, HEADER_LEN).unwrap();
        assert_eq!(old.as_bytes()[..56], bytes[..56]);
        assert_eq!(old.pkey_index.get(), 0);
        assert_eq!(new.as_bytes(), bytes);
        assert!(Header::decode(&bytes[..55], OLD_HEADER_LEN).is_none());
    }
}
