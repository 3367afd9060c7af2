//! What switches look at of a LID-routed packet, whatever it carries.

use mad::types::{Lid, Mtu, MulticastLid, PKey};

use super::Packet;

/// Words of 4 bytes that a management datagram has with its headers.
const MAD_WORDS: u32 = 72;

/// The fields of the local route header (specification volume 1, 7.7) and, of the base transport header, the P_Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRoute {
    /// Source LID.
    pub slid: u16,
    /// Destination LID, unicast or multicast.
    pub dlid: u16,
    /// Virtual lane 15: crosses links that are not Active, belongs to no partition.
    pub vl15: bool,
    /// P_Key; `None` for a raw packet, which has none.
    pub p_key: Option<PKey>,
    /// Length in words of 4 bytes, headers included, as the data counters count it.
    pub words: u32,
    /// The smallest MTU that the payload fits.
    pub mtu: Mtu,
}

impl LocalRoute {
    /// An SMP between two LIDs.
    pub(super) const fn smp(slid: u16, dlid: u16) -> Self {
        Self { slid, dlid, vl15: true, p_key: None, words: MAD_WORDS, mtu: Mtu::M256 }
    }

    /// A hop of a directed route: its LIDs mean nothing.
    pub(super) const DIRECTED: Self = Self::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);

    /// The multicast LID that the packet goes to.
    pub const fn multicast(&self) -> Option<MulticastLid> {
        MulticastLid::new(self.dlid)
    }
}

impl From<&Packet> for LocalRoute {
    fn from(packet: &Packet) -> Self {
        let vl15 = packet.is_smp();
        Self {
            slid: packet.slid,
            dlid: packet.dlid,
            vl15,
            p_key: Some(packet.p_key),
            words: MAD_WORDS,
            mtu: Mtu::M256,
        }
    }
}
