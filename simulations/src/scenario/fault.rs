//! What can happen in a scenario, in the words of its file.

use mad::wire::{Method, ids::sm as id};
use serde::{Deserialize, Serialize};

use crate::device::{ExtendedSpeeds, Misbehaviour, Quirk};

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds of virtual time.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A port by name and number: `["S1_0", 3]`.
pub type PortName = (String, u8);

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are nodes, ports and managers by name or number")]
pub enum Fault {
    /// Pulls a cable.
    Unlink { port: PortName },
    /// Plugs it in again.
    Relink { port: PortName },
    /// Lays a cable between two free ports.
    Connect { a: PortName, b: PortName },
    /// Pulls a cable at one end and plugs it in elsewhere (B01).
    Move { from: PortName, to: PortName },
    /// Takes a device's power: it forgets everything.
    PowerOff { node: String },
    /// Gives it back.
    PowerOn { node: String },
    /// Power off and on at once.
    Reset { node: String },
    /// Exchanges the far ends of two cables.
    Swap { a: PortName, b: PortName },
    /// A device with the GUIDs and the name of another appears on a free port (B01).
    Twin { of: String, at: PortName },
    /// Changes a node description.
    Rename { node: String, name: String },
    /// Nodes tell by trap 144 that their description changed, `times` times each, spread over `within_ms` (B12, B65).
    Flood { nodes: Vec<String>, times: u32, within_ms: u64 },
    /// A node sends traps 129, 130 or 131 of one of its ports, or of one that it doesn't have, `times` times, spread over
    /// `within_ms` (B66).
    Babble { node: String, trap: u16, port: u8, times: u32, within_ms: u64 },
    /// Changes the share of packets lost.
    Loss { share: f64 },
    /// Up to so many microseconds are added to each packet's way from now on: packets overtake each other.
    Reorder { by_us: u64 },
    /// Cuts all cables between some nodes and the others.
    Split { nodes: Vec<String> },
    /// Plugs in what was split.
    Merge,
    /// An end port has a LID from an earlier life, whatever number that is (B15, B16).
    Hold { port: PortName, lid: u16 },
    /// A switch has an entry in its forwarding table that nobody wrote (B20).
    Stray { node: String, lid: u16, port: u8 },
    /// A performance counter of a port, by its name in the specification, grows by itself from now on; 0 a second ends it.
    Grow { port: PortName, counter: String, per_second: u32 },
    /// A port of an adapter can have virtual ports from now on, and says so (B74).
    VirtualPorts { port: PortName },
    /// An end port is locked with an M_Key of an earlier manager, in hexadecimal (B64, B67).
    Lock { port: PortName, key: String, protect: u8, lease_s: u16 },
    /// Ends a manager, by its number in the file from 0.
    Kill { manager: usize },
    /// Starts it anew, without memory.
    Restart { manager: usize },
    /// Stops it; what comes for it waits.
    Freeze { manager: usize },
    /// Lets it go on.
    Thaw { manager: usize },
    /// It reads a new configuration, as on SIGHUP: sections as in [`super::ManagerSpec::config`].
    Reconfigure { manager: usize, config: toml::Table },
    /// Clients, by the number of their table from 0, register everything (again), each at its time within the table's
    /// `within_ms`.
    Join { clients: usize },
    /// They give back what they registered.
    Leave { clients: usize },
    /// A device does something wrong from now on.
    Misbehave { node: String, how: How },
    /// A device answers nothing that comes in by one of its ports (B05).
    Silence { port: PortName },
    /// A device tells a wrong value from now on (B03), of PortInfo for one port alone where that is given (B06).
    Tell {
        node: String,
        field: Field,
        value: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u8>,
    },
    /// In which form a device tells and takes extended link speeds from now on (B10).
    ExtendedSpeeds { node: String, how: Speeds },
    /// It answers later than others, by so many milliseconds (B09, B57).
    Delay { node: String, by_ms: u64 },
    /// It behaves again.
    Behave { node: String },
    /// Everything is plugged in, powered, thawed, behaves and loses nothing.
    Heal,
}

/// [`ExtendedSpeeds`] in the words of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speeds {
    /// In every PortInfo.
    Always,
    /// Where bit 31 of the attribute modifier asks for them.
    WhenAsked,
    /// It has none, and refuses an attribute modifier with bit 31.
    Refused,
}

impl Speeds {
    pub(super) const fn of_device(self) -> ExtendedSpeeds {
        match self {
            Self::Always => ExtendedSpeeds::Always,
            Self::WhenAsked => ExtendedSpeeds::WhenAsked,
            Self::Refused => ExtendedSpeeds::Refused,
        }
    }
}

/// What a device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It answers nothing.
    Silent,
    /// It refuses Set(PortInfo), with garbage in the answer (B07).
    RefusePortInfo,
    /// It refuses Get(SwitchInfo) (B07).
    RefuseSwitchInfo,
    /// It refuses Set(LinearForwardingTable) (B26).
    RefuseTables,
    /// It drops Set(PortInfo) (B15).
    DropPortInfo,
    /// It tells LocalPortNum 99 (B03).
    WrongLocalPort,
    /// It says that it wrote its forwarding table, but doesn't.
    PretendTables,
}

impl How {
    /// As a fault of a device.
    pub fn quirk(self) -> Quirk {
        let refuse = |status, garbage| Quirk::always(Misbehaviour::Refuse { status, garbage });
        match self {
            Self::Silent => Quirk::always(Misbehaviour::Silence),
            Self::RefusePortInfo => refuse(0x001c, true).on(Method::SET, id::PORT_INFO),
            Self::RefuseSwitchInfo => refuse(0x000c, true).on(Method::GET, id::SWITCH_INFO),
            Self::RefuseTables => refuse(0x001c, false).on(Method::SET, id::LINEAR_FORWARDING_TABLE),
            Self::DropPortInfo => Quirk::always(Misbehaviour::Silence).on(Method::SET, id::PORT_INFO),
            Self::WrongLocalPort => Field::LocalPortNum.told(99),
            Self::PretendTables => {
                Quirk::always(Misbehaviour::Pretend).on(Method::SET, id::LINEAR_FORWARDING_TABLE)
            }
        }
    }
}

/// A field of an attribute, by its name in the specification (14.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// NodeInfo.NodeType: 1 channel adapter, 2 switch, 3 router.
    NodeType,
    /// NodeInfo.NumPorts.
    NumPorts,
    /// NodeInfo.NodeGUID.
    NodeGuid,
    /// NodeInfo.PortGUID.
    PortGuid,
    /// NodeInfo.LocalPortNum.
    LocalPortNum,
    /// PortInfo.LID.
    Lid,
    /// PortInfo.NeighborMTU and MasterSMSL, one byte.
    NeighborMtu,
    /// PortInfo.VLCap and InitType, one byte.
    VlCap,
    /// PortInfo.MTUCap with its reserved bits, one byte.
    MtuCap,
}

impl Field {
    /// Attribute, first byte, number of bytes.
    const fn place(self) -> (u16, usize, usize) {
        match self {
            Self::NodeType => (id::NODE_INFO, 2, 1),
            Self::NumPorts => (id::NODE_INFO, 3, 1),
            Self::NodeGuid => (id::NODE_INFO, 12, 8),
            Self::PortGuid => (id::NODE_INFO, 20, 8),
            Self::LocalPortNum => (id::NODE_INFO, 36, 1),
            Self::Lid => (id::PORT_INFO, 16, 2),
            Self::NeighborMtu => (id::PORT_INFO, 36, 1),
            Self::VlCap => (id::PORT_INFO, 37, 1),
            Self::MtuCap => (id::PORT_INFO, 41, 1),
        }
    }

    /// The fault of a device that tells `value` here; what does not fit the field is cut.
    pub fn told(self, value: u64) -> Quirk {
        let (attribute, offset, length) = self.place();
        let bytes = value.to_be_bytes()[8 - length..].to_vec();
        Quirk::always(Misbehaviour::Overwrite { offset, bytes }).on(Method::GET, attribute)
    }
}
