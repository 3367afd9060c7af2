//! A management datagram on its way, with what the local route, base transport and datagram headers say.

use mad::transport::{Address, Datagram, GlobalRoute};
use mad::types::{PKey, QKey, Qpn, ServiceLevel};
use mad::wire::{Mad, MgmtClass};

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The 256 bytes.
    pub mad: Mad,
    /// Source LID.
    pub slid: u16,
    /// Destination LID.
    pub dlid: u16,
    /// Service level.
    pub sl: ServiceLevel,
    /// P_Key; of no meaning for SMPs.
    pub p_key: PKey,
    /// Source queue pair.
    pub source_qpn: Qpn,
    /// Destination queue pair.
    pub dest_qpn: Qpn,
    /// Q_Key.
    pub qkey: QKey,
    /// Global route header as the receiver will see it.
    pub grh: Option<GlobalRoute>,
}

impl Packet {
    /// Whether it goes by directed route.
    pub fn is_directed(&self) -> bool {
        self.mad.header.mgmt_class() == MgmtClass::SUBN_DR
    }

    /// Whether it is an SMP: virtual lane 15, no P_Key, crosses links that are not Active.
    pub fn is_smp(&self) -> bool {
        self.is_directed() || self.mad.header.mgmt_class() == MgmtClass::SUBN_LID
    }

    /// `mad` on the way back.
    pub(super) fn answered(&self, mad: Mad) -> Self {
        Self {
            mad,
            slid: self.dlid,
            dlid: self.slid,
            source_qpn: self.dest_qpn,
            dest_qpn: self.source_qpn,
            ..*self
        }
    }

    /// As its receiver sees it. `p_key_index` and `path_bits` are the receiver's.
    pub fn received(&self, p_key_index: u16, path_bits: u8) -> Datagram {
        Datagram {
            address: Address {
                lid: self.slid,
                qpn: self.source_qpn,
                qkey: self.qkey,
                sl: self.sl,
                path_bits,
                pkey_index: p_key_index,
                grh: self.grh,
            },
            mad: self.mad,
        }
    }
}
