//! What came of a scenario, and how it is told.

use std::fmt;
use std::sync::Arc;

use mad::types::Timestamp;
use mad::wire::{Method, MgmtClass, ids};

use crate::world::{End, Packet, World};

/// Something that happened, at a time.
#[derive(Clone, Debug)]
pub struct Traced {
    /// When.
    pub when: Timestamp,
    /// What.
    pub what: What,
}

/// What can have happened.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are packets; a box would cost an allocation each")]
pub enum What {
    /// A step of the schedule was carried out, in the words of the file.
    Step(String),
    /// A packet arrived.
    Packet {
        /// Where.
        at: End,
        /// What the node was called when the scenario began.
        node: Arc<str>,
        /// The packet.
        packet: Packet,
    },
}

impl fmt::Display for Traced {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.when.as_nanos() as f64 / 1e9;
        write!(f, "{seconds:14.9} ")?;
        let (at, node, packet) = match &self.what {
            What::Step(text) => return write!(f, "-- {text}"),
            What::Packet { at, node, packet } => (at, node, packet),
        };
        let header = &packet.mad.header;
        write!(f, "{node}[{}] ", at.port)?;
        method(f, header.method())?;
        attribute(f, packet)?;
        write!(f, " modifier 0x{:x}", header.attribute_modifier)?;
        if packet.is_directed() {
            write!(f, " hop {}", header.hop_pointer)?;
        } else {
            write!(f, " LID {} to {}", packet.slid, packet.dlid)?;
        }
        let status = header.status();
        if !status.is_ok() {
            write!(f, " status 0x{:04x}", status.0)?;
        }
        write!(f, " TID 0x{:x}", header.transaction_id)
    }
}

fn method(f: &mut fmt::Formatter<'_>, method: Method) -> fmt::Result {
    f.write_str(match method {
        Method::GET => "Get",
        Method::SET => "Set",
        Method::GET_RESP => "GetResp",
        Method::TRAP => "Trap",
        Method::TRAP_REPRESS => "TrapRepress",
        other => return write!(f, "method 0x{:02x}", other.0),
    })
}

fn attribute(f: &mut fmt::Formatter<'_>, packet: &Packet) -> fmt::Result {
    let header = &packet.mad.header;
    let number = header.attribute_id.get();
    let name = match number {
        ids::sm::NOTICE => "Notice",
        ids::sm::NODE_DESCRIPTION => "NodeDescription",
        ids::sm::NODE_INFO => "NodeInfo",
        ids::sm::SWITCH_INFO => "SwitchInfo",
        ids::sm::GUID_INFO => "GUIDInfo",
        ids::sm::PORT_INFO => "PortInfo",
        ids::sm::PKEY_TABLE => "P_KeyTable",
        ids::sm::SL_TO_VL_MAPPING_TABLE => "SLtoVLMappingTable",
        ids::sm::VL_ARBITRATION_TABLE => "VLArbitrationTable",
        ids::sm::LINEAR_FORWARDING_TABLE => "LinearForwardingTable",
        ids::sm::MULTICAST_FORWARDING_TABLE => "MulticastForwardingTable",
        ids::sm::SM_INFO => "SMInfo",
        _ => "",
    };
    match header.mgmt_class() {
        MgmtClass::SUBN_DR | MgmtClass::SUBN_LID if !name.is_empty() => write!(f, "({name})"),
        class => write!(f, "(class 0x{:02x} attribute 0x{number:04x})", class.0),
    }
}

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What does not hold; empty when all is right.
    pub failures: Vec<String>,
    /// Virtual time at the end.
    pub end: Timestamp,
    /// The last that happened before the end, or before the first forwarding loop.
    pub last: Vec<Traced>,
    /// Whether `last` leads to a forwarding loop.
    pub before_loop: bool,
    /// The world as it was at the end.
    pub world: World,
}

impl Outcome {
    /// Whether everything holds.
    pub fn is_right(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World of {} devices at {}", self.device_count(), self.now())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_right() { "right" } else { "wrong" };
        writeln!(f, "seed {}, {verdict} at {} s", self.seed, self.end)?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "- {failure}"))?;
        if self.is_right() {
            return Ok(());
        }
        writeln!(f, "The last events before the {}:", if self.before_loop { "loop" } else { "end" })?;
        self.last.iter().try_for_each(|traced| writeln!(f, "{traced}"))
    }
}
