//! PathRecord (specification volume 1, 15.2.5.16): 64 bytes; how to send from one port to another.

use zerocopy::big_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::types::{Gid, Lid, PKey};
use crate::wire::{Attribute, ids};

/// A path, or the template of a query for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PathRecord {
    /// ServiceID: what the path is for (QoS).
    pub service_id: U64,
    /// DGID: the port to send to.
    pub dgid: U128,
    /// SGID: the port to send from.
    pub sgid: U128,
    /// DLID.
    pub dlid: U16,
    /// SLID.
    pub slid: U16,
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
    /// Preference: lower is better.
    pub preference: u8,
    reserved: [u8; 6],
}
const _: () = assert!(size_of::<PathRecord>() == 64);

impl Attribute for PathRecord {
    const ID: u16 = ids::sa::PATH_RECORD;
}

static COMPONENTS: [Component; 24] = components([
    ("ServiceID8MSB", 8),
    ("ServiceID56LSB", 56),
    ("DGID", 128),
    ("SGID", 128),
    ("DLID", 16),
    ("SLID", 16),
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
    ("Preference", 8),
    ("", 48),
]);

impl Record for PathRecord {
    const COMPONENTS: &'static [Component] = &COMPONENTS;
}

impl PathRecord {
    /// Component: ServiceID (both parts).
    pub const SERVICE_ID: u64 = 3;
    /// Component: DGID.
    pub const DGID: u64 = 1 << 2;
    /// Component: SGID.
    pub const SGID: u64 = 1 << 3;
    /// Component: DLID.
    pub const DLID: u64 = 1 << 4;
    /// Component: SLID.
    pub const SLID: u64 = 1 << 5;
    /// Component: RawTraffic.
    pub const RAW_TRAFFIC: u64 = 1 << 6;
    /// Component: FlowLabel.
    pub const FLOW_LABEL: u64 = 1 << 8;
    /// Component: HopLimit.
    pub const HOP_LIMIT: u64 = 1 << 9;
    /// Component: TClass.
    pub const TCLASS: u64 = 1 << 10;
    /// Component: Reversible.
    pub const REVERSIBLE: u64 = 1 << 11;
    /// Component: NumbPath.
    pub const NUMB_PATH: u64 = 1 << 12;
    /// Component: P_Key.
    pub const PKEY: u64 = 1 << 13;
    /// Component: QoSClass.
    pub const QOS_CLASS: u64 = 1 << 14;
    /// Component: SL.
    pub const SL: u64 = 1 << 15;
    /// Component: MtuSelector.
    pub const MTU_SELECTOR: u64 = 1 << 16;
    /// Component: Mtu.
    pub const MTU: u64 = 1 << 17;
    /// Component: RateSelector.
    pub const RATE_SELECTOR: u64 = 1 << 18;
    /// Component: Rate.
    pub const RATE: u64 = 1 << 19;
    /// Component: PacketLifeTimeSelector.
    pub const PACKET_LIFE_TIME_SELECTOR: u64 = 1 << 20;
    /// Component: PacketLifeTime.
    pub const PACKET_LIFE_TIME: u64 = 1 << 21;
    /// Component: Preference.
    pub const PREFERENCE: u64 = 1 << 22;

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
        /// Reversible: 1 when the way back is the same path.
        reversible, set_reversible: reversible_and_numb_path[7:7];
        /// NumbPath: most paths that a query wants.
        numb_path, set_numb_path: reversible_and_numb_path[6:0];
    }

    /// DGID.
    pub const fn dgid(&self) -> Gid {
        Gid(self.dgid.get())
    }

    /// SGID.
    pub const fn sgid(&self) -> Gid {
        Gid(self.sgid.get())
    }

    /// DLID; `None` when it is no unicast LID.
    pub fn dlid(&self) -> Option<Lid> {
        Lid::new(self.dlid.get())
    }

    /// SLID; `None` when it is no unicast LID.
    pub fn slid(&self) -> Option<Lid> {
        Lid::new(self.slid.get())
    }

    /// P_Key.
    pub const fn pkey(&self) -> PKey {
        PKey(self.pkey.get())
    }
}

const _: () = assert!(bits_of(&COMPONENTS) == 8 * size_of::<PathRecord>());
