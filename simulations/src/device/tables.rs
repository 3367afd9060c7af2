//! The table attributes: SwitchInfo, forwarding tables, P_Keys, QoS tables, GUIDs, LedInfo (specification volume 1, 14.2.5.4
//! to 14.2.5.15).

use mad::types::{PKey, PortNum};
use mad::wire::smp::SwitchInfo;
use mad::wire::{Attribute, Status};
use routing::routes::LFT_BLOCK;

use super::port::vls_of;
use super::sma::write;
use super::switch::MFT_BLOCK;
use super::{Device, Effect};

/// P_Keys of a block.
const P_KEY_BLOCK: usize = 32;
/// GUIDs of a block.
const GUID_BLOCK: usize = 8;
/// Ports of a SwitchPortStateTable block.
const STATE_BLOCK: usize = 128;
/// SLtoVLMappingTable modifier: the Set is for all output ports, and for all input ports.
const ALL_OUTPUTS: u32 = 1 << 16;
const ALL_INPUTS: u32 = 1 << 17;

impl Device {
    pub(super) fn switch_info(
        &mut self,
        set: bool,
        data: &mut [u8; 64],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        let tables = self.switch.as_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        let info = &mut tables.info;
        if set {
            let wanted = SwitchInfo::decode(data).ok_or(Status::INVALID_FIELD)?;
            let (old, top) = (info.linear_fdb_top.get(), wanted.linear_fdb_top.get());
            let multicast = wanted.multicast_fdb_top.get();
            if top >= info.linear_fdb_cap.get() || (multicast != 0 && multicast < 0xbfff) {
                return Err(Status::INVALID_FIELD);
            }
            info.linear_fdb_top.set(top);
            info.multicast_fdb_top.set(multicast);
            info.default_port = wanted.default_port;
            info.default_multicast_primary_port = wanted.default_multicast_primary_port;
            info.default_multicast_not_primary_port = wanted.default_multicast_not_primary_port;
            info.set_life_time_value(wanted.life_time_value());
            if wanted.port_state_change() == 1 {
                info.set_port_state_change(0);
            }
            if top > old {
                effects.push(Effect::LinearTopRaised { from: old });
            }
        }
        write(info, data)
    }

    pub(super) fn linear_forwarding(
        &mut self,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        let tables = self.switch.as_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        let blocks = u32::from(tables.info.linear_fdb_cap.get()).div_ceil(LFT_BLOCK as u32);
        if modifier >= blocks {
            return Err(Status::INVALID_FIELD);
        }
        let block = modifier as u16;
        if set {
            let old = tables.linear_block(block);
            tables.set_linear_block(block, data);
            effects.push(Effect::LinearBlock { first: block * LFT_BLOCK as u16, old });
        }
        *data = tables.linear_block(block);
        Ok(())
    }

    pub(super) fn multicast_forwarding(
        &mut self,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let num_ports = self.num_ports();
        let tables = self.switch.as_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        let (position, block) = ((modifier >> 28) as u8, modifier & 0x01ff);
        let blocks = u32::from(tables.info.multicast_fdb_cap.get()).div_ceil(MFT_BLOCK as u32);
        if modifier & 0x0fff_fe00 != 0 || block >= blocks || position > num_ports / 16 {
            return Err(Status::INVALID_FIELD);
        }
        let key = (position, block as u16);
        if set {
            tables
                .mft
                .insert(key, std::array::from_fn(|i| u16::from_be_bytes([data[2 * i], data[2 * i + 1]])));
        }
        let masks = tables.mft.get(&key).copied().unwrap_or([0; MFT_BLOCK]);
        for (slot, mask) in data.chunks_exact_mut(2).zip(masks) {
            slot.copy_from_slice(&mask.to_be_bytes());
        }
        Ok(())
    }

    /// The port that a table's modifier means: of a switch the one named, else the one that the request came in by.
    fn table_port(&self, in_port: PortNum, named: u8) -> Result<PortNum, Status> {
        let number = if self.is_switch() { PortNum(named) } else { in_port };
        self.port(number).map(|_| number).ok_or(Status::INVALID_FIELD)
    }

    pub(super) fn p_key_table(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let number = self.table_port(in_port, (modifier >> 16 & 0xff) as u8)?;
        let Some(port) = self.port_mut(number) else { return Err(Status::INVALID_FIELD) };
        let first = (modifier & 0xffff) as usize * P_KEY_BLOCK;
        if first >= usize::from(port.p_key_cap) {
            return Err(Status::INVALID_FIELD);
        }
        let room = (usize::from(port.p_key_cap) - first).min(P_KEY_BLOCK);
        if set {
            if port.p_keys.len() < first + room {
                port.p_keys.resize(first + room, PKey(0));
            }
            for (slot, bytes) in port.p_keys[first..first + room].iter_mut().zip(data.chunks_exact(2)) {
                *slot = PKey(u16::from_be_bytes([bytes[0], bytes[1]]));
            }
        }
        *data = [0; 64];
        for (index, slot) in data.chunks_exact_mut(2).enumerate().take(room) {
            slot.copy_from_slice(&port.p_key((first + index) as u16).0.to_be_bytes());
        }
        Ok(())
    }

    pub(super) fn sl_to_vl_table(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let (entry, exit) = ((modifier >> 8 & 0xff) as u8, (modifier & 0xff) as u8);
        let (entry, exit) = if self.is_switch() { (entry, exit) } else { (0, in_port.0) };
        let wild = modifier & (ALL_OUTPUTS | ALL_INPUTS);
        let optimised = self.switch.as_ref().is_some_and(|s| s.info.optimized_sl_to_vl() != 0);
        if wild != 0 && !(optimised && set) {
            return Err(Status::INVALID_FIELD);
        }
        let exists = |number: u8, all: u32| wild & all != 0 || self.port(PortNum(number)).is_some();
        if (self.is_switch() && !exists(entry, ALL_INPUTS)) || !exists(exit, ALL_OUTPUTS) {
            return Err(Status::INVALID_FIELD);
        }
        let num_ports = self.num_ports();
        let range = |number: u8, all: u32| if wild & all != 0 { 0..=num_ports } else { number..=number };
        if set {
            let table: [u8; 8] = std::array::from_fn(|i| data[i]);
            for number in range(exit, ALL_OUTPUTS) {
                let Some(port) = self.port_mut(PortNum(number)) else { continue };
                for from in range(entry, ALL_INPUTS) {
                    port.sl_to_vl.insert(from, table);
                }
            }
        }
        if wild == 0 {
            let port = self.port(PortNum(exit)).ok_or(Status::INVALID_FIELD)?;
            *data = [0; 64];
            data[..8].copy_from_slice(&port.sl_to_vl(PortNum(entry)));
        }
        Ok(())
    }

    pub(super) fn vl_arbitration_table(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let number = self.table_port(in_port, (modifier & 0xff) as u8)?;
        let Some(port) = self.port_mut(number) else { return Err(Status::INVALID_FIELD) };
        let block = (modifier >> 16) as usize;
        let (cap, first) = match block {
            1 | 2 => (port.info.vl_arbitration_low_cap, (block - 1) * 32),
            3 | 4 => (port.info.vl_arbitration_high_cap, (block - 3) * 32),
            _ => return Err(Status::INVALID_FIELD),
        };
        if usize::from(cap) <= first {
            return Err(Status::INVALID_FIELD);
        }
        let room = (usize::from(cap) - first).min(32) * 2;
        if set {
            let vls = vls_of(port.info.vl_cap());
            if data[..room].chunks_exact(2).any(|pair| pair[1] != 0 && pair[0] & 0xf >= vls) {
                return Err(Status::INVALID_FIELD);
            }
            let stored = port.vl_arbitration.get_or_insert_with(|| Box::new([[0; 64]; 4]));
            stored[block - 1] = [0; 64];
            stored[block - 1][..room].copy_from_slice(&data[..room]);
        }
        *data = port.vl_arbitration.as_ref().map_or([0; 64], |stored| stored[block - 1]);
        Ok(())
    }

    pub(super) fn guid_info(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let end = self.end_port(in_port);
        let port = self.port_mut(end).ok_or(Status::INVALID_FIELD)?;
        let (first, cap) = (modifier as usize * GUID_BLOCK, usize::from(port.info.guid_cap));
        if modifier > 0xff || first >= cap {
            return Err(Status::INVALID_FIELD);
        }
        let room = (cap - first).min(GUID_BLOCK);
        if set {
            if port.alias_guids.len() < first + room {
                port.alias_guids.resize(first + room, 0);
            }
            for (slot, bytes) in port.alias_guids[first..].iter_mut().zip(data.chunks_exact(8)).take(room) {
                *slot = u64::from_be_bytes(bytes.try_into().map_err(|_| Status::INVALID_FIELD)?);
            }
        }
        *data = [0; 64];
        for (index, slot) in data.chunks_exact_mut(8).enumerate().take(room) {
            // Entry 0 is the port's own GUID and can't be written.
            let guid = match first + index {
                0 => port.guid,
                entry => port.alias_guids.get(entry).copied().unwrap_or(0),
            };
            slot.copy_from_slice(&guid.to_be_bytes());
        }
        Ok(())
    }

    pub(super) fn led_info(&mut self, set: bool, data: &mut [u8; 64]) -> Result<(), Status> {
        if set {
            self.led = data[0] & 0x80;
        }
        *data = [0; 64];
        data[0] = self.led;
        Ok(())
    }

    /// SwitchPortStateTable: a nibble for each port, the even one in the upper half.
    pub(super) fn switch_port_state(&self, modifier: u32, data: &mut [u8; 64]) -> Result<(), Status> {
        let first = (modifier & 1) as usize * STATE_BLOCK;
        if !self.is_switch() || first >= self.ports.len() {
            return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
        }
        *data = [0; 64];
        for (index, port) in self.ports[first..].iter().take(STATE_BLOCK).enumerate() {
            let shift = if index % 2 == 0 { 4 } else { 0 };
            data[index / 2] |= port.state().to_wire() << shift;
        }
        Ok(())
    }
}
