//! A device as it leaves the factory: from a node of a [`routing::fabric::Fabric`] (a file, a generator).

use mad::types::{LinkSpeed, LinkSpeedSet, LinkWidth, NodeType, PKey, PortPhysState, PortState};
use mad::wire::smp::{NodeInfo, PortInfo, SwitchInfo};
use routing::fabric::{Node, Port, SwitchFacts};
use zerocopy::FromZeros;
use zerocopy::big_endian::{U16, U32, U64};

use super::counters::Counters;
use super::port::{DevicePort, ExtendedSpeeds};
use super::{Device, NoticeQueue, Profile, SwitchTables};

/// Entries of the P_Key tables of end ports and of a switch's external ports.
const P_KEYS: u16 = 64;
/// GUIDs of an adapter port.
const ADAPTER_GUIDS: u8 = 32;
/// Mellanox's OUI, for nodes of which a file says nothing.
const VENDOR: u32 = 0x02c9;

/// What every end port can do unless a file says otherwise.
const END_PORT_CAPABILITIES: u32 = PortInfo::CAP_IS_TRAP_SUPPORTED
    | PortInfo::CAP_SL_MAPPING
    | PortInfo::CAP_SYSTEM_IMAGE_GUID
    | PortInfo::CAP_CAPABILITY_MASK2
    | PortInfo::CAP_CAPABILITY_MASK_NOTICE
    | PortInfo::CAP_CLIENT_REREGISTRATION
    | PortInfo::CAP_OTHER_LOCAL_CHANGES_NOTICE;
/// What adapters can do besides.
const ADAPTER_CAPABILITIES: u32 = PortInfo::CAP_AUTOMATIC_MIGRATION
    | PortInfo::CAP_COMMUNICATION_MANAGEMENT
    | PortInfo::CAP_VENDOR_CLASS
    | PortInfo::CAP_DEVICE_MANAGEMENT;

impl Device {
    /// A device for a node, with all ports down, no LIDs and empty tables.
    pub fn new(node: &Node) -> Self {
        let is_switch = node.is_switch();
        let facts = is_switch.then(|| node.switch.unwrap_or_default());
        let speeds = node.numbered_ports().fold(0, |all, (_, p)| all | p.speeds_supported.0);
        let ports = (0..=usize::from(node.num_ports))
            .map(|number| {
                let known = node.ports.get(number).and_then(Option::as_ref);
                Maker { node, number, facts, speeds }.port(known)
            })
            .collect();
        let mut device = Self {
            node_info: node_info(node),
            description: [0; 64],
            ports,
            switch: facts.map(|facts| Box::new(tables(&facts))),
            led: 0,
            profile: Profile::Plain,
            extended_speeds: ExtendedSpeeds::Always,
            quirks: Vec::new(),
            dead: false,
        };
        device.set_name(&node.description);
        device.set_profile(Profile::of(node.device_id));
        device
    }
}

impl Device {
    /// Back to what it was before anybody set anything: no LIDs, no keys, empty tables, all ports down. Identity,
    /// capabilities and faults stay.
    pub fn reset(&mut self) {
        let is_switch = self.is_switch();
        for (number, port) in self.ports.iter_mut().enumerate() {
            let management = is_switch && number == 0;
            let info = &mut port.info;
            info.m_key.set(0);
            info.gid_prefix.set(0xfe80_0000_0000_0000);
            info.base_lid.set(0);
            info.set_lmc(0);
            info.master_sm_lid.set(0);
            info.set_master_sm_sl(0);
            info.m_key_lease_period.set(0);
            info.set_m_key_protect_bits(0);
            info.set_subnet_timeout(18);
            info.set_operational_vls(info.vl_cap());
            info.capability_mask.set(info.capability_mask.get() & !PortInfo::CAP_IS_SM);
            for counter in
                [&mut info.m_key_violations, &mut info.p_key_violations, &mut info.q_key_violations]
            {
                counter.set(0);
            }
            if !management {
                port.set_state(PortState::Down, PortPhysState::Polling);
            }
            port.p_keys = vec![PKey::DEFAULT_FULL];
            port.alias_guids.clear();
            port.sl_to_vl.clear();
            port.vl_arbitration = None;
            port.m_key_violated = None;
            port.fdr10_enabled = true;
            port.fec_enabled = None;
            let growth = std::mem::take(&mut port.counters.growth);
            port.counters = Counters::default();
            port.counters.growth = growth;
            port.notices = NoticeQueue::default();
        }
        if let Some(tables) = &mut self.switch {
            tables.clear();
        }
    }
}

fn node_info(node: &Node) -> NodeInfo {
    let mut info = NodeInfo::new_zeroed();
    info.base_version = 1;
    info.class_version = 1;
    info.node_type = node.kind.to_wire();
    info.num_ports = node.num_ports;
    info.system_image_guid.set(node.system_image_guid.0);
    info.node_guid.set(node.guid.0);
    info.partition_cap.set(P_KEYS);
    info.device_id.set(node.device_id);
    info.revision.set(node.revision);
    info.set_vendor_id(if node.vendor_id == 0 { VENDOR } else { node.vendor_id });
    info
}

fn tables(facts: &SwitchFacts) -> SwitchTables {
    let mut info = SwitchInfo::new_zeroed();
    info.linear_fdb_cap.set(facts.linear_fdb_cap);
    info.multicast_fdb_cap.set(facts.multicast_fdb_cap);
    info.lids_per_port.set(0);
    info.partition_enforcement_cap.set(P_KEYS);
    info.set_inbound_enforcement_cap(1);
    info.set_outbound_enforcement_cap(1);
    info.set_filter_raw_inbound_cap(1);
    info.set_filter_raw_outbound_cap(1);
    info.set_life_time_value(16);
    info.set_enhanced_port_0(u8::from(facts.enhanced_port_0));
    info.set_port_state_change(1);
    SwitchTables { info, lft: Vec::new(), mft: std::collections::BTreeMap::new(), adaptive: None }
}

/// What a port is made of.
struct Maker<'a> {
    node: &'a Node,
    number: usize,
    facts: Option<SwitchFacts>,
    /// Speeds of all ports together: port 0 tells the capabilities of its switch.
    speeds: u16,
}

impl Maker<'_> {
    fn port(&self, known: Option<&Port>) -> DevicePort {
        let default = Port::default();
        let facts = known.unwrap_or(&default);
        let management = self.facts.is_some() && self.number == 0;
        let mut info = PortInfo::new_zeroed();
        self.capabilities(&mut info, facts, management);
        self.link(&mut info, facts, management);
        info.gid_prefix = U64::new(0xfe80_0000_0000_0000);
        info.set_subnet_timeout(18);
        info.set_resp_time_value(16);
        info.set_local_phy_errors(8);
        info.set_overrun_errors(8);
        info.guid_cap = if self.facts.is_some() { 1 } else { ADAPTER_GUIDS };
        if self.facts.is_some() && !management {
            info.guid_cap = 0;
        }
        DevicePort {
            info,
            guid: self.guid(known),
            p_keys: vec![PKey::DEFAULT_FULL],
            p_key_cap: P_KEYS,
            alias_guids: Vec::new(),
            sl_to_vl: std::collections::BTreeMap::new(),
            vl_arbitration: None,
            cable: (facts.width.unwrap_or(LinkWidth::X12), facts.speed.unwrap_or(LinkSpeed::Xdr)),
            fdr10: false,
            fdr10_supported: self.fdr10(facts),
            fdr10_enabled: true,
            fec_enabled: None,
            m_key_violated: None,
            client_reregisters: 0,
            loss: 0.0,
            counters: Counters::default(),
            notices: NoticeQueue::default(),
        }
    }

    /// Whether the port can do FDR10, which PortInfo does not tell.
    fn fdr10(&self, facts: &Port) -> bool {
        facts.speeds_supported.contains(LinkSpeed::Fdr10) || facts.speed == Some(LinkSpeed::Fdr10)
    }

    fn guid(&self, known: Option<&Port>) -> u64 {
        match known {
            Some(port) if port.guid.is_some() => port.guid.0,
            _ if self.facts.is_some() => self.node.guid.0,
            _ => self.node.guid.0.wrapping_add(self.number as u64),
        }
    }

    fn capabilities(&self, info: &mut PortInfo, facts: &Port, management: bool) {
        let end_port = self.facts.is_none() || management;
        if !end_port {
            return;
        }
        let mut mask = facts.capability_mask;
        if mask == 0 {
            mask = END_PORT_CAPABILITIES;
            if self.node.kind != NodeType::Switch {
                mask |= ADAPTER_CAPABILITIES;
            }
        }
        // IsSM follows from the subnet managers that are attached, not from the file.
        mask &= !PortInfo::CAP_IS_SM;
        let speeds = if management { self.speeds } else { facts.speeds_supported.0 };
        let (_, ext, ext2) = fields(LinkSpeedSet(speeds));
        if ext != 0 || ext2 != 0 {
            mask |= PortInfo::CAP_EXTENDED_SPEEDS;
        }
        let mut mask2 = facts.capability_mask2;
        if Profile::of(self.node.device_id) != Profile::Plain {
            mask2 |= PortInfo::CAP2_PORT_INFO_EXTENDED;
        }
        for (there, bit) in [
            (ext & 4 != 0, PortInfo::CAP2_LINK_SPEED_HDR),
            (ext & 8 != 0, PortInfo::CAP2_LINK_SPEED_NDR),
            (ext2 != 0, PortInfo::CAP2_EXTENDED_SPEEDS2 | PortInfo::CAP2_LINK_SPEED_XDR),
            (facts.widths_supported.0 & 16 != 0, PortInfo::CAP2_LINK_WIDTH_2X),
        ] {
            if there {
                mask2 |= bit;
            }
        }
        info.capability_mask = U32::new(mask);
        info.capability_mask2 = U16::new(mask2);
    }

    fn link(&self, info: &mut PortInfo, facts: &Port, management: bool) {
        info.link_width_supported = facts.widths_supported.0;
        info.link_width_enabled = facts.widths_supported.0;
        info.link_width_active = facts.widths_supported.widest().unwrap_or(LinkWidth::X1).to_wire();
        let (base, ext, ext2) = fields(facts.speeds_supported);
        info.set_link_speed_supported(base);
        info.set_link_speed_enabled(base);
        info.set_link_speed_active(1);
        info.set_link_speed_ext_supported(ext);
        info.set_link_speed_ext_enabled(if ext == 0 { 0 } else { 31 });
        info.set_link_speed_ext2(0, ext2, if ext2 == 0 { 0 } else { 7 });
        info.set_link_down_default_state(2);
        info.set_mtu_cap_raw(facts.mtu_cap.to_wire());
        info.set_neighbor_mtu_raw(facts.mtu.to_wire().min(facts.mtu_cap.to_wire()));
        info.set_vl_cap(facts.vl_cap);
        info.set_operational_vls(facts.operational_vls);
        info.vl_arbitration_high_cap = if facts.vl_cap > 1 { 8 } else { 0 };
        info.vl_arbitration_low_cap = info.vl_arbitration_high_cap;
        // Base port 0 has no state of its own; devices report Active and LinkUp there.
        let state = if management { PortState::Active } else { PortState::Down };
        let phys = if management { PortPhysState::LinkUp } else { PortPhysState::Polling };
        info.set_port_state_raw(state.to_wire());
        info.set_port_phys_state_raw(phys.to_wire());
        if management {
            info.set_link_speed_active(base.checked_ilog2().map_or(1, |bit| 1 << bit));
        }
    }
}

/// LinkSpeed, LinkSpeedExt and LinkSpeedExt2 bits of a set of speeds.
fn fields(speeds: LinkSpeedSet) -> (u8, u8, u8) {
    ((speeds.0 & 7) as u8, (speeds.0 >> 4 & 0xf) as u8, (speeds.0 >> 8 & 1) as u8)
}
