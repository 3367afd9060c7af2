//! MultiPathRecord (specification volume 1, 15.2.5.20): a query for paths between two sets of ports. 24 bytes, then
//! SGIDCount + DGIDCount GIDs of 16 bytes each.

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::types::{Gid, PKey};
use crate::wire::{Attribute, ids};

/// The fixed part of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MultiPathRecord {
    raw_flow_label_hop_limit: U32,
    /// TClass.
    pub tclass: u8,
    reversible_and_numb_path: u8,
    /// P_Key.
    pub pkey: U16,
    qos_class_and_sl: U16,
    mtu_byte: u8,
    rate_byte: u8,
    packet_life_time_byte: u8,
    service_id_high: u8,
    independence_byte: u8,
    /// SGIDCount.
    pub sgid_count: u8,
    /// DGIDCount.
    pub dgid_count: u8,
    service_id_low: [u8; 7],
}
const _: () = assert!(size_of::<MultiPathRecord>() == 24);

impl Attribute for MultiPathRecord {
    const ID: u16 = ids::sa::MULTI_PATH_RECORD;
}

static COMPONENTS: [Component; 22] = components([
    ("RawTraffic", 1),
    ("", 3),
    ("FlowLabel", 20),
    ("HopLimit", 8),
    ("TClass", 8),
    ("Reversible", 1),
    ("NumbPath", 7),
    ("P_Key", 16),
    ("QoSClass", 12),
    ("SL", 4),
    ("MtuSelector", 2),
    ("Mtu", 6),
    ("RateSelector", 2),
    ("Rate", 6),
    ("PacketLifeTimeSelector", 2),
    ("PacketLifeTime", 6),
    ("ServiceID8MSB", 8),
    ("IndependenceSelector", 2),
    ("", 6),
    ("SGIDCount", 8),
    ("DGIDCount", 8),
    ("ServiceID56LSB", 56),
]);
const _: () = assert!(bits_of(&COMPONENTS) == 8 * size_of::<MultiPathRecord>());

impl Record for MultiPathRecord {
    const COMPONENTS: &'static [Component] = &COMPONENTS;
}

impl MultiPathRecord {
    word_bits! {
        /// RawTraffic.
        raw_traffic, set_raw_traffic: raw_flow_label_hop_limit as u32[31:31];
        /// FlowLabel.
        flow_label, set_flow_label: raw_flow_label_hop_limit as u32[27:8];
        /// HopLimit.
        hop_limit, set_hop_limit: raw_flow_label_hop_limit as u32[7:0];
        /// QoSClass.
        qos_class, set_qos_class: qos_class_and_sl as u16[15:4];
        /// SL.
        sl, set_sl: qos_class_and_sl as u16[3:0];
    }

    bits! { bounded_by_selectors;
        /// Reversible.
        reversible, set_reversible: reversible_and_numb_path[7:7];
        /// NumbPath: most paths wanted for each pair.
        numb_path, set_numb_path: reversible_and_numb_path[6:0];
        /// IndependenceSelector: 1 for paths as independent of each other as can be.
        independence_selector, set_independence_selector: independence_byte[7:6];
    }

    /// ServiceID.
    pub fn service_id(&self) -> u64 {
        let [b, c, d, e, f, g, h] = self.service_id_low;
        u64::from_be_bytes([self.service_id_high, b, c, d, e, f, g, h])
    }

    /// Sets ServiceID.
    pub fn set_service_id(&mut self, id: u64) {
        let [high, low @ ..] = id.to_be_bytes();
        self.service_id_high = high;
        self.service_id_low = low;
    }

    /// P_Key.
    pub const fn pkey(&self) -> PKey {
        PKey(self.pkey.get())
    }

    /// Source and destination GIDs of a query, from the whole attribute; `None` when it is shorter than its counts say.
    pub fn gids(attribute: &[u8]) -> Option<(Vec<Gid>, Vec<Gid>)> {
        let (head, rest) = Self::read_from_prefix(attribute).ok()?;
        let (sources, total) =
            (usize::from(head.sgid_count), usize::from(head.sgid_count) + usize::from(head.dgid_count));
        let (gids, _) = rest.get(..16 * total)?.as_chunks::<16>();
        let mut sgids: Vec<_> = gids.iter().map(|gid| Gid(u128::from_be_bytes(*gid))).collect();
        let dgids = sgids.split_off(sources);
        Some((sgids, dgids))
    }

    /// The whole attribute: this with its counts set, and the GIDs. `None` when there are more than 255 of either.
    pub fn with_gids(mut self, sources: &[Gid], destinations: &[Gid]) -> Option<Vec<u8>> {
        self.sgid_count = u8::try_from(sources.len()).ok()?;
        self.dgid_count = u8::try_from(destinations.len()).ok()?;
        let mut attribute = self.as_bytes().to_vec();
        for gid in sources.iter().chain(destinations) {
            attribute.extend_from_slice(&gid.0.to_be_bytes());
        }
        Some(attribute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gids_come_back_and_short_attributes_are_refused() {
        let mut query = MultiPathRecord::zeroed();
        query.set_service_id(0x0102_0304_0506_0708);
        let (from, to) = ([Gid(1), Gid(2 << 64)], [Gid(3)]);
        let bytes = query.with_gids(&from, &to).unwrap();
        assert_eq!(bytes.len(), 24 + 3 * 16);
        assert_eq!(MultiPathRecord::gids(&bytes), Some((from.to_vec(), to.to_vec())));
        for len in 0..bytes.len() {
            assert_eq!(MultiPathRecord::gids(&bytes[..len]), None, "{len}");
        }
        let back = MultiPathRecord::decode(&bytes).unwrap();
        assert_eq!((back.service_id(), bytes[13], bytes[17]), (0x0102_0304_0506_0708, 1, 2));
        assert_eq!(query.with_gids(&vec![Gid(1); 256], &to), None);
    }
}
