//! MCMemberRecord (specification volume 1, 15.2.5.17): 52 bytes; a multicast group and one port's part in it.

use zerocopy::big_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::types::{Gid, MulticastLid, PKey, QKey};
use crate::wire::{Attribute, ids};

/// A group, or a port's membership in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct McMemberRecord {
    /// MGID.
    pub mgid: U128,
    /// PortGID: the member; 0 for the group itself.
    pub port_gid: U128,
    /// Q_Key.
    pub qkey: U32,
    /// MLID.
    pub mlid: U16,
    mtu_byte: u8,
    /// TClass.
    pub tclass: u8,
    /// P_Key.
    pub pkey: U16,
    rate_byte: u8,
    packet_life_time_byte: u8,
    sl_flow_label_hop_limit: U32,
    scope_and_join_state: u8,
    proxy_join_byte: u8,
    reserved: [u8; 2],
}
const _: () = assert!(size_of::<McMemberRecord>() == 52);

impl Attribute for McMemberRecord {
    const ID: u16 = ids::sa::MC_MEMBER_RECORD;
}

static COMPONENTS: [Component; 19] = components([
    ("MGID", 128),
    ("PortGID", 128),
    ("Q_Key", 32),
    ("MLID", 16),
    ("MTUSelector", 2),
    ("MTU", 6),
    ("TClass", 8),
    ("P_Key", 16),
    ("RateSelector", 2),
    ("Rate", 6),
    ("PacketLifeTimeSelector", 2),
    ("PacketLifeTime", 6),
    ("SL", 4),
    ("FlowLabel", 20),
    ("HopLimit", 8),
    ("Scope", 4),
    ("JoinState", 4),
    ("ProxyJoin", 1),
    ("", 23),
]);
const _: () = assert!(bits_of(&COMPONENTS) == 8 * size_of::<McMemberRecord>());

impl Record for McMemberRecord {
    const COMPONENTS: &'static [Component] = &COMPONENTS;
}

/// JoinState: what kinds of membership a port has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct JoinState(pub u8);

impl JoinState {
    /// Sends and receives; keeps the group alive.
    pub const FULL_MEMBER: Self = Self(1);
    /// Sends and receives; doesn't keep the group alive.
    pub const NON_MEMBER: Self = Self(2);
    /// Sends only; doesn't keep the group alive.
    pub const SEND_ONLY_NON_MEMBER: Self = Self(4);
    /// Sends only; keeps the group alive.
    pub const SEND_ONLY_FULL_MEMBER: Self = Self(8);

    /// Whether no kind is left.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the port receives the group's packets.
    pub const fn receives(self) -> bool {
        self.0 & (Self::FULL_MEMBER.0 | Self::NON_MEMBER.0) != 0
    }

    /// Whether the port keeps the group alive.
    pub const fn is_full(self) -> bool {
        self.0 & (Self::FULL_MEMBER.0 | Self::SEND_ONLY_FULL_MEMBER.0) != 0
    }
}

impl McMemberRecord {
    /// Component: MGID.
    pub const MGID: u64 = 1 << 0;
    /// Component: PortGID.
    pub const PORT_GID: u64 = 1 << 1;
    /// Component: Q_Key.
    pub const QKEY: u64 = 1 << 2;
    /// Component: MLID.
    pub const MLID: u64 = 1 << 3;
    /// Component: MTUSelector.
    pub const MTU_SELECTOR: u64 = 1 << 4;
    /// Component: MTU.
    pub const MTU: u64 = 1 << 5;
    /// Component: TClass.
    pub const TCLASS: u64 = 1 << 6;
    /// Component: P_Key.
    pub const PKEY: u64 = 1 << 7;
    /// Component: RateSelector.
    pub const RATE_SELECTOR: u64 = 1 << 8;
    /// Component: Rate.
    pub const RATE: u64 = 1 << 9;
    /// Component: PacketLifeTimeSelector.
    pub const PACKET_LIFE_TIME_SELECTOR: u64 = 1 << 10;
    /// Component: PacketLifeTime.
    pub const PACKET_LIFE_TIME: u64 = 1 << 11;
    /// Component: SL.
    pub const SL: u64 = 1 << 12;
    /// Component: FlowLabel.
    pub const FLOW_LABEL: u64 = 1 << 13;
    /// Component: HopLimit.
    pub const HOP_LIMIT: u64 = 1 << 14;
    /// Component: Scope.
    pub const SCOPE: u64 = 1 << 15;
    /// Component: JoinState.
    pub const JOIN_STATE: u64 = 1 << 16;
    /// Component: ProxyJoin.
    pub const PROXY_JOIN: u64 = 1 << 17;

    word_bits! {
        /// SL.
        sl, set_sl: sl_flow_label_hop_limit as u32[31:28];
        /// FlowLabel.
        flow_label, set_flow_label: sl_flow_label_hop_limit as u32[27:8];
        /// HopLimit.
        hop_limit, set_hop_limit: sl_flow_label_hop_limit as u32[7:0];
    }

    bits! { bounded_by_selectors;
        /// Scope of the MGID: 2 link, 5 site, 8 organisation, 14 global.
        scope, set_scope: scope_and_join_state[7:4];
        /// JoinState as on the wire.
        join_state_raw, set_join_state_raw: scope_and_join_state[3:0];
        /// ProxyJoin: 1 when another node of the partition joined for the port.
        proxy_join, set_proxy_join: proxy_join_byte[7:7];
    }

    /// MGID.
    pub const fn mgid(&self) -> Gid {
        Gid(self.mgid.get())
    }

    /// PortGID.
    pub const fn port_gid(&self) -> Gid {
        Gid(self.port_gid.get())
    }

    /// Q_Key.
    pub const fn qkey(&self) -> QKey {
        QKey(self.qkey.get())
    }

    /// MLID; `None` when it is no multicast LID.
    pub fn mlid(&self) -> Option<MulticastLid> {
        MulticastLid::new(self.mlid.get())
    }

    /// P_Key.
    pub const fn pkey(&self) -> PKey {
        PKey(self.pkey.get())
    }

    /// JoinState.
    pub const fn join_state(&self) -> JoinState {
        JoinState(self.join_state_raw())
    }
}
