//! The subnet management packet: M_Key, directed route and 64 bytes of attribute (specification volume 1, 14.2.1).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{DirectedPath, Lid, MAX_HOPS, WireKey};
use crate::wire::header::{Mad, MadHeader, Method, MgmtClass};

/// The direction bit in the status field of a directed-route SMP: set on the way back.
const DIRECTION: u16 = 0x8000;

/// A subnet management packet as it lies on the wire; LID-routed ones leave the route fields zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Smp {
    /// The common header.
    pub header: MadHeader,
    /// The M_Key of the port asked.
    pub m_key: WireKey,
    /// Directed route: LID of the source of the directed part, 0xFFFF for none.
    pub dr_slid: U16,
    /// Directed route: LID of its destination, 0xFFFF for none.
    pub dr_dlid: U16,
    /// Reserved.
    pub reserved: [u8; 28],
    /// The attribute.
    pub data: [u8; 64],
    /// Directed route: exit port of each hop, from entry 1.
    pub initial_path: [u8; 64],
    /// Directed route: port of entry of each hop, filled in on the way.
    pub return_path: [u8; 64],
}
const _: () = assert!(size_of::<Smp>() == 256);

impl Smp {
    /// A request by directed route with no data.
    pub fn directed(method: Method, attribute_id: u16, attribute_modifier: u32, path: &DirectedPath) -> Self {
        let mut smp = Self::request(MgmtClass::SUBN_DR, method, attribute_id, attribute_modifier);
        smp.header.hop_count = path.len() as u8;
        smp.dr_slid = U16::new(Lid::PERMISSIVE);
        smp.dr_dlid = U16::new(Lid::PERMISSIVE);
        smp.initial_path[1..=path.len()].copy_from_slice(path.ports());
        smp
    }

    /// A LID-routed request with no data.
    pub fn lid_routed(method: Method, attribute_id: u16, attribute_modifier: u32) -> Self {
        Self::request(MgmtClass::SUBN_LID, method, attribute_id, attribute_modifier)
    }

    fn request(class: MgmtClass, method: Method, attribute_id: u16, attribute_modifier: u32) -> Self {
        let mut smp = Self::new_zeroed();
        smp.header.base_version = 1;
        smp.header.mgmt_class = class.0;
        smp.header.class_version = 1;
        smp.header.method = method.0;
        smp.header.attribute_id.set(attribute_id);
        smp.header.attribute_modifier.set(attribute_modifier);
        smp
    }

    /// Whether this packet is on its way back along its directed route.
    pub fn is_returning(&self) -> bool {
        self.header.status.get() & DIRECTION != 0
    }

    /// Marks the packet as on its way back.
    pub fn set_returning(&mut self) {
        self.header.status.set(self.header.status.get() | DIRECTION);
    }

    /// The directed route that the packet was sent along; `None` when its hop count is beyond 63.
    pub fn path(&self) -> Option<DirectedPath> {
        let hops = usize::from(self.header.hop_count);
        if hops > MAX_HOPS {
            return None;
        }
        DirectedPath::new(&self.initial_path[1..=hops]).ok()
    }

    /// The same 256 bytes as a general datagram.
    pub fn into_mad(self) -> Mad {
        zerocopy::transmute!(self)
    }

    /// The same 256 bytes as a subnet management packet; whether they are one is said by the class.
    pub fn from_mad(mad: Mad) -> Self {
        zerocopy::transmute!(mad)
    }
}
