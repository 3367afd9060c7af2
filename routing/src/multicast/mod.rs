//! Multicast: one spanning tree for each group, and the multicast forwarding tables that the trees make
//! (specification volume 1, 14.2.5.12 and 18.2.4.3.3).
//!
//! A tree depends on the graph, the order of switches that the unicast tables come with, the group's MLID and its members, on
//! nothing else: not on other groups, not on the order in which members came. So computing one group again equals computing
//! all from scratch (B24), and a join elsewhere never moves a tree. Trees of different groups spread over equal roots and equal
//! links by their MLID. Only where a tree would close a circle of waiting with what is there already ([`plan`]), another is
//! taken.

mod beside;
mod ports;
mod tables;
mod tree;

pub use beside::{Planned, plan};
pub use ports::PortSet;
pub use tables::{MFT_BLOCK, MftBlock, MulticastTables};
pub use tree::{Branch, Member, Planner, Tree};
