//! What subnet administration wants of the subnet manager: it sends no SMP itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use mad::types::Guid;

use crate::aliases::AliasTable;
use crate::multicast::MulticastDemand;

/// A wish. Comes about by what ports ask for, and shows in a later snapshot.
#[derive(Clone, Debug)]
pub enum Wish {
    /// The groups that the switches are to carry.
    Multicast(Arc<MulticastDemand>),
    /// The alias GUIDs that ports are to hold.
    Aliases(Arc<AliasTable>),
    /// Nodes, by NodeGUID, whose SL-to-VL and VL arbitration tables somebody wants to see.
    QosTables(BTreeSet<Guid>),
}
