//! Everything else that a node answers, once it is known who it is.

use mad::types::{DirectedPath, Guid, PortNum, PortState};
use mad::wire::smp::{LinearForwardingTable, NodeDescription, PortInfo, SmInfo, SwitchInfo};
use routing::fabric::PortRef;
use routing::routes::LFT_BLOCK;

use super::{Ask, FoundTable, Place, Sweep, What};
use crate::observed::{FindingKind, OtherManager};
use crate::request::Answer;

impl Sweep {
    /// A finding that an attribute was not answered, or refused.
    fn unanswered(&mut self, guid: Guid, attribute: &str, answer: &Answer) {
        let Some(id) = self.id(guid).filter(|_| *answer != Answer::Cancelled) else { return };
        let Some(observed) = self.observed() else { return };
        let path = observed.nodes.get(&id).map_or(DirectedPath::LOCAL, |n| n.path);
        let text = format!("{} (route {path}): {attribute}: {}", observed.name(id), answer.in_words());
        self.finding(FindingKind::Unanswered, path, text);
    }

    pub(super) fn description_answered(&mut self, guid: Guid, answer: &Answer) {
        let Some(id) = self.id(guid) else { return };
        let Some(new) = answer.attribute::<NodeDescription>() else {
            return self.unanswered(guid, "NodeDescription", answer);
        };
        let known = self.observed().and_then(|o| o.nodes.get(&id)).map(|n| n.description);
        if known != Some(new.text)
            && let Some(observed) = self.observed_mut()
        {
            observed.record_description(id, &new.text);
        }
    }

    pub(super) fn switch_info_answered(&mut self, guid: Guid, answer: &Answer) {
        if self.look.is_some() && self.switch_looked_at(guid, answer) {
            return;
        }
        let Some(id) = self.id(guid) else { return };
        let Some(info) = answer.attribute::<SwitchInfo>() else {
            let reason = format!("SwitchInfo: {}", answer.in_words());
            return self.refuse_node(guid, FindingKind::Unanswered, &reason);
        };
        if let Some(observed) = self.observed_mut() {
            observed.record_switch_info(id, &info);
        }
        self.ask_table(guid, &info);
        if self.settings.acknowledge_changes && info.port_state_change() != 0 {
            self.ask(What::Acknowledge(guid));
        } else {
            self.ask(What::Port { guid, port: PortNum::MANAGEMENT, extended: false });
        }
    }

    /// Reads the table of a switch that forwards by entries that nobody here wrote (B20).
    fn ask_table(&mut self, guid: Guid, info: &SwitchInfo) {
        let top = info.linear_fdb_top.get();
        if !self.settings.read_tables || top == 0 || self.settings.known_tables.contains(&guid) {
            return;
        }
        let last = top.min(info.linear_fdb_cap.get().saturating_sub(1)).min(0xbfff) / LFT_BLOCK as u16;
        self.tables.insert(guid, FoundTable { blocks: vec![None; usize::from(last) + 1] });
        for block in 0..=last {
            self.ask(What::Table { guid, block });
        }
    }

    pub(super) fn table_answered(&mut self, guid: Guid, block: u16, answer: &Answer) {
        if let (Some(found), Some(table)) =
            (self.tables.get_mut(&guid), answer.attribute::<LinearForwardingTable>())
            && let Some(slot) = found.blocks.get_mut(usize::from(block))
        {
            *slot = Some(table.ports);
        }
    }

    /// PortStateChange is cleared; now the ports are read, so that a change from here on shows again (B04).
    pub(super) fn acknowledged(&mut self, guid: Guid, answer: &Answer) {
        match answer.attribute::<SwitchInfo>() {
            Some(info) => {
                if let (Some(id), Some(observed)) = (self.id(guid), self.observed_mut()) {
                    observed.record_switch_info(id, &info);
                }
            }
            None => self.unanswered(guid, "Set of SwitchInfo", answer),
        }
        self.ask(What::Port { guid, port: PortNum::MANAGEMENT, extended: false });
    }

    pub(super) fn port_answered(&mut self, (guid, port): Place, extended: bool, ask: &Ask, answer: &Answer) {
        let Some(node) = self.id(guid) else { return };
        let end = PortRef { node, port };
        let Some(observed) = self.observed() else { return };
        let switch = observed.fabric.node(node).is_switch();
        let Some(info) = answer.attribute::<PortInfo>() else {
            return self.port_unanswered(guid, end, extended, switch, answer);
        };
        if !extended && self.wants_extended(end, &info) {
            self.ask(What::Port { guid, port, extended: true });
            return;
        }
        if (!switch || port == PortNum::MANAGEMENT) && !self.learn_key(end, &info, ask) {
            return;
        }
        if switch && port == PortNum::MANAGEMENT {
            self.management_port_answered(guid, end, &info);
        } else {
            self.external_port_answered(end, &info);
        }
    }

    /// PortInfo, in the way that the port understands (B10).
    pub(super) fn ask_port(&mut self, guid: Guid, port: PortNum) {
        let switch = |o: &crate::observed::Observed| {
            let node = o.fabric.find(guid)?;
            let port_0 = PortRef { node, port: PortNum::MANAGEMENT };
            o.fabric.node(node).is_switch().then(|| o.port_info(port_0).copied())?
        };
        let able = self
            .observed()
            .and_then(switch)
            .is_some_and(|info| info.has_capability(PortInfo::CAP_EXTENDED_SPEEDS));
        let extended = able && port.0 != 0 && !self.no_extended.contains(&(guid, port));
        self.ask(What::Port { guid, port, extended });
    }

    /// What was known of a port that has stopped answering is no longer.
    fn forget(&mut self, end: PortRef) {
        if self.observed().is_some_and(|o| o.port_info(end).is_some())
            && let Some(observed) = self.observed_mut()
        {
            observed.forget_port_info(end);
        }
    }

    fn port_unanswered(&mut self, guid: Guid, end: PortRef, extended: bool, switch: bool, answer: &Answer) {
        if extended && matches!(answer, Answer::Refused(_)) {
            // Says that it can, and refuses the modifier: read without.
            self.no_extended.insert((guid, end.port));
            self.ask_port(guid, end.port);
            return;
        }
        if switch && end.port == PortNum::MANAGEMENT {
            let reason = format!("PortInfo of port 0: {}", answer.in_words());
            return self.refuse_node(guid, FindingKind::Unanswered, &reason);
        }
        self.unanswered(guid, &format!("PortInfo of port {}", end.port), answer);
        self.forget(end);
    }

    /// Whether a port must be asked with bit 31 to tell of extended speeds (B10): it can them, yet shows none. The
    /// capability of a switch's port is that of port 0, which has no link and needs no second look.
    fn wants_extended(&self, end: PortRef, info: &PortInfo) -> bool {
        let Some(observed) = self.observed() else { return false };
        if observed.fabric.node(end.node).is_switch() {
            return false; // port 0 needs none, the others are asked the right way at once
        }
        let refused = self.place(end).is_some_and(|place| self.no_extended.contains(&place));
        !refused && info.has_capability(PortInfo::CAP_EXTENDED_SPEEDS) && info.link_speed_ext_supported() == 0
    }

    fn management_port_answered(&mut self, guid: Guid, end: PortRef, info: &PortInfo) {
        let Some(observed) = self.observed_mut() else { return };
        observed.record_port_info(end, info);
        self.ask_tables(end, info);
        let Some(observed) = self.observed() else { return };
        let ports = observed.fabric.node(end.node).num_ports;
        for port in (1..=ports).map(PortNum) {
            self.ask_port(guid, port);
        }
        self.ask_manager(end, info);
    }

    fn external_port_answered(&mut self, end: PortRef, info: &PortInfo) {
        if self.look.is_some() {
            self.port_looked_at(end, info);
            self.ask_raised(end, info);
        }
        if self.observed().and_then(|o| o.port_info(end)).is_some_and(|known| same_but_counters(known, info))
        {
            self.ask_tables(end, info);
            return self.ask_beyond(end, info); // nothing new: a picture that is shared stays shared
        }
        let Some(observed) = self.observed_mut() else { return };
        observed.record_port_info(end, info);
        self.ask_tables(end, info);
        self.ask_beyond(end, info);
    }

    fn ask_beyond(&mut self, end: PortRef, info: &PortInfo) {
        let Some(observed) = self.observed() else { return };
        let up = info.port_state().is_some_and(PortState::is_up);
        let passable = observed.fabric.node(end.node).is_switch() || end == observed.local;
        let unknown = observed.fabric.peer(end).is_none();
        if let Some(place) = self.place(end).filter(|_| up && passable && unknown) {
            self.ask(What::Node(Some(place)));
        }
        self.ask_manager(end, info);
    }

    fn ask_manager(&mut self, end: PortRef, info: &PortInfo) {
        let Some(observed) = self.observed() else { return };
        let switch = observed.fabric.node(end.node).is_switch();
        let end_port = !switch || end.port == PortNum::MANAGEMENT;
        let is_sm = info.has_capability(PortInfo::CAP_IS_SM);
        let wanted = self.settings.ask_managers && end_port && is_sm && end != observed.local;
        if let Some(place) = self.place(end).filter(|_| wanted) {
            self.ask(What::Manager(place));
        }
    }

    pub(super) fn manager_answered(&mut self, place: Place, answer: &Answer) {
        let Some(port) = self.end(place) else { return };
        let Some(info) = answer.attribute::<SmInfo>() else {
            // Gone, or it does not want to be asked: no longer one that counts (B62).
            if self.observed().is_some_and(|o| o.managers.iter().any(|m| m.port == port))
                && let Some(observed) = self.observed_mut()
            {
                observed.managers.retain(|m| m.port != port);
            }
            return;
        };
        // ActCount grows all the time; by itself it is nothing new.
        let same = |m: &OtherManager| {
            let mut known = m.info;
            known.act_count = info.act_count;
            m.port == port && known == info
        };
        if self.observed().is_some_and(|o| o.managers.iter().any(same)) {
            return;
        }
        let Some(observed) = self.observed_mut() else { return };
        let guid = observed.fabric.port(port).map_or(Guid::NONE, |p| p.guid);
        observed.managers.retain(|manager| manager.port != port);
        observed.managers.push(OtherManager { port, guid, info });
    }
}

/// Whether two readings differ in counters at most.
fn same_but_counters(a: &PortInfo, b: &PortInfo) -> bool {
    let mut b = *b;
    (b.m_key_violations, b.p_key_violations) = (a.m_key_violations, a.p_key_violations);
    b.q_key_violations = a.q_key_violations;
    b.set_client_reregister(a.client_reregister());
    *a == b
}
