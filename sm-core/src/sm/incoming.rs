//! What others send to us: SMInfo requests and traps.
//!
//! A trap gets its TrapRepress at once and leaves a mark, nothing else happens in its path (B65). What it says is a claim:
//! LIDs in it are looked up, never used as an index (B66).

use std::sync::Arc;

use mad::transport::{Address, Datagram, Received};
use mad::types::{Guid, Lid, MKey, PortNum, Timestamp};
use mad::wire::smp::{
    LocalChangesData, NodeDescription, Notice, PortInfo, SmInfo, SmState, Smp, TrapDetails,
};
use mad::wire::{Attribute, Mad, Method, MgmtClass, Status};

use routing::fabric::PortRef;

use super::{Action, Phase, Sm, Token};
use crate::observed::Observed;
use crate::request::{Answer, SmpRequest};

impl Sm {
    pub(super) fn incoming(&mut self, received: &Received, now: Timestamp) {
        let Received::Datagram(datagram) = received else { return };
        let header = &datagram.mad.header;
        let class = header.mgmt_class();
        if class != MgmtClass::SUBN_LID && class != MgmtClass::SUBN_DR {
            return;
        }
        match (header.method(), header.attribute_id.get()) {
            (Method::TRAP, Notice::ID) => self.trap(datagram),
            (Method::GET | Method::SET, SmInfo::ID) if !self.hears(datagram) => {}
            (Method::GET, SmInfo::ID) => {
                let mut info = self.sm_info();
                info.sm_key.set(self.sm_key_for(datagram));
                // Nobody is called 0. Whoever asked before we know who we are asks again.
                if info.guid().is_some() {
                    self.reply(datagram, Status::OK, |data| info.encode(data));
                }
                self.asked_by(datagram, now);
            }
            (Method::SET, SmInfo::ID) => self.controlled(datagram, now),
            _ => {}
        }
    }

    /// Somebody asks for our SMInfo: another manager, perhaps. A second master may have taken note of a new link for itself
    /// and cleared PortStateChange before we looked (B58), so that this is all we ever see of it.
    fn asked_by(&mut self, datagram: &Datagram, now: Timestamp) {
        let smp = Smp::from_mad(datagram.mad);
        let said = SmInfo::decode(&smp.data).filter(|info| info.guid().is_some());
        let end = self.observed.as_ref().and_then(|observed| asker(observed, datagram));
        let met = |o: &Arc<Observed>| o.managers.iter().find(|m| Some(m.port) == end).copied();
        let known = self.observed.as_ref().and_then(met);
        self.election.asked_by(said.map(|info| info.guid()).or_else(|| known.map(|m| m.guid)));
        if let Some(info) = &said {
            self.asked_by_manager(info, &smp, now);
        }
        if self.sm_state() != SmState::Master {
            return;
        }
        if let Some(known) = known {
            // One that polls us says STANDBY, and is known to. A master, or one that rises, is news.
            let news = said.is_some_and(|info| info.state() != known.info.state());
            if news && said.is_some_and(|info| info.state() == Some(SmState::Master)) {
                self.wishes.look();
            }
            return;
        }
        let lid = |o: &Arc<Observed>| o.fabric.port(end?)?.lid;
        match self.observed.as_ref().and_then(lid) {
            Some(lid) => self.wishes.doubtful(lid),
            None if end.is_none()
                && smp.header.mgmt_class() == MgmtClass::SUBN_DR
                && self.observed.is_some() =>
            {
                self.wishes.full();
            }
            None => {}
        }
    }

    /// What we say of ourselves. The SM_Key is told in answers alone, and not in all (B64).
    pub(super) fn sm_info(&self) -> SmInfo {
        let mut info = SmInfo::zeroed();
        info.guid.set(self.own_guid().0);
        info.act_count.set(self.act_count);
        info.set_priority(self.settings.priority);
        info.set_state_raw(self.sm_state().to_wire());
        info
    }

    /// PortGUID of our port; before the end of the first sweep as that has found it.
    fn own_guid(&self) -> Guid {
        let swept = || if let Phase::Sweeping(sweep) = &self.phase { sweep.own_guid() } else { None };
        if self.own.guid.is_some() { self.own.guid } else { swept().unwrap_or_default() }
    }

    /// Answers a request by the way that it came.
    pub(super) fn reply(&mut self, request: &Datagram, status: Status, fill: impl FnOnce(&mut [u8]) -> bool) {
        let mut smp = Smp::from_mad(request.mad);
        smp.header.method = request.mad.header.method().response().0;
        smp.header.status.set(status.0);
        smp.m_key.set(0);
        if smp.header.mgmt_class() == MgmtClass::SUBN_DR {
            smp.set_returning();
        }
        fill(&mut smp.data);
        let datagram = Datagram { address: request.address, mad: smp.into_mad() };
        self.actions.push_back(Action::Send(datagram, None));
    }

    fn trap(&mut self, datagram: &Datagram) {
        self.traps += 1;
        // With a wrong key the trap would go on, and count as an attempt to break in: it comes again when its port is known.
        let smp = Smp::from_mad(datagram.mad);
        let notice = Notice::decode(&smp.data);
        let in_vain = notice.as_ref().is_some_and(refuses_repress);
        if let Some(key) = self.key_of_issuer(datagram).filter(|_| !in_vain) {
            self.actions.push_back(Action::Send(repress(datagram, key), None));
        }
        let Some(notice) = notice else { return };
        if self.sm_state() != SmState::Master {
            return;
        }
        self.actions.push_back(Action::Notice(notice));
        let own = notice.issuer_lid().is_some() && notice.issuer_lid() == self.own.lid;
        if own || !self.settings.sweep_on_trap {
            return;
        }
        match notice.details() {
            TrapDetails::LinkStateChanged(_) => self.wishes.look(),
            TrapDetails::LocalChanges(data) => {
                let Some(lid) = Lid::new(data.lid.get()) else { return };
                let renamed = data.changed(LocalChangesData::NODE_DESCRIPTION);
                let other = data.change_flags.get() & !LocalChangesData::NODE_DESCRIPTION != 0;
                let same = self.capabilities(lid) == Some(data.capability_mask.get());
                if renamed {
                    self.wishes.renamed(lid);
                }
                if !same || (other && data.changed(0)) {
                    self.wishes.doubtful(lid);
                }
            }
            // Somebody tried a wrong key: asked with the right one, the port's lease stops running out (B67).
            TrapDetails::BadMKey(_) => {
                if let Some(lid) = Lid::new(datagram.address.lid) {
                    self.wishes.doubtful(lid);
                }
            }
            _ => {}
        }
    }

    /// The key of the port that sent a trap.
    fn key_of_issuer(&self, datagram: &Datagram) -> Option<MKey> {
        let keys = if let Phase::Applying(apply) = &self.phase { apply.keys() } else { self.keys() };
        if !keys.in_use() {
            return Some(MKey::NONE);
        }
        let end = Lid::new(datagram.address.lid).and_then(|lid| {
            self.snapshot.as_ref().and_then(|s| Some((s.end_port(lid)?, Arc::clone(&s.observed))))
        });
        end.and_then(|(end, observed)| Some(keys.of(observed.fabric.port(end)?.guid)))
    }

    /// CapabilityMask of the port that holds a LID, as we know it.
    fn capabilities(&self, lid: Lid) -> Option<u32> {
        let snapshot = self.snapshot.as_ref()?;
        let end = snapshot.end_port(lid)?;
        let info: &PortInfo = snapshot.observed.port_info(end)?;
        Some(info.capability_mask.get())
    }

    /// One Get for each node that says it has a new name (B12).
    pub(super) fn ask_renamed(&mut self) {
        for lid in self.wishes.take_renamed() {
            let Some(observed) = &self.observed else { return };
            let Some(end) = self.snapshot.as_ref().and_then(|s| s.end_port(lid)) else { continue };
            let Some((node, guid)) = observed.nodes.get(&end.node).map(|n| (n, n.node_info.node_guid()))
            else {
                continue;
            };
            let request =
                SmpRequest::get::<NodeDescription>(node.path, guid, 0).with_key(&self.ground.keys, observed);
            self.transactions.submit(request.into_transaction(), Token::Renamed(guid));
        }
    }

    pub(super) fn renamed_answered(&mut self, guid: Guid, answer: &Answer) {
        let Some(new) = answer.attribute::<NodeDescription>() else { return };
        let Some(observed) = &mut self.observed else { return };
        let Some(id) = observed.fabric.find(guid) else { return };
        if observed.nodes.get(&id).is_some_and(|n| n.description == new.text) {
            return;
        }
        Arc::make_mut(observed).record_description(id, &new.text);
        self.republish();
    }
}

/// Whether a port says that it refused a TrapRepress. One of a port whose key we don't know: the answer to this would be refused in turn,
/// and so on as fast as packets travel (B65, B67).
fn refuses_repress(notice: &Notice) -> bool {
    matches!(notice.details(), TrapDetails::BadMKey(data) if Method(data.method) == Method::TRAP_REPRESS)
}

/// The port from which a request came: back along its directed route, or by its LID. `None` where the picture has no such
/// port.
fn asker(observed: &Observed, datagram: &Datagram) -> Option<PortRef> {
    let smp = Smp::from_mad(datagram.mad);
    if smp.header.mgmt_class() != MgmtClass::SUBN_DR {
        let lid = Lid::new(datagram.address.lid)?;
        let nodes = observed.fabric.nodes();
        let mut ends = nodes.flat_map(|(node, facts)| {
            facts.end_ports().map(move |(port, p)| (PortRef { node, port }, p.lid))
        });
        return ends.find(|(_, held)| *held == Some(lid)).map(|(end, _)| end);
    }
    let hops = usize::from(smp.header.hop_count);
    let mut at = observed.local;
    for exit in smp.return_path.get(1..=hops)?.iter().rev() {
        at = observed.fabric.peer(PortRef { node: at.node, port: PortNum(*exit) })?;
    }
    let switch = observed.fabric.get(at.node)?.is_switch();
    Some(if switch { PortRef { port: PortNum::MANAGEMENT, ..at } } else { at })
}

/// TrapRepress: the trap's own header and notice, back to its sender.
fn repress(trap: &Datagram, key: MKey) -> Datagram {
    let mut smp = Smp::from_mad(trap.mad);
    smp.m_key.set(key.0);
    let mut mad: Mad = smp.into_mad();
    mad.header.method = Method::TRAP_REPRESS.0;
    mad.header.status.set(0);
    Datagram { address: Address { grh: None, ..trap.address }, mad }
}
