//! PortInfo: what a Get tells, which Sets are legal, what they do (specification volume 1, 14.2.5.6 and 7.2).
//!
//! A Set is checked as a whole first; one that is refused changes nothing.

use mad::types::{Lid, PortNum, PortPhysState, PortState};
use mad::wire::smp::{PortInfo, Smp};
use mad::wire::{Attribute, Status};

use super::port::ExtendedSpeeds;
use super::sma::write;
use super::{Device, Effect};

/// What kind of port is set; decides which components exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Port of an adapter or router, or enhanced port 0.
    EndPort,
    /// Port 0 of a switch without enhanced port 0: no link.
    BasePort0,
    /// External port of a switch: no LID.
    External,
}

impl Device {
    pub(super) fn port_info(
        &mut self,
        in_port: PortNum,
        request: &Smp,
        set: bool,
        data: &mut [u8; 64],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        let modifier = request.header.attribute_modifier.get();
        let asked = modifier & PortInfo::MODIFIER_EXTENDED_SPEEDS != 0;
        if asked && self.extended_speeds == ExtendedSpeeds::Refused {
            return Err(Status::INVALID_FIELD);
        }
        let extended = asked || self.extended_speeds == ExtendedSpeeds::Always;
        let mut number = PortNum((modifier & 0xff) as u8);
        if number.0 == 0 && !self.is_switch() {
            number = in_port;
        }
        if self.port(number).is_none() {
            return Err(Status::INVALID_FIELD);
        }
        let mut reregister = false;
        if set {
            let wanted = PortInfo::decode(data).ok_or(Status::INVALID_FIELD)?;
            self.set_port_info(number, &wanted, extended, effects)?;
            reregister = wanted.client_reregister() == 1;
        }
        let port = self.port(number).ok_or(Status::INVALID_FIELD)?;
        let mut info = port.info;
        info.local_port_num = in_port.0;
        info.set_client_reregister(u8::from(reregister));
        if !self.shows_m_key(&port.info, request) {
            info.m_key.set(0);
        }
        if !extended {
            info.set_link_speed_ext_active(0);
            info.set_link_speed_ext_supported(0);
            info.set_link_speed_ext_enabled(0);
            info.set_link_speed_ext2(0, 0, 0);
        }
        write(&info, data)
    }

    fn kind_of(&self, number: PortNum) -> Kind {
        match &self.switch {
            None => Kind::EndPort,
            Some(_) if number.0 != 0 => Kind::External,
            Some(tables) if tables.info.enhanced_port_0() == 1 => Kind::EndPort,
            Some(_) => Kind::BasePort0,
        }
    }

    fn set_port_info(
        &mut self,
        number: PortNum,
        wanted: &PortInfo,
        extended: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        let kind = self.kind_of(number);
        let Some(port) = self.port_mut(number) else { return Err(Status::INVALID_FIELD) };
        let mut info = port.info;
        set_addresses(&mut info, wanted, kind)?;
        set_m_key(&mut info, wanted);
        let mut link = None;
        if kind != Kind::BasePort0 {
            set_lanes(&mut info, wanted)?;
            set_widths_and_speeds(&mut info, wanted, extended)?;
            if number.0 != 0 {
                link = set_states(&mut info, wanted, number)?;
            }
        }
        info.set_master_sm_sl(wanted.master_sm_sl());
        info.set_subnet_timeout(wanted.subnet_timeout());
        info.set_multicast_pkey_trap_suppression(wanted.multicast_pkey_trap_suppression());
        info.set_local_phy_errors(wanted.local_phy_errors());
        info.set_overrun_errors(wanted.overrun_errors());
        port.info = info;
        if wanted.client_reregister() == 1 && kind != Kind::External {
            port.client_reregisters += 1;
            effects.push(Effect::ClientReregister(number));
        }
        effects.extend(link);
        Ok(())
    }
}

/// LID, LMC, subnet manager's LID, GID prefix.
fn set_addresses(info: &mut PortInfo, wanted: &PortInfo, kind: Kind) -> Result<(), Status> {
    info.gid_prefix = wanted.gid_prefix;
    let sm = wanted.master_sm_lid.get();
    if sm != 0 && Lid::new(sm).is_none() {
        return Err(Status::INVALID_FIELD);
    }
    info.master_sm_lid.set(sm);
    if kind == Kind::External {
        return Ok(());
    }
    let lid = wanted.lid().ok_or(Status::INVALID_FIELD)?;
    let lmc = if kind == Kind::BasePort0 { 0 } else { wanted.lmc() };
    let last = lid.get() | ((1 << lmc) - 1);
    if lid.get() & ((1 << lmc) - 1) != 0 || last > Lid::MAX.get() {
        return Err(Status::INVALID_FIELD);
    }
    info.base_lid.set(lid.get());
    info.set_lmc(lmc);
    Ok(())
}

fn set_m_key(info: &mut PortInfo, wanted: &PortInfo) {
    info.m_key = wanted.m_key;
    info.m_key_lease_period = wanted.m_key_lease_period;
    info.set_m_key_protect_bits(wanted.m_key_protect_bits());
    // Violation counters: 0 clears, anything else leaves them.
    for (counter, value) in [
        (&mut info.m_key_violations, wanted.m_key_violations),
        (&mut info.p_key_violations, wanted.p_key_violations),
        (&mut info.q_key_violations, wanted.q_key_violations),
    ] {
        if value.get() == 0 {
            counter.set(0);
        }
    }
}

/// MTU, virtual lanes, and what goes with them.
fn set_lanes(info: &mut PortInfo, wanted: &PortInfo) -> Result<(), Status> {
    let mtu = wanted.neighbor_mtu_raw();
    if mtu == 0 || mtu > info.mtu_cap_raw() {
        return Err(Status::INVALID_FIELD);
    }
    info.set_neighbor_mtu_raw(mtu);
    let vls = wanted.operational_vls();
    if vls > info.vl_cap() {
        return Err(Status::INVALID_FIELD);
    }
    if vls != 0 {
        info.set_operational_vls(vls);
    }
    info.vl_high_limit = wanted.vl_high_limit;
    info.set_vl_stall_count(wanted.vl_stall_count());
    info.set_hoq_life(wanted.hoq_life());
    info.set_partition_enforcement_inbound(wanted.partition_enforcement_inbound());
    info.set_partition_enforcement_outbound(wanted.partition_enforcement_outbound());
    info.set_filter_raw_inbound(wanted.filter_raw_inbound());
    info.set_filter_raw_outbound(wanted.filter_raw_outbound());
    info.set_init_type(wanted.init_type());
    Ok(())
}

fn set_widths_and_speeds(info: &mut PortInfo, wanted: &PortInfo, extended: bool) -> Result<(), Status> {
    match wanted.link_width_enabled {
        0 => {}
        255 => info.link_width_enabled = info.link_width_supported,
        some if some & !info.link_width_supported == 0 => info.link_width_enabled = some,
        _ => return Err(Status::INVALID_FIELD),
    }
    match wanted.link_speed_enabled() {
        0 => {}
        15 => info.set_link_speed_enabled(info.link_speed_supported()),
        some if some & !info.link_speed_supported() == 0 => info.set_link_speed_enabled(some),
        _ => return Err(Status::INVALID_FIELD),
    }
    if !extended {
        return Ok(());
    }
    match wanted.link_speed_ext_enabled() {
        0 => {}
        any @ (30 | 31) => info.set_link_speed_ext_enabled(any),
        some if some & !info.link_speed_ext_supported() == 0 => info.set_link_speed_ext_enabled(some),
        _ => return Err(Status::INVALID_FIELD),
    }
    let (active, supported) = (info.link_speed_ext2_active(), info.link_speed_ext2_supported());
    match wanted.link_speed_ext2_enabled() {
        0 => {}
        any @ 7 => info.set_link_speed_ext2(active, supported, any),
        some if some & !supported == 0 => info.set_link_speed_ext2(active, supported, some),
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(())
}

/// Port state, physical state and default state of the link; returns what becomes of the link.
fn set_states(info: &mut PortInfo, wanted: &PortInfo, number: PortNum) -> Result<Option<Effect>, Status> {
    match wanted.link_down_default_state() {
        0 => {}
        some @ (1 | 2) => info.set_link_down_default_state(some),
        _ => return Err(Status::INVALID_FIELD),
    }
    let now = info.port_state().unwrap_or(PortState::Down);
    let mut raised = None;
    let down = match wanted.port_state_raw() {
        0 => false,
        1 => true,
        // The same state again is no transition.
        3 if matches!(now, PortState::Init | PortState::Armed) => {
            info.set_port_state_raw(PortState::Armed.to_wire());
            raised = (now == PortState::Init).then_some(Effect::Armed(number));
            false
        }
        4 if matches!(now, PortState::Armed | PortState::Active) => {
            info.set_port_state_raw(PortState::Active.to_wire());
            false
        }
        _ => return Err(Status::INVALID_FIELD),
    };
    let phys = match wanted.port_phys_state_raw() {
        0 => None,
        // Training, LinkUp, recovery and test are reached, not asked for (7.2.7); and only a port that is taken down
        // changes its physical state.
        raw if down => Some(PortPhysState::from_wire(raw).ok_or(Status::INVALID_FIELD)?),
        _ => return Err(Status::INVALID_FIELD),
    };
    match phys {
        None if down && info.port_phys_state() == Some(PortPhysState::Disabled) => Ok(None),
        None => Ok(if down { Some(Effect::Retrain(number)) } else { raised }),
        Some(PortPhysState::Sleep | PortPhysState::Polling) => Ok(Some(Effect::Retrain(number))),
        Some(PortPhysState::Disabled) => Ok(Some(Effect::Disable(number))),
        Some(_) => Err(Status::INVALID_FIELD),
    }
}
