//! Notices that devices send as traps (specification volume 1, 14.2.5.1 and 13.4.8.2).

use mad::types::{Lid, NodeType, PortNum};

/// Bytes of a Notice in an SMP.
pub const TRAP_LEN: usize = 64;

/// Types of generic notices.
const URGENT: u8 = 1;
const SECURITY: u8 = 2;
const INFORMATIONAL: u8 = 4;

/// A generic notice as it lies in an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The 64 bytes.
    pub data: [u8; TRAP_LEN],
}

impl Trap {
    fn new(kind: u8, producer: NodeType, number: u16, issuer: Option<Lid>) -> Self {
        let mut data = [0; TRAP_LEN];
        data[0] = 0x80 | kind;
        data[3] = producer.to_wire();
        data[4..6].copy_from_slice(&number.to_be_bytes());
        data[6..8].copy_from_slice(&lid_bytes(issuer));
        Self { data }
    }

    /// TrapNumber.
    pub const fn number(&self) -> u16 {
        u16::from_be_bytes([self.data[4], self.data[5]])
    }

    /// Whether a repress for `other` ends the repetition of this one: all but toggle and count agree.
    pub fn is_same(&self, other: &Self) -> bool {
        self.data[..8] == other.data[..8] && self.data[10..] == other.data[10..]
    }

    /// 128: the link state of at least one port of the switch at `lid` changed.
    pub fn link_state(lid: Option<Lid>) -> Self {
        let mut trap = Self::new(URGENT, NodeType::Switch, 128, lid);
        trap.data[10..12].copy_from_slice(&lid_bytes(lid));
        trap
    }

    /// 129, 130 or 131: local link integrity, buffer overrun or flow control watchdog threshold reached at a port.
    pub fn threshold(number: u16, producer: NodeType, lid: Option<Lid>, port: PortNum) -> Self {
        let mut trap = Self::new(URGENT, producer, number, lid);
        trap.data[12..14].copy_from_slice(&lid_bytes(lid));
        trap.data[14] = port.0;
        trap
    }

    /// 144: CapabilityMask (and CapabilityMask2), or with `flags` something else of the end port changed (bit 0
    /// NodeDescription, 1 LinkWidthEnabled, 2 LinkSpeedEnabled, 3 SM priority).
    pub fn capability(producer: NodeType, lid: Option<Lid>, mask: u32, mask2: u16, flags: u16) -> Self {
        let mut trap = Self::new(INFORMATIONAL, producer, 144, lid);
        trap.data[12..14].copy_from_slice(&lid_bytes(lid));
        trap.data[15] = u8::from(flags != 0);
        trap.data[16..20].copy_from_slice(&mask.to_be_bytes());
        trap.data[20..22].copy_from_slice(&flags.to_be_bytes());
        trap.data[22..24].copy_from_slice(&mask2.to_be_bytes());
        trap
    }

    /// 145: SystemImageGUID changed.
    pub fn system_image(producer: NodeType, lid: Option<Lid>, guid: u64) -> Self {
        let mut trap = Self::new(INFORMATIONAL, producer, 145, lid);
        trap.data[12..14].copy_from_slice(&lid_bytes(lid));
        trap.data[16..24].copy_from_slice(&guid.to_be_bytes());
        trap
    }

    /// 256: an SMP had the wrong M_Key. `what` is method, attribute ID, attribute modifier and the key that came.
    pub fn bad_m_key(producer: NodeType, lid: Option<Lid>, dr_slid: u16, what: (u8, u16, u32, u64)) -> Self {
        let mut trap = Self::new(SECURITY, producer, 256, lid);
        let (method, attribute, modifier, key) = what;
        trap.data[12..14].copy_from_slice(&lid_bytes(lid));
        trap.data[14..16].copy_from_slice(&dr_slid.to_be_bytes());
        trap.data[16] = method;
        trap.data[18..20].copy_from_slice(&attribute.to_be_bytes());
        trap.data[20..24].copy_from_slice(&modifier.to_be_bytes());
        trap.data[24..32].copy_from_slice(&key.to_be_bytes());
        trap
    }

    /// 257 (P_Key) or 258 (Q_Key): a packet from `from` to `to` had the wrong key.
    pub fn bad_key(
        number: u16,
        producer: NodeType,
        issuer: Option<Lid>,
        from: u16,
        to: u16,
        key: u32,
    ) -> Self {
        let mut trap = Self::new(SECURITY, producer, number, issuer);
        trap.data[12..14].copy_from_slice(&from.to_be_bytes());
        trap.data[14..16].copy_from_slice(&to.to_be_bytes());
        trap.data[16..20].copy_from_slice(&key.to_be_bytes());
        trap
    }

    /// 259: a switch's external port dropped a packet for its P_Key.
    pub fn switch_bad_p_key(switch: Option<Lid>, port: PortNum, from: u16, to: u16, key: u16) -> Self {
        let mut trap = Self::new(SECURITY, NodeType::Switch, 259, switch);
        trap.data[12..14].copy_from_slice(&from.to_be_bytes());
        trap.data[14..16].copy_from_slice(&to.to_be_bytes());
        trap.data[16..18].copy_from_slice(&key.to_be_bytes());
        trap.data[58..60].copy_from_slice(&lid_bytes(switch));
        trap.data[60] = port.0;
        trap
    }
}

fn lid_bytes(lid: Option<Lid>) -> [u8; 2] {
    lid.map_or(0, Lid::get).to_be_bytes()
}
