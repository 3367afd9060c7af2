//! Partitions: who may talk to whom, and the multicast groups that each partition is given (specification volume 1, 10.9).
//!
//! A file in the format of opensm's partitions.conf ([`read`]) says which; without one everybody is a full member of the
//! default partition. [`Table`] places the keys of a port without moving those that it holds already (B53).

mod read;
mod table;

use mad::types::{Gid, Guid, Mtu, NodeType, PKey, QKey, Rate};

pub use read::{PartitionsError, read};
pub use table::Table;

/// How a port belongs to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// Talks to full members only.
    Limited,
    /// Talks to every member.
    Full,
    /// Holds both keys.
    Both,
}

/// Which ports a line of the file means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The port with this PortGUID.
    Port(Guid),
    /// All end ports.
    All,
    /// End ports of nodes of one kind.
    Kind(NodeType),
    /// The subnet manager's own port.
    Myself,
}

/// A multicast group that a partition is given at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionGroup {
    /// MGID.
    pub mgid: Gid,
    /// MTU.
    pub mtu: Mtu,
    /// Rate.
    pub rate: Rate,
    /// Service level.
    pub sl: u8,
    /// Q_Key.
    pub qkey: QKey,
    /// Traffic class.
    pub tclass: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name in the file.
    pub name: String,
    /// Its key, in the form of a full member.
    pub pkey: PKey,
    /// Whether its key is to be at index 0 of its members' tables.
    pub index_0: bool,
    /// Its members; of several lines for one port the one that gives most counts.
    pub members: Vec<(Selection, Membership)>,
    /// Its groups.
    pub groups: Vec<PartitionGroup>,
}

impl Partition {
    /// How a port belongs to it; `None`: not at all.
    pub fn membership(&self, guid: Guid, kind: NodeType, own: bool) -> Option<Membership> {
        let meant = |selection: &Selection| match *selection {
            Selection::Port(port) => port == guid,
            Selection::All => true,
            Selection::Kind(of) => of == kind,
            Selection::Myself => own,
        };
        self.members.iter().filter(|(selection, _)| meant(selection)).map(|(_, membership)| *membership).max()
    }
}

/// All partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    partitions: Vec<Partition>,
}

impl Default for Partitions {
    /// Everybody is a full member of the default partition, which has an IPoIB broadcast group of MTU 2048 and 10 Gb/s.
    fn default() -> Self {
        let group = PartitionGroup::ipoib(PKey::DEFAULT_FULL, 2);
        let everybody = Partition {
            name: "Default".to_owned(),
            pkey: PKey::DEFAULT_FULL,
            index_0: false,
            members: vec![(Selection::All, Membership::Full)],
            groups: vec![group],
        };
        Self { partitions: vec![everybody] }
    }
}

impl PartitionGroup {
    /// Q_Key of IPoIB groups (opensm's).
    pub const IPOIB_QKEY: QKey = QKey(0x0b1b);
    /// Rate of groups where none is said, 10 Gb/s.
    const RATE: Rate = Rate::of_link(mad::types::LinkWidth::X4, mad::types::LinkSpeed::Sdr);

    /// The IPoIB broadcast group of a partition with what opensm gives it where nothing is said.
    pub const fn ipoib(pkey: PKey, scope: u8) -> Self {
        let mgid = crate::sa::registry::ipoib_broadcast(scope, pkey);
        Self {
            mgid,
            mtu: Mtu::M2048,
            rate: Self::RATE,
            sl: 0,
            qkey: Self::IPOIB_QKEY,
            tclass: 0,
            flow_label: 0,
        }
    }
}

impl Partitions {
    /// The partitions in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter()
    }

    /// Whether nobody is told apart, so that nothing has to be enforced.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The keys that a port is to hold, and the one that belongs at index 0.
    pub fn keys(&self, guid: Guid, kind: NodeType, own: bool) -> (Vec<PKey>, Option<PKey>) {
        let (mut keys, mut first) = (Vec::new(), None);
        for partition in &self.partitions {
            let (full, limited) = (partition.pkey, PKey(partition.pkey.base()));
            let held: &[PKey] = match partition.membership(guid, kind, own) {
                Some(Membership::Full) => &[full],
                Some(Membership::Limited) => &[limited],
                Some(Membership::Both) => &[full, limited],
                None => continue,
            };
            keys.extend(held);
            let default = partition.pkey.base() == PKey::DEFAULT_FULL.base() && first.is_none();
            if partition.index_0 || default {
                first = Some(held[0]);
            }
        }
        (keys, first)
    }
}
