//! Simulated nodes: what a channel adapter, switch or router holds, and how its subnet management agent (SMA) answers.
//!
//! Source: InfiniBand Architecture Specification volume 1, chapter 14 (attributes and their components), 7.2 (port state
//! machine), 18.2 (switch forwarding tables). A device knows nothing of its neighbours: what a Set does to a link, and
//! what has to be told to somebody else, leaves it as an [`Effect`] which [`crate::world`] carries out.
//! Tables take the space of what was written, so that tens of thousands of devices fit in memory.

mod adaptive;
mod build;
mod counters;
mod notice_queue;
pub mod notices;
mod pma;
mod port;
mod port_info;
mod quirk;
mod sma;
mod switch;
mod tables;
mod vendor;

#[cfg(test)]
mod tests;

use mad::types::{Guid, NodeType, PortNum};
use mad::wire::smp::{NodeInfo, Notice};

pub use adaptive::AdaptiveRouting;
pub use counters::{Counter, Counters, Growth};
pub use notice_queue::NoticeQueue;
pub use port::{DevicePort, ExtendedSpeeds};
pub use quirk::{Misbehaviour, Quirk};
pub use sma::Answer;
pub use switch::SwitchTables;
pub use vendor::Profile;

/// A simulated node.
#[derive(Clone, Debug)]
pub struct Device {
    /// NodeInfo but for LocalPortNum and PortGUID, which depend on the port asked.
    pub node_info: NodeInfo,
    /// NodeDescription, all 64 bytes.
    pub description: [u8; 64],
    /// Ports by number. Entry 0 of a channel adapter is there for the numbering only.
    pub ports: Vec<DevicePort>,
    /// What only switches have.
    pub switch: Option<Box<SwitchTables>>,
    /// LedInfo's byte.
    pub led: u8,
    /// In which form extended link speeds are told (B10).
    pub extended_speeds: ExtendedSpeeds,
    /// Which vendor attributes it has; changed by [`Device::set_profile`].
    profile: Profile,
    /// What the device does wrong.
    pub quirks: Vec<Quirk>,
    /// Neither answers nor forwards anything: without power.
    pub dead: bool,
}

/// What a request did besides being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The port's link goes down and trains again.
    Retrain(PortNum),
    /// The port's link goes down and stays so: the port is disabled.
    Disable(PortNum),
    /// The port was armed: data may pass once the other end is armed too.
    Armed(PortNum),
    /// A LinearForwardingTable block was written.
    LinearBlock {
        /// First LID of the block.
        first: u16,
        /// What it held before.
        old: [u8; 64],
    },
    /// LinearFDBTop was raised: LIDs above `from` came into use.
    LinearTopRaised {
        /// The old top.
        from: u16,
    },
    /// A trap was repressed: this notice need not be repeated.
    Repress(Notice),
    /// An SMP had the wrong M_Key: what trap 256 tells.
    MKeyViolation {
        /// The end port whose key it was.
        port: PortNum,
    },
    /// The subnet manager asked the clients of a port to register again.
    ClientReregister(PortNum),
}

impl Device {
    /// NodeGUID.
    pub fn guid(&self) -> Guid {
        self.node_info.node_guid()
    }

    /// The kind of node; a channel adapter when a quirk made the wire value undefined.
    pub fn kind(&self) -> NodeType {
        if self.switch.is_some() {
            NodeType::Switch
        } else {
            self.node_info.node_type().unwrap_or(NodeType::Ca)
        }
    }

    /// Whether this is a switch.
    pub fn is_switch(&self) -> bool {
        self.switch.is_some()
    }

    /// Number of external ports.
    pub fn num_ports(&self) -> u8 {
        (self.ports.len() - 1) as u8
    }

    /// The port with this number; `None` beyond the last one, and for port 0 of anything but a switch.
    pub fn port(&self, number: PortNum) -> Option<&DevicePort> {
        if number.0 == 0 && !self.is_switch() { None } else { self.ports.get(number.index()) }
    }

    /// The port with this number, to change.
    pub fn port_mut(&mut self, number: PortNum) -> Option<&mut DevicePort> {
        if number.0 == 0 && !self.is_switch() { None } else { self.ports.get_mut(number.index()) }
    }

    /// The end port that answers for what came in by `port`: port 0 of a switch, the port itself of anything else.
    pub fn end_port(&self, port: PortNum) -> PortNum {
        if self.is_switch() { PortNum::MANAGEMENT } else { port }
    }

    /// The numbers of the end ports.
    pub fn end_ports(&self) -> std::ops::RangeInclusive<u8> {
        if self.is_switch() { 0..=0 } else { 1..=self.num_ports() }
    }

    /// NodeDescription as text, up to the first NUL.
    pub fn name(&self) -> String {
        let end = self.description.iter().position(|b| *b == 0).unwrap_or(64);
        String::from_utf8_lossy(&self.description[..end]).into_owned()
    }

    /// Sets NodeDescription; what goes beyond 64 bytes is cut.
    pub fn set_name(&mut self, name: &str) {
        self.description = [0; 64];
        let len = name.len().min(64);
        self.description[..len].copy_from_slice(&name.as_bytes()[..len]);
    }
}
