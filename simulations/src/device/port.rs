//! A port of a device: its PortInfo and the tables that belong to it.

use std::collections::BTreeMap;

use mad::types::{Lid, LinkSpeed, LinkWidth, PKey, PortNum, PortPhysState, PortState, Timestamp};
use mad::wire::smp::PortInfo;

use super::NoticeQueue;
use super::counters::Counters;

/// In which form a device tells extended link speeds (B10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExtendedSpeeds {
    /// In every PortInfo, whatever bit 31 of the attribute modifier says.
    #[default]
    Always,
    /// Only where bit 31 is set; a Set without it leaves them alone.
    WhenAsked,
    /// The device has none, and refuses an attribute modifier with bit 31.
    Refused,
}

/// A port.
#[derive(Clone, Debug)]
pub struct DevicePort {
    /// PortInfo as the port would tell it of itself (LocalPortNum aside).
    pub info: PortInfo,
    /// PortGUID.
    pub guid: u64,
    /// Entries of the P_Key table that were written; the rest is 0.
    pub p_keys: Vec<PKey>,
    /// Entries that the P_Key table has.
    pub p_key_cap: u16,
    /// Alias GUIDs from entry 1 on, as far as written.
    pub alias_guids: Vec<u64>,
    /// SL-to-VL tables that were written, by port of entry (0 for a channel adapter). The others are VL = SL modulo the
    /// number of operational VLs.
    pub sl_to_vl: BTreeMap<u8, [u8; 8]>,
    /// VL arbitration blocks 1 to 4, where one was written.
    pub vl_arbitration: Option<Box<[[u8; 64]; 4]>>,
    /// What the cable can do, whatever its ends support; narrower and slower than both on a bad cable.
    pub cable: (LinkWidth, LinkSpeed),
    /// FDR10 in force (vendor attribute).
    pub fdr10: bool,
    /// Whether the port can do FDR10.
    pub fdr10_supported: bool,
    /// Whether the next training may choose FDR10.
    pub fdr10_enabled: bool,
    /// Forward error correction modes enabled for FDR, EDR, HDR and NDR, where they were set; else all that there are.
    pub fec_enabled: Option<[u16; 4]>,
    /// Since when SMPs with a wrong M_Key came in without one with the right key in between.
    pub m_key_violated: Option<Timestamp>,
    /// How often ClientReregister was set.
    pub client_reregisters: u32,
    /// Datagrams lost on the way in, as a share (0 to 1).
    pub loss: f64,
    /// What the port counts.
    pub counters: Counters,
    /// Notices that wait to be read.
    pub notices: NoticeQueue,
}

impl DevicePort {
    /// PortState; `Down` for a value that is not defined.
    pub fn state(&self) -> PortState {
        self.info.port_state().unwrap_or(PortState::Down)
    }

    /// Sets PortState and the physical state that goes with it.
    pub fn set_state(&mut self, state: PortState, phys: PortPhysState) {
        self.info.set_port_state_raw(state.to_wire());
        self.info.set_port_phys_state_raw(phys.to_wire());
    }

    /// Whether the link is there (Init or better).
    pub fn is_up(&self) -> bool {
        self.state().is_up()
    }

    /// Whether the port is switched off by a Set and does not train.
    pub fn is_disabled(&self) -> bool {
        self.info.port_phys_state() == Some(PortPhysState::Disabled)
    }

    /// Whether a LID is one of the port's 2^LMC LIDs.
    pub fn has_lid(&self, lid: u16) -> bool {
        self.info.lid().is_some_and(|base| lid >> self.info.lmc() == base.get() >> self.info.lmc())
    }

    /// The LID of the subnet manager, where one was set.
    pub fn sm_lid(&self) -> Option<Lid> {
        Lid::new(self.info.master_sm_lid.get())
    }

    /// The P_Key at an index; 0 where none was written.
    pub fn p_key(&self, index: u16) -> PKey {
        self.p_keys.get(usize::from(index)).copied().unwrap_or(PKey(0))
    }

    /// The SL-to-VL table for what came in by `in_port`, two SLs a byte.
    pub fn sl_to_vl(&self, in_port: PortNum) -> [u8; 8] {
        self.sl_to_vl.get(&in_port.0).copied().unwrap_or_else(|| {
            let vls = self.data_vls();
            std::array::from_fn(|pair| {
                let pair = pair as u8;
                (2 * pair % vls) << 4 | ((2 * pair + 1) % vls)
            })
        })
    }

    /// Data VLs in use: OperationalVLs as a number.
    pub fn data_vls(&self) -> u8 {
        vls_of(self.info.operational_vls())
    }
}

/// The number of data VLs that a VLCap or OperationalVLs code stands for; 1 for an undefined code.
pub(super) const fn vls_of(code: u8) -> u8 {
    match code {
        2 => 2,
        3 => 4,
        4 => 8,
        5 => 15,
        _ => 1,
    }
}
