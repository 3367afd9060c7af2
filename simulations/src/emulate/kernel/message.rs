//! The messages of `simulations/kernel/vib.h`: the same layouts, in the host's byte order but for GUIDs and prefixes.

use zerocopy::big_endian::U64;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Ports of an adapter.
pub(super) const PORTS_MAX: usize = 8;
/// GIDs of a port.
pub(super) const GIDS_MAX: usize = 8;
/// P_Keys of a port.
pub(super) const P_KEYS_MAX: usize = 128;
/// Bytes of a packet: the largest MTU.
pub(super) const PAYLOAD_MAX: usize = 4096;
/// Bytes of the longest message.
pub(super) const MESSAGE_MAX: usize = size_of::<Header>() + PAYLOAD_MAX;

/// What a message is; `vib.h` says more of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// To the kernel: [`Create`].
    Create = 1,
    /// From the kernel: [`Created`].
    Created = 2,
    /// Both ways: a datagram.
    Packet = 3,
    /// To the kernel: [`PortState`].
    Port = 4,
    /// From the kernel: [`Capabilities`].
    Capabilities = 5,
    /// From the kernel: another node description.
    Description = 6,
    /// A MAD for the adapter's own agents, and the answer.
    Local = 7,
    /// From the kernel: a packet's P_Key was not accepted.
    BadPKey = 8,
    /// From the kernel: a packet's Q_Key was not accepted.
    BadQKey = 9,
}

impl Kind {
    /// The kind of a message from the kernel.
    pub(super) const fn from_kernel(raw: u32) -> Option<Self> {
        Some(match raw {
            2 => Self::Created,
            3 => Self::Packet,
            5 => Self::Capabilities,
            6 => Self::Description,
            7 => Self::Local,
            8 => Self::BadPKey,
            9 => Self::BadQKey,
            _ => return None,
        })
    }
}

/// `struct vib_msg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Header {
    pub(super) kind: u32,
    pub(super) len: u32,
    pub(super) source_qpn: u32,
    pub(super) dest_qpn: u32,
    pub(super) q_key: u32,
    pub(super) slid: u16,
    pub(super) dlid: u16,
    pub(super) p_key: u16,
    pub(super) reserved: u16,
    pub(super) port: u8,
    pub(super) sl: u8,
    pub(super) has_grh: u8,
    pub(super) reserved2: u8,
    pub(super) grh: [u8; 40],
}
const _: () = assert!(size_of::<Header>() == 72);

impl Header {
    /// A header with nothing but kind and port.
    pub(super) fn new(kind: Kind, port: u8) -> Self {
        Self { kind: kind as u32, port, ..Self::new_zeroed() }
    }
}

/// `struct vib_create`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Create {
    pub(super) node_guid: U64,
    pub(super) system_image_guid: U64,
    pub(super) vendor_id: u32,
    pub(super) device_id: u32,
    pub(super) revision: u32,
    pub(super) ports: u8,
    pub(super) gids: u8,
    pub(super) p_keys: u16,
    pub(super) description: [u8; 64],
}
const _: () = assert!(size_of::<Create>() == 96);

/// `struct vib_created`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Created {
    pub(super) error: i32,
    pub(super) name: [u8; 60],
}
const _: () = assert!(size_of::<Created>() == 64);

/// `struct vib_port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct PortState {
    pub(super) capability_mask: u32,
    pub(super) lid: u16,
    pub(super) sm_lid: u16,
    pub(super) state: u8,
    pub(super) phys_state: u8,
    pub(super) lmc: u8,
    pub(super) sm_sl: u8,
    pub(super) mtu_cap: u8,
    pub(super) mtu: u8,
    pub(super) width: u8,
    pub(super) vl_cap: u8,
    pub(super) subnet_timeout: u8,
    pub(super) reregister: u8,
    pub(super) speed: u16,
    pub(super) q_key_violations: u32,
    pub(super) p_key_violations: u32,
    pub(super) reserved: u32,
    pub(super) gid_prefix: U64,
    pub(super) guids: [U64; GIDS_MAX],
    pub(super) p_keys: [u16; P_KEYS_MAX],
}
const _: () = assert!(size_of::<PortState>() == 360);

/// `struct vib_caps`: bits of CapabilityMask.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Capabilities {
    pub(super) set: u32,
    pub(super) clear: u32,
}
