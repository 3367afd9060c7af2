//! What the emulator needs of a fabric: ports to read, datagrams in and out, faults on command. The simulated world
//! implements it; tests put doubles in its place.

use mad::transport::Datagram;
use mad::types::{Gid, Guid, NodeType, PKey, PortNum, Timestamp};
use mad::wire::Mad;
use mad::wire::smp::PortInfo;

use super::console::Command;
use crate::world::Packet;

/// A node of the fabric, as its backend numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A port of a node: where a program sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The node.
    pub node: NodeId,
    /// Its port: 0 of a switch, 1 and up of an adapter or router.
    pub port: PortNum,
}

/// What a node says of itself, for sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Adapter, switch or router.
    pub node_type: NodeType,
    /// NodeInfo.NodeGUID.
    pub node_guid: Guid,
    /// NodeInfo.SystemImageGUID.
    pub system_image_guid: Guid,
    /// NodeInfo.DeviceID.
    pub device_id: u16,
    /// NodeInfo.VendorID, 24 bits.
    pub vendor_id: u32,
    /// NodeInfo.Revision.
    pub revision: u32,
    /// NodeDescription.
    pub description: String,
    /// Ports at which a program can sit: 1 to n, or just 0 of a switch.
    pub ports: Vec<PortNum>,
}

/// What a port says of itself now, for sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// PortInfo as a Get with extended speeds would give it.
    pub info: PortInfo,
    /// GIDs, index 0 first.
    pub gids: Vec<Gid>,
    /// The P_Key table, index 0 first.
    pub p_keys: Vec<PKey>,
    /// How often the subnet manager has set ClientReregister.
    pub client_reregisters: u32,
}

/// A data packet, as far as the fabric looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Destination LID, unicast or multicast.
    pub dlid: u16,
    /// P_Key.
    pub p_key: PKey,
    /// Bytes of payload.
    pub bytes: usize,
}

/// The key for which a queue pair refused a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Of the base transport header.
    P,
    /// Of the datagram header.
    Q,
}

/// A datagram that has come to a program's port and that the node itself does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Where it has come to.
    pub endpoint: Endpoint,
    /// The datagram; its address is the sender.
    pub datagram: Datagram,
}

/// A fabric that runs in real time. All calls come from one thread; `now` never goes back.
pub trait Backend: Send {
    /// The node of this description or GUID (`0x…`).
    fn find(&self, name: &str) -> Option<NodeId>;

    /// Where a program sits that names no node: the first channel adapter.
    fn default_node(&self) -> Option<NodeId>;

    /// The node's facts.
    fn device(&self, node: NodeId) -> DeviceFacts;

    /// The port's facts as of the last call that could have changed them.
    fn port(&self, endpoint: Endpoint) -> PortFacts;

    /// A program has opened a descriptor on `endpoint`: what comes there is for [`Backend::poll`] from now on.
    fn attach(&mut self, endpoint: Endpoint);

    /// A program at `endpoint` sends.
    fn inject(&mut self, endpoint: Endpoint, datagram: &Datagram, now: Timestamp);

    /// The next datagram for a program, once everything up to `now` has happened.
    fn poll(&mut self, now: Timestamp) -> Option<Delivery>;

    /// When something will happen by itself; `None` when nothing will.
    fn deadline(&self) -> Option<Timestamp>;

    /// Sets or clears IsSM of the port's CapabilityMask.
    fn set_is_sm(&mut self, endpoint: Endpoint, is_sm: bool, now: Timestamp);

    /// Sets and clears other bits of the port's CapabilityMask.
    fn set_capabilities(&mut self, endpoint: Endpoint, set: u32, clear: u32, now: Timestamp);

    /// Gives a node another description.
    fn describe(&mut self, node: NodeId, description: &str, now: Timestamp);

    /// What the management agents of the port's own node say to a MAD that needs no wire to reach them; `None` when it is none
    /// of theirs.
    fn ask_agents(&mut self, endpoint: Endpoint, mad: &Mad, now: Timestamp) -> Option<Mad>;

    /// Carries a data packet: the ports that it comes to at once.
    fn carry(&mut self, from: Endpoint, header: &DataHeader, now: Timestamp) -> Vec<Endpoint>;

    /// A queue pair of the port has refused a packet, of which only the headers are of interest.
    fn refused(&mut self, endpoint: Endpoint, packet: &Packet, key: Key, now: Timestamp);

    /// Carries out a console command and gives its output.
    ///
    /// # Errors
    /// One line that says what is wrong.
    fn command(&mut self, command: &Command, now: Timestamp) -> Result<String, String>;
}
