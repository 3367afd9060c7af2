//! A look at a known fabric: what changed is read again, everything else is kept.
//!
//! First every switch is asked for SwitchInfo by its known route. Where PortStateChange is set the ports are read, links
//! that went are taken out, new ones are walked. Switches that did not answer are asked once more when that is done, by
//! the routes that are left then; who is still silent has gone.

use std::collections::HashSet;
use std::sync::Arc;

use mad::types::{DirectedPath, Guid, PortNum, PortState};
use mad::wire::smp::{PortInfo, SwitchInfo};
use routing::fabric::PortRef;

use super::{Guids, Place, Sweep, SweepSettings, What};
use crate::observed::{FindingKind, Observed};
use crate::request::Answer;

/// State of a look.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Switches whose ports are read again.
    refreshed: Guids,
    /// Ports whose PortInfo was not known when the look began: their links may have gone and come unseen.
    unread: HashSet<Place>,
    /// Switches that did not answer by their old route.
    silent: Guids,
    /// Whether the silent ones were asked again.
    asked_again: bool,
    /// Whether a link went since the routes were found.
    stale_routes: bool,
    /// The picture that the look began with.
    before: Option<Arc<Observed>>,
    /// Whether another node was met where a switch was before: what was asked by routes through there was answered by somebody
    /// else than was meant.
    pub(super) moved: bool,
    /// Questions to nodes that had no route when they were under way; asked when the rest of the fabric was looked at.
    postponed: Vec<What>,
}

impl Sweep {
    /// A look at `observed`; `watched` are dangling ports that it is time to ask again (B05), `doubtful` ports of which
    /// somebody said that they have changed. What was not answered before is asked again too, and so are the other
    /// managers.
    pub fn look(
        settings: SweepSettings,
        observed: Arc<Observed>,
        watched: &[(Guid, PortNum)],
        doubtful: &[(Guid, PortNum)],
    ) -> Self {
        let mut sweep = Self::new(settings, None);
        let guids: Vec<Guid> = observed.fabric.switches().map(|(_, node)| node.guid).collect();
        for (_, node) in observed.fabric.nodes() {
            for (number, port) in node.end_ports() {
                sweep.port_guids.insert(port.guid, (node.guid, number));
            }
        }
        sweep.look = Some(Look { before: Some(Arc::clone(&observed)), ..Look::default() });
        sweep.observed = Some(observed);
        for guid in guids {
            sweep.ask(What::SwitchInfo(guid));
        }
        sweep.look_at_local_port();
        for (guid, port) in watched.iter().chain(doubtful) {
            sweep.ask_port(*guid, *port);
        }
        sweep.ask_what_is_missing();
        sweep.ask_managers();
        sweep.ask_qos_tables();
        sweep
    }

    /// Notes when a node was met at a port that led to another switch before (B01).
    pub(super) fn note_move(&mut self, end: PortRef, met: Guid) {
        let Some(look) = &mut self.look else { return };
        let Some(before) = &look.before else { return };
        let old = before.fabric.peer(end).map(|peer| before.fabric.node(peer.node));
        look.moved |= old.is_some_and(|old| old.is_switch() && old.guid != met);
    }

    /// Whether a switch known before is being asked for the first time. Those are asked once and briefly: what is silent was reached over
    /// the link that went, as a rule, and gets its repetitions by the routes that are left.
    ///
    /// Where links that went are seen as down, [`Self::leave_dead_routes`] is as fast without this. It is needed where they stay
    /// up: beside a switch that is silent with its links up, a cable lost at the same time is routed around after half the
    /// time (6.6 s for 12.8 s in a tree of ten leaves, with the default time-outs).
    pub(super) fn is_first_glance(&self, guid: Guid) -> bool {
        let known = || self.observed()?.nodes.get(&self.id(guid)?)?.switch_info;
        self.look.as_ref().is_some_and(|look| !look.asked_again) && known().is_some()
    }

    /// Asks the managers that answered before; ports that show IsSM and did not answer are read again, and asked if they
    /// still show it: who was silent once may be back as another master (B58), who is gone is not asked for ever (B62).
    fn ask_managers(&mut self) {
        let Some(observed) = self.observed.clone() else { return };
        let known: Vec<PortRef> = observed.managers.iter().map(|m| m.port).collect();
        for place in known.iter().filter_map(|end| self.place(*end)).collect::<Vec<_>>() {
            self.ask(What::Manager(place));
        }
        for (id, facts) in observed.fabric.nodes() {
            for (number, _) in facts.end_ports() {
                let end = PortRef { node: id, port: number };
                let is_sm = |info: &PortInfo| info.has_capability(PortInfo::CAP_IS_SM);
                let shown = observed.port_info(end).is_some_and(is_sm);
                if shown && end != observed.local && !known.contains(&end) {
                    self.ask_port(facts.guid, number);
                }
            }
        }
    }

    /// Attributes that were not answered in the sweep before, and ports of cables that a Set found down.
    fn ask_what_is_missing(&mut self) {
        let Some(observed) = self.observed.clone() else { return };
        for (id, node) in &observed.nodes {
            let facts = observed.fabric.node(*id);
            if node.description == [0; 64] {
                self.ask(What::Description(facts.guid));
            }
            let linked =
                |number: PortNum| observed.fabric.peer(PortRef { node: *id, port: number }).is_some();
            for (number, _) in facts.numbered_ports().filter(|(n, p)| !p.state.is_up() && linked(*n)) {
                self.ask_port(facts.guid, number);
            }
        }
        for end in observed.unread() {
            let place = (observed.fabric.node(end.node).guid, end.port);
            if let Some(look) = &mut self.look {
                look.unread.insert(place);
            }
            self.ask_port(place.0, place.1);
        }
    }

    /// Our own port, where it is an adapter's: no switch would tell us that it lost its link.
    fn look_at_local_port(&mut self) {
        let Some(observed) = self.observed() else { return };
        let local = observed.local;
        let node = observed.fabric.node(local.node);
        if !node.is_switch() {
            let guid = node.guid;
            self.ask(What::Port { guid, port: local.port, extended: false });
        }
    }

    /// SwitchInfo of a switch that was known before. True when that is all; false when its ports have to be read.
    pub(super) fn switch_looked_at(&mut self, guid: Guid, answer: &Answer) -> bool {
        let Some(id) = self.id(guid) else { return true };
        let Some(node) = self.observed().and_then(|o| o.nodes.get(&id)) else { return true };
        let Some(old) = node.switch_info else { return false }; // met in this sweep
        let Some(look) = &mut self.look else { return false };
        let Some(new) = answer.attribute::<SwitchInfo>() else {
            if *answer != Answer::Cancelled {
                look.silent.insert(guid);
            }
            return true;
        };
        look.silent.remove(&guid);
        if new.port_state_change() == 0 && new == old {
            return true;
        }
        !look.refreshed.insert(guid)
    }

    /// PortInfo of a port of which an older one may be known: takes a link out that went or may lead elsewhere now.
    pub(super) fn port_looked_at(&mut self, end: PortRef, new: &PortInfo) {
        let Some(observed) = self.observed() else { return };
        let read = observed.port_info(end).is_some();
        let Some(peer) = observed.fabric.peer(end) else { return };
        let state = new.port_state().unwrap_or(PortState::Down);
        let Some(place) = self.place(end) else { return };
        let Some(look) = self.look.as_mut() else { return };
        // Once: what is walked anew is not doubted again.
        let unread = look.unread.remove(&place);
        // A port at INIT lost its link in between, and a cable may have been moved; so the peer is asked again.
        let init = state == PortState::Init && (unread || look.refreshed.contains(&place.0));
        if !(read || unread) || (state.is_up() && !init) {
            return;
        }
        let settled =
            self.place(end).zip(self.place(peer)).is_some_and(|link| self.confirmed.contains(&link));
        if state.is_up() && settled {
            return;
        }
        let peer_place = self.place(peer);
        if let Some(observed) = self.observed_mut() {
            observed.fabric.disconnect(end);
        }
        if let Some(look) = &mut self.look {
            look.stale_routes = true;
        }
        if let Some(place) = peer_place {
            self.ask_other_end(place);
        }
    }

    /// The far end of a host's link that was raised since the last sweep, on a switch where something has changed. (A switch
    /// at the far end has a PortStateChange of its own.)
    pub(super) fn ask_raised(&mut self, end: PortRef, info: &PortInfo) {
        let raised = self.place(end).is_some_and(|place| {
            self.settings.raised.contains(&place)
                && self.look.as_ref().is_some_and(|l| l.refreshed.contains(&place.0))
        });
        let up = info.port_state().is_some_and(PortState::is_up);
        let host = |o: &Observed| o.fabric.peer(end).filter(|peer| !o.fabric.node(peer.node).is_switch());
        let host = self.observed().and_then(host).and_then(|peer| self.place(peer));
        if let Some((guid, port)) = host.filter(|_| raised && up) {
            self.ask_port(guid, port);
        }
    }

    /// The far port of a link that went: read it, if its node is one that will not be read anyhow.
    fn ask_other_end(&mut self, (guid, port): Place) {
        let refreshed = self.look.as_ref().is_some_and(|l| l.refreshed.contains(&guid));
        if !refreshed {
            self.orphaned.push((guid, port));
        }
    }

    /// A node known before was met behind a link that came up: it may have been restarted, so it is read again.
    pub(super) fn peer_met_again(&mut self, guid: Guid, port: PortNum, switch: bool) {
        if let Some(peer) = self.end((guid, port))
            && let Some(end) = self.observed().and_then(|o| o.fabric.peer(peer))
            && let (Some(a), Some(b)) = (self.place(peer), self.place(end))
        {
            self.confirmed.insert((a, b));
            self.confirmed.insert((b, a));
        }
        if !switch {
            self.ask(What::Description(guid));
        }
        self.ask_port(guid, port);
    }

    /// After a link went: what is under way over it will not be answered, so it is asked by the routes that are left now,
    /// not when its time is over. Without this a look takes as long as all tries of a request.
    pub(super) fn leave_dead_routes(&mut self) {
        if !self.look.as_mut().is_some_and(|look| std::mem::take(&mut look.stale_routes)) {
            return;
        }
        let lost = self.observed_mut().map(Observed::reroute).unwrap_or_default();
        let mut moved: Vec<_> = self
            .outstanding
            .values()
            .filter_map(|(ask, old)| {
                let id = self.id(ask.what.node()?)?;
                let path = self.observed()?.nodes.get(&id)?.path;
                let gone = lost.contains(&id);
                (gone || path != *old).then_some((*ask, gone))
            })
            .collect();
        moved.sort_unstable_by_key(|(ask, _)| ask.serial);
        for (ask, gone) in moved {
            self.outstanding.remove(&ask.serial);
            self.given_up += 1;
            match &mut self.look {
                Some(look) if gone => look.postponed.push(ask.what),
                _ => self.queue.push_back(ask),
            }
        }
    }

    /// What comes when all that was asked is answered. False: nothing.
    pub(super) fn next_stage(&mut self) -> bool {
        let Some(look) = &mut self.look else { return false };
        let postponed = std::mem::take(&mut look.postponed);
        if !postponed.is_empty() {
            self.renew_paths();
            // Of nodes that are gone now nothing is asked: a request needs a route.
            postponed.into_iter().for_each(|what| self.ask(what));
            return true;
        }
        if !self.orphaned.is_empty() {
            self.renew_paths();
            for (guid, port) in std::mem::take(&mut self.orphaned) {
                if self.id(guid).is_some() {
                    self.ask_port(guid, port);
                }
            }
            return true;
        }
        let Some(look) = &mut self.look else { return false };
        if look.silent.is_empty() {
            return false;
        }
        let silent = std::mem::take(&mut look.silent);
        if look.asked_again {
            for guid in silent {
                self.refuse_node(guid, FindingKind::Unanswered, "the switch has stopped answering");
            }
            self.renew_paths();
            return true;
        }
        look.asked_again = true;
        self.renew_paths();
        for guid in silent {
            self.silences.remove(&guid);
            self.ask(What::SwitchInfo(guid));
        }
        true
    }

    /// Routes over what is left; names the nodes that have none any more.
    pub(super) fn renew_paths(&mut self) {
        let Some(observed) = self.observed_mut() else { return };
        for node in observed.renew_paths() {
            let text =
                format!("\"{}\" ({}) can't be reached any more", node.description.escape_debug(), node.guid);
            self.finding(FindingKind::Gone, DirectedPath::LOCAL, text);
            self.port_guids.retain(|_, (guid, _)| *guid != node.guid);
        }
    }
}
