//! Adaptive routing of switches that have it, as far as vendor attributes tell and set it: AdaptiveRoutingInfo,
//! AdaptiveRoutingGroupTable and the adaptive LinearForwardingTable, by [`mad::wire::vendor`].
//!
//! No public source gives the attribute modifiers of the two tables: here they are the number of the block, for group table
//! 0 and private table 0, the only ones that these switches have. A block of the group table is one group.

use std::collections::BTreeMap;

use mad::types::PortNum;
use mad::wire::vendor::{
    AdaptiveRoutingEntry, AdaptiveRoutingGroupTable, AdaptiveRoutingInfo,
    AdaptiveRoutingLinearForwardingTable, LidState,
};
use mad::wire::{Attribute, Status};
use routing::routes::NO_PORT;
use zerocopy::FromZeros;

use super::sma::write;
use super::switch::SwitchTables;
use super::{Device, Effect};

/// Groups that a switch has.
const GROUPS: u32 = 2048;
/// Sub-groups of a group.
const SUB_GROUPS: u8 = 2;
/// LIDs of a block of the adaptive forwarding table.
const LIDS: usize = AdaptiveRoutingLinearForwardingTable::PER_BLOCK;

/// What a switch with adaptive routing keeps.
#[derive(Clone, Debug)]
pub struct AdaptiveRouting {
    /// AdaptiveRoutingInfo.
    pub info: AdaptiveRoutingInfo,
    /// Groups that were written, by number.
    pub groups: BTreeMap<u16, AdaptiveRoutingGroupTable>,
    /// Blocks of the adaptive forwarding table that were written: LID state and group of each LID. The static ports are
    /// those of the linear forwarding table.
    states: BTreeMap<u16, [(LidState, u16); LIDS]>,
}

impl AdaptiveRouting {
    /// As it leaves the factory: off.
    pub fn new() -> Self {
        let mut info = AdaptiveRoutingInfo::new_zeroed();
        info.set_global_groups(1);
        info.set_by_sl_cap(1);
        info.set_by_transport_cap(1);
        info.set_group_cap(GROUPS);
        info.set_group_table_cap(1);
        info.set_ar_version_cap(1);
        info.sub_groups_supported = SUB_GROUPS;
        info.enable_by_sl_mask.set(0xffff);
        Self { info, groups: BTreeMap::new(), states: BTreeMap::new() }
    }

    /// The ports among which packets to a LID are spread; `None` where they go by the static port.
    pub fn ports(&self, lid: u16) -> Option<[u8; 32]> {
        let (block, slot) = (lid / LIDS as u16, usize::from(lid) % LIDS);
        let (state, group) = self.states.get(&block)?[slot];
        if self.info.enabled() == 0 || !matches!(state, LidState::Bounded | LidState::Free) {
            return None;
        }
        let masks = self.groups.get(&group)?.sub_groups;
        let mask: [u8; 32] = std::array::from_fn(|byte| masks[0][byte] | masks[1][byte]);
        (mask != [0; 32]).then_some(mask)
    }
}

impl Default for AdaptiveRouting {
    fn default() -> Self {
        Self::new()
    }
}

impl SwitchTables {
    /// The adaptive ports for a LID that are there and whose link is up, by `is_up`, in order.
    pub(crate) fn adaptive_exits(&self, lid: u16, is_up: impl Fn(PortNum) -> bool) -> Vec<PortNum> {
        let Some(mask) = self.adaptive.as_ref().and_then(|adaptive| adaptive.ports(lid)) else {
            return Vec::new();
        };
        let table = AdaptiveRoutingGroupTable { sub_groups: [mask, [0; 32]] };
        (1..=254).map(PortNum).filter(|port| table.has_port(0, *port) && is_up(*port)).collect()
    }
}

impl Device {
    fn adaptive(&mut self) -> Result<&mut AdaptiveRouting, Status> {
        let tables = self.switch.as_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        tables.adaptive.as_deref_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)
    }

    pub(super) fn adaptive_routing_info(&mut self, set: bool, data: &mut [u8; 64]) -> Result<(), Status> {
        let adaptive = self.adaptive()?;
        let info = &mut adaptive.info;
        if set {
            let wanted = AdaptiveRoutingInfo::decode(data).ok_or(Status::INVALID_FIELD)?;
            let sub_groups = wanted.sub_groups_active();
            if wanted.group_top() >= info.group_cap() || sub_groups >= info.sub_groups_supported {
                return Err(Status::INVALID_FIELD);
            }
            info.set_enabled(wanted.enabled());
            info.set_by_sl_enabled(wanted.by_sl_enabled());
            info.set_group_top(wanted.group_top());
            info.set_sub_groups_active(sub_groups);
            info.enable_by_sl_mask = wanted.enable_by_sl_mask;
            info.by_transport_disable = wanted.by_transport_disable & 0xf;
            info.ageing_time = wanted.ageing_time;
        }
        write(info, data)
    }

    pub(super) fn adaptive_group_table(
        &mut self,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let num_ports = self.num_ports();
        let adaptive = self.adaptive()?;
        if modifier >= adaptive.info.group_cap() {
            return Err(Status::INVALID_FIELD);
        }
        let group = modifier as u16;
        if set {
            let wanted = AdaptiveRoutingGroupTable::decode(data).ok_or(Status::INVALID_FIELD)?;
            let beyond = |port: u8| (0..2).any(|sub_group| wanted.has_port(sub_group, PortNum(port)));
            if beyond(0) || (num_ports + 1..=255).any(beyond) {
                return Err(Status::INVALID_FIELD);
            }
            adaptive.groups.insert(group, wanted);
        }
        let empty = AdaptiveRoutingGroupTable { sub_groups: [[0; 32]; 2] };
        write(adaptive.groups.get(&group).unwrap_or(&empty), data)
    }

    /// The adaptive form of the forwarding table: its static ports are those of the plain one, and a Set writes both.
    pub(super) fn adaptive_forwarding(
        &mut self,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Status> {
        self.adaptive()?;
        let tables = self.switch.as_mut().ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        let first = modifier as usize * LIDS;
        if modifier > 0xffff || first >= usize::from(tables.info.linear_fdb_cap.get()) {
            return Err(Status::INVALID_FIELD);
        }
        let (block, per_block) = (modifier as u16, routing::routes::LFT_BLOCK);
        let (plain_block, offset) = ((first / per_block) as u16, first % per_block);
        let mut plain = tables.linear_block(plain_block);
        if set {
            let wanted = AdaptiveRoutingLinearForwardingTable::decode(data).ok_or(Status::INVALID_FIELD)?;
            if wanted.entries.iter().any(|entry| entry.group_table() != 0) {
                return Err(Status::INVALID_FIELD);
            }
            let old = plain;
            for (slot, entry) in plain[offset..].iter_mut().zip(&wanted.entries) {
                *slot = entry.default_port;
            }
            tables.set_linear_block(plain_block, &plain);
            effects.push(Effect::LinearBlock { first: plain_block * per_block as u16, old });
            let states = wanted.entries.map(|entry| (entry.lid_state(), entry.group.get()));
            if let Some(adaptive) = &mut tables.adaptive {
                adaptive.states.insert(block, states);
            }
        }
        let states = tables.adaptive.as_ref().and_then(|adaptive| adaptive.states.get(&block).copied());
        let states = states.unwrap_or([(LidState::Static, 0); LIDS]);
        let table = AdaptiveRoutingLinearForwardingTable {
            entries: std::array::from_fn(|slot| {
                let port = plain.get(offset + slot).copied().unwrap_or(NO_PORT);
                AdaptiveRoutingEntry::new(states[slot].0, PortNum(port), states[slot].1)
            }),
        };
        write(&table, data)
    }
}

#[cfg(test)]
mod tests {
    use mad::wire::ids::vendor as id;

    use super::super::Profile;
    use super::super::tests::{adapter, get, set, switch};
    use super::*;

    const TABLES: [u16; 3] = [
        id::ADAPTIVE_ROUTING_INFO,
        id::ADAPTIVE_ROUTING_GROUP_TABLE,
        id::ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE,
    ];

    fn adaptive_switch() -> Device {
        let mut device = switch();
        device.set_profile(Profile::Adaptive);
        device
    }

    fn bytes(attribute: &impl Attribute) -> [u8; 64] {
        let mut data = [0; 64];
        assert!(attribute.encode(&mut data));
        data
    }

    #[test]
    fn devices_without_adaptive_routing_refuse_it_with_0x0c() {
        let mut adapter = adapter();
        adapter.set_profile(Profile::Adaptive);
        for mut device in [switch(), adapter] {
            for attribute in TABLES {
                let refused = Status::METHOD_ATTRIBUTE_NOT_SUPPORTED;
                assert_eq!(get(&mut device, attribute, 0).unwrap().0, refused);
                assert_eq!(set(&mut device, attribute, 0, &[0; 64]).0, refused);
            }
        }
    }

    #[test]
    fn the_capabilities_stay_and_what_is_beyond_them_is_refused() {
        let mut device = adaptive_switch();
        let read = |device: &mut Device| {
            AdaptiveRoutingInfo::decode(&get(device, id::ADAPTIVE_ROUTING_INFO, 0).unwrap().1).unwrap()
        };
        let factory = read(&mut device);
        assert_eq!((factory.enabled(), factory.group_cap()), (0, GROUPS));
        let mut wanted = AdaptiveRoutingInfo::new_zeroed();
        wanted.set_enabled(1);
        wanted.set_group_top(GROUPS - 1);
        wanted.set_sub_groups_active(1);
        wanted.ageing_time.set(30);
        assert!(set(&mut device, id::ADAPTIVE_ROUTING_INFO, 0, &bytes(&wanted)).0.is_ok());
        let now = read(&mut device);
        assert_eq!((now.enabled(), now.group_top(), now.ageing_time.get()), (1, GROUPS - 1, 30));
        assert_eq!((now.group_cap(), now.by_sl_cap()), (GROUPS, 1), "read-only");
        for change in [
            |info: &mut AdaptiveRoutingInfo| info.set_group_top(GROUPS),
            |info: &mut AdaptiveRoutingInfo| info.set_sub_groups_active(SUB_GROUPS),
        ] {
            let mut beyond = wanted;
            change(&mut beyond);
            let (status, _) = set(&mut device, id::ADAPTIVE_ROUTING_INFO, 0, &bytes(&beyond));
            assert_eq!(status, Status::INVALID_FIELD);
            assert_eq!(read(&mut device), now);
        }
    }

    /// Both forms of the forwarding table have the same static ports; the adaptive one adds groups.
    #[test]
    fn groups_and_entries_are_kept_and_a_reset_forgets_them() {
        let mut device = adaptive_switch();
        let mut group = AdaptiveRoutingGroupTable { sub_groups: [[0; 32]; 2] };
        group.add_port(0, PortNum(3));
        group.add_port(1, PortNum(8));
        let table = id::ADAPTIVE_ROUTING_GROUP_TABLE;
        assert!(set(&mut device, table, 7, &bytes(&group)).0.is_ok());
        assert_eq!(get(&mut device, table, 7).unwrap().1, bytes(&group));
        assert_eq!(get(&mut device, table, GROUPS).unwrap().0, Status::INVALID_FIELD);
        group.add_port(0, PortNum(9));
        assert_eq!(set(&mut device, table, 7, &bytes(&group)).0, Status::INVALID_FIELD, "no port 9");

        let entries = std::array::from_fn(|slot| match slot {
            4 => AdaptiveRoutingEntry::new(LidState::Free, PortNum(3), 7),
            _ => AdaptiveRoutingEntry::new(LidState::Static, PortNum(slot as u8 + 1), 0),
        });
        let block = AdaptiveRoutingLinearForwardingTable { entries };
        let lft = id::ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE;
        let (status, effects) = set(&mut device, lft, 5, &bytes(&block));
        assert!(status.is_ok() && matches!(effects[..], [Effect::LinearBlock { first: 64, .. }]));
        assert_eq!(get(&mut device, lft, 5).unwrap().1, bytes(&block));
        let plain = get(&mut device, mad::wire::ids::sm::LINEAR_FORWARDING_TABLE, 1).unwrap().1;
        assert_eq!(plain[15..33], [255, 1, 2, 3, 4, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 255]);
        assert_eq!(get(&mut device, lft, 1024 / 16).unwrap().0, Status::INVALID_FIELD);

        let tables = device.switch.as_mut().unwrap();
        assert_eq!(tables.adaptive_exits(84, |_| true), [], "off");
        tables.adaptive.as_mut().unwrap().info.set_enabled(1);
        assert_eq!(tables.adaptive_exits(84, |_| true), [PortNum(3), PortNum(8)]);
        assert_eq!(tables.adaptive_exits(84, |port| port.0 == 8), [PortNum(8)]);
        assert_eq!(tables.adaptive_exits(83, |_| true), [], "static");
        device.reset();
        assert_eq!(get(&mut device, table, 7).unwrap().1, [0; 64]);
    }
}
