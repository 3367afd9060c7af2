//! The subnet management agent: checks the M_Key, finds the attribute, answers (specification volume 1, 14.2.4 and 14.3).

use std::time::Duration;

use mad::types::{PortNum, Timestamp};
use mad::wire::ids::{sm as id, vendor};
use mad::wire::smp::{Notice, PortInfo, Smp};
use mad::wire::{Attribute, Method, Status};

use super::quirk::Misbehaviour;
use super::{Device, Effect};

/// An answer on its way.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The packet, addressed back along its route by the caller.
    pub smp: Smp,
    /// How much later than usual it leaves.
    pub delay: Duration,
}

impl Device {
    /// Takes an SMP for the device's own agent that came in by `in_port` (0: from the device itself). `None`: no answer.
    pub fn subnet_management(
        &mut self,
        in_port: PortNum,
        request: &Smp,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> Option<Answer> {
        if self.dead {
            return None;
        }
        let method = request.header.method();
        let (attribute, modifier) =
            (request.header.attribute_id.get(), request.header.attribute_modifier.get());
        let mut what = None;
        for quirk in &mut self.quirks {
            if quirk.catches(method, attribute, modifier, in_port.0) {
                what = Some(quirk.what.clone());
                break;
            }
        }
        if what == Some(Misbehaviour::Silence) || !self.passes_m_key(in_port, request, now, effects) {
            return None;
        }
        if method == Method::TRAP_REPRESS {
            effects.extend(Notice::decode(&request.data).map(Effect::Repress));
            return None;
        }
        let mut smp = *request;
        smp.header.method = method.response().0;
        smp.m_key.set(0);
        let mut delay = Duration::ZERO;
        match what {
            Some(Misbehaviour::Refuse { status, garbage }) => {
                if garbage {
                    smp.data = [0xa5; 64];
                }
                smp.header.status.set(status);
                return Some(Answer { smp, delay });
            }
            Some(Misbehaviour::Pretend) if method == Method::SET => return Some(Answer { smp, delay }),
            Some(Misbehaviour::Late(by)) => delay = by,
            _ => {}
        }
        match self.answer(in_port, request, &mut smp.data, effects) {
            Ok(()) => smp.header.status.set(0),
            Err(status) => smp.header.status.set(status.0),
        }
        if let Some(Misbehaviour::Overwrite { offset, bytes }) = what {
            let room = smp.data.iter_mut().skip(offset);
            room.zip(bytes).for_each(|(slot, byte)| *slot = byte);
        }
        Some(Answer { smp, delay })
    }

    /// Carries out a Get or Set; `data` holds what came and is given what goes back.
    fn answer(
        &mut self,
        in_port: PortNum,
        request: &Smp,
        data: &mut [u8; 64],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        let header = &request.header;
        if header.base_version != 1 || header.class_version != 1 {
            return Err(Status::BAD_VERSION);
        }
        let set = match header.method() {
            Method::GET => false,
            Method::SET => true,
            _ => return Err(Status::METHOD_NOT_SUPPORTED),
        };
        let modifier = header.attribute_modifier.get();
        match header.attribute_id.get() {
            id::PORT_INFO => self.port_info(in_port, request, set, data, effects),
            id::LINEAR_FORWARDING_TABLE => self.linear_forwarding(modifier, set, data, effects),
            id::NODE_INFO if !set => self.get_node_info(in_port, data),
            id::NODE_DESCRIPTION if !set => {
                *data = self.description;
                Ok(())
            }
            Notice::ID => self.notice(in_port, modifier, set, data),
            id::SWITCH_INFO => self.switch_info(set, data, effects),
            id::PKEY_TABLE => self.p_key_table(in_port, modifier, set, data),
            id::SL_TO_VL_MAPPING_TABLE => self.sl_to_vl_table(in_port, modifier, set, data),
            id::VL_ARBITRATION_TABLE => self.vl_arbitration_table(in_port, modifier, set, data),
            id::MULTICAST_FORWARDING_TABLE => self.multicast_forwarding(modifier, set, data),
            id::GUID_INFO => self.guid_info(in_port, modifier, set, data),
            id::LED_INFO => self.led_info(set, data),
            id::SWITCH_PORT_STATE_TABLE if !set => self.switch_port_state(modifier, data),
            id::PORT_INFO_EXTENDED => self.port_info_extended(in_port, modifier, set, data),
            vendor::MLNX_EXTENDED_PORT_INFO => self.extended_port_info(modifier, set, data),
            vendor::GENERAL_INFO if !set => self.general_info(modifier, data),
            vendor::EXTENDED_NODE_INFO if !set => self.extended_node_info(data),
            vendor::ADAPTIVE_ROUTING_INFO => self.adaptive_routing_info(set, data),
            vendor::ADAPTIVE_ROUTING_GROUP_TABLE => self.adaptive_group_table(modifier, set, data),
            vendor::ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE => {
                self.adaptive_forwarding(modifier, set, data, effects)
            }
            _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
        }
    }

    /// Whether an SMP may be looked at (14.2.4.1): without the right key a Set never, a Get below protection level 2.
    fn passes_m_key(
        &mut self,
        in_port: PortNum,
        request: &Smp,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let end = self.end_port(in_port);
        let Some(port) = self.ports.get_mut(end.index()) else { return false };
        let key = port.info.m_key.get();
        if key == 0 {
            return true;
        }
        let lease = u64::from(port.info.m_key_lease_period.get());
        if lease != 0 && port.m_key_violated.is_some_and(|since| now - since >= Duration::from_secs(lease)) {
            port.info.set_m_key_protect_bits(0);
            port.m_key_violated = None;
        }
        if request.m_key.get() == key {
            port.m_key_violated = None;
            return true;
        }
        if request.header.method() == Method::GET && port.info.m_key_protect_bits() < 2 {
            return true;
        }
        let violations = port.info.m_key_violations.get();
        port.info.m_key_violations.set(violations.saturating_add(1));
        port.m_key_violated.get_or_insert(now);
        effects.push(Effect::MKeyViolation { port: end });
        false
    }

    /// Whether the answer to `request` may show the M_Key of the port: at protection level 0, or to who knows it.
    pub(super) fn shows_m_key(&self, port: &PortInfo, request: &Smp) -> bool {
        port.m_key_protect_bits() == 0 || request.m_key == port.m_key
    }

    fn get_node_info(&self, in_port: PortNum, data: &mut [u8; 64]) -> Result<(), Status> {
        let mut info = self.node_info;
        info.set_local_port_num(in_port);
        info.port_guid.set(self.ports.get(self.end_port(in_port).index()).map_or(0, |port| port.guid));
        write(&info, data)
    }
}

/// Puts an attribute at the head of zeroed data.
pub(super) fn write(attribute: &impl Attribute, data: &mut [u8; 64]) -> Result<(), Status> {
    let bytes = attribute.as_bytes();
    *data = [0; 64];
    data[..bytes.len()].copy_from_slice(bytes);
    Ok(())
}
