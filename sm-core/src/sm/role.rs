//! The election on the wire and in time: who is asked and when, what others may ask of us, what follows of it.
//!
//! [`super::election`] decides; here are the clock, the routes to the other managers and the requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mad::transactions::Request;
use mad::transport::{Address, Datagram};
use mad::types::{DirectedPath, Guid, MKey, PortNum, PortState, Timestamp};
use mad::wire::smp::{LocalChangesData, Notice, NoticeType, PortInfo, SmControl, SmInfo, SmState, Smp};
use mad::wire::{Attribute, Method, Status};
use routing::fabric::PortRef;

use super::election::{Order, Peer, Policy, Rank, Verdict};
use super::{Action, Phase, Role, Sm, Token, cut};
use crate::apply::Apply;
use crate::observed::{Observed, OtherManager};
use crate::plan::{Plan, own_end};
use crate::request::{Answer, SmpRequest};
use crate::settings::SmSettings;
use crate::snapshot::Snapshot;

/// What the election needs of time and place.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Routes to the managers that were met, by port GUID.
    paths: BTreeMap<Guid, DirectedPath>,
    /// The way back to managers that asked for our SMInfo and said who they are: a sweep need not meet them, where a
    /// node between us can't be walked past. And when they asked.
    askers: BTreeMap<Guid, (DirectedPath, Timestamp)>,
    next_poll: Option<Timestamp>,
    /// Who left all its polls unanswered, and has not been heard of since.
    silent: Option<Guid>,
    /// When the manager that is polled last answered.
    heard: Option<Timestamp>,
    /// When we last handled anything.
    alive: Option<Timestamp>,
    /// When our own port was last known to have a link: the beginning of a sweep, or another manager's question.
    linked: Option<Timestamp>,
    /// The longest time since the last sweep for which nothing told of its link.
    unlinked: Duration,
    /// The beginning of the last sweep.
    swept: Option<Timestamp>,
}

impl Others {
    /// Our own port has a link now.
    fn note_link(&mut self, now: Timestamp) {
        if let Some(last) = self.linked.filter(|last| *last < now) {
            self.unlinked = self.unlinked.max(now - last);
            self.linked = Some(now);
        }
    }
}

/// Askers that are remembered; more are as good as these.
const MOST_ASKERS: usize = 16;

/// The managers asked once more before a plan is applied.
#[derive(Debug)]
pub(super) struct Confirmation {
    pub(super) plan: Arc<Plan>,
    pub(super) managers: Vec<(Guid, SmInfo)>,
    pub(super) open: usize,
    /// Whether our own link had to be trained since it was read: its cable may lead elsewhere now.
    pub(super) own_link_fell: bool,
    /// The plan is being applied, and goes on.
    pub(super) applied: Option<Box<Apply>>,
}

impl Confirmation {
    /// Our own port was read once more.
    pub(super) fn own_port_answered(&mut self, answer: &Answer) {
        self.open = self.open.saturating_sub(1);
        let state = answer.attribute::<PortInfo>().and_then(|info| info.port_state());
        self.own_link_fell |= state.is_some_and(|state| state < PortState::Armed);
    }

    pub(super) fn answer(&mut self, guid: Guid, answer: &Answer) {
        self.open = self.open.saturating_sub(1);
        let Some(info) = answer.attribute::<SmInfo>() else { return };
        match self.managers.iter_mut().find(|(known, _)| *known == guid) {
            Some((_, known)) => *known = info,
            // An asker, which no sweep has met: at the end of the way back there may be somebody else by now.
            None if info.guid() == guid => self.managers.push((guid, info)),
            None => {}
        }
    }
}

impl Role {
    pub(super) const fn of(state: SmState) -> Self {
        match state {
            SmState::NotActive => Self::NotActive,
            SmState::Discovering => Self::Discovering,
            SmState::Standby => Self::Standby,
            SmState::Master => Self::Master,
        }
    }
}

pub(super) const fn policy(settings: &SmSettings) -> Policy {
    Policy { sticky: settings.sticky, retries: settings.polling_retries }
}

impl Sm {
    /// Our state as SMInfo tells it.
    pub(super) const fn sm_state(&self) -> SmState {
        self.election.state()
    }

    /// Whether anything may be written: we are master, wait for nobody, and have examined what others may have changed.
    pub(super) fn may_write(&self) -> bool {
        self.election.leads() && !self.foreign_tables
    }

    pub(super) fn renew_rank(&mut self) {
        let rank = Rank { priority: self.settings.priority, guid: self.own.guid };
        self.election.set_rank(rank, policy(&self.settings));
    }

    /// How long a manager may be stopped before it has to think that others have taken over: half of what a standby with
    /// our settings waits.
    pub(super) fn lapse(&self) -> Duration {
        self.settings.polling_interval * (self.settings.polling_retries + 1) / 2
    }

    /// When we have to be asked, so as to notice that we were stopped.
    pub(super) fn heartbeat(&self) -> Option<Timestamp> {
        let at_work = matches!(self.sm_state(), SmState::Master | SmState::Discovering);
        self.others.alive.filter(|_| at_work).map(|at| at + self.lapse() / 2)
    }

    /// Until when nobody can have taken us for dead, if we are in charge: what is promised later has to be confirmed by
    /// another event first.
    pub fn leads_until(&self) -> Timestamp {
        let alive = self.others.alive.filter(|_| self.election.leads());
        alive.map_or(Timestamp::ZERO, |at| at + self.lapse())
    }

    /// When the master that we stood by last answered a poll.
    pub const fn master_heard(&self) -> Option<Timestamp> {
        self.others.heard
    }

    /// Called with every event, before it is handled.
    pub(super) fn notice_lapse(&mut self, now: Timestamp) {
        let last = self.others.alive.replace(now);
        if last.is_some_and(|last| now - last > self.lapse()) {
            self.election.lapsed();
            self.carry_out(now);
        }
    }

    /// Somebody that says who it is asks for our SMInfo. Who is MASTER while we write, and was not met, writes too or is
    /// about to: what is under way is abandoned, and the fabric examined from nothing.
    pub(super) fn asked_by_manager(&mut self, info: &SmInfo, request: &Smp, now: Timestamp) {
        let Some(peer) = self.peer(info.guid(), info).filter(|peer| peer.rank.guid != self.own.guid) else {
            return;
        };
        let Some(path) = way_back(request) else { return };
        self.others.note_link(now);
        if self.others.askers.len() < MOST_ASKERS {
            self.others.askers.insert(peer.rank.guid, (path, now));
        }
        self.others.silent.take_if(|silent| *silent == peer.rank.guid);
        let writes = matches!(
            self.phase,
            Phase::Planning | Phase::Confirming(_) | Phase::Applying(_) | Phase::Multicast(_)
        );
        if peer.trusted && peer.state == SmState::Master && self.election.leads() && writes {
            self.abandon(now);
            self.wishes.full();
        }
    }

    /// Whether others may have taken over or written tables since the last sweep, unseen: our own port lost its link for so long, or
    /// a manager that was rising or master was met then and has left since, or one was apart from us with others for so long.
    pub(super) fn may_have_missed_others(&mut self, before: Option<&Observed>, observed: &Observed) -> bool {
        let last = self.others.swept.replace(self.round.sweep_began());
        let rare = last.is_none_or(|last| self.round.sweep_began() - last > self.lapse());
        let long = self.others.linked.is_none() || {
            self.others.note_link(self.round.sweep_began());
            self.others.unlinked > self.lapse()
        };
        (self.others.linked, self.others.unlinked) = (Some(self.round.sweep_began()), Duration::ZERO);
        let fell = observed.local_state() == Some(PortState::Init);
        // Somebody else may have answered at our LID, which was free, and be gone.
        if fell && long {
            self.serve_nobody();
        }
        let Some(before) = before.filter(|_| self.sm_state() == SmState::Master) else { return false };
        let fell = fell && before.local_state() == Some(PortState::Active);
        let rose = |m: &OtherManager| {
            let writes = matches!(m.info.state(), Some(SmState::Discovering | SmState::Master));
            writes && observed.managers.iter().all(|now| now.guid != m.guid)
        };
        if fell && long {
            self.election.lapsed();
        }
        let apart = rare && cut::managers_were_apart(before, observed);
        if apart {
            self.before_others = Some(Arc::clone(&self.ground.tables));
        }
        fell && long || apart || before.managers.iter().any(rose)
    }

    /// The election's view of the managers that were met; those whose state is no state are left out.
    pub(super) fn peers(&self, managers: &[(Guid, SmInfo)]) -> Vec<Peer> {
        managers.iter().filter_map(|(guid, info)| self.peer(*guid, info)).collect()
    }

    /// An SM_Key of 0 is one that is not shown: a manager shows it only to whom it knows as master (14.2.5.13).
    fn peer(&self, guid: Guid, info: &SmInfo) -> Option<Peer> {
        let key = info.sm_key.get();
        let trusted = key == 0 || key == self.settings.sm_key;
        Some(Peer { rank: Rank { priority: info.priority(), guid }, state: info.state()?, trusted })
    }

    /// Takes over who was met in a sweep, and says what is odd about them.
    pub(super) fn meet(&mut self, observed: &Observed) -> Verdict {
        self.renew_rank();
        let path = |m: &OtherManager| Some((m.guid, observed.nodes.get(&m.port.node)?.path));
        if self.another_answered_at_our_lid(observed) {
            self.serve_nobody();
        }
        self.others.paths = observed.managers.iter().filter_map(path).collect();
        let verdict = self.election.swept(&self.peers(&said_by(&observed.managers)));
        let oddities = observed.managers.iter().filter_map(|m| self.oddity(observed, m)).collect::<Vec<_>>();
        self.note(oddities);
        verdict
    }

    /// Whether ports may have taken another manager for the one at our LID: what they registered there can't be told from what
    /// they registered with us.
    fn another_answered_at_our_lid(&self, observed: &Observed) -> bool {
        let own = own_end(observed);
        let Some(lid) = observed.fabric.port(own).and_then(|port| port.lid) else { return false };
        let at_our_lid = |end: &PortRef| {
            *end != own && observed.fabric.port(*end).is_some_and(|port| port.lid == Some(lid))
        };
        let mut managers = observed.managers.iter();
        if self.role() == Role::Master {
            return managers.any(|m| m.info.state() == Some(SmState::Master) && at_our_lid(&m.port));
        }
        // Who was master there may have stepped back or ended before we met it.
        let nodes = observed.fabric.nodes();
        nodes
            .flat_map(|(node, facts)| facts.end_ports().map(move |(port, _)| PortRef { node, port }))
            .any(|end| at_our_lid(&end))
    }

    fn oddity(&self, observed: &Observed, manager: &OtherManager) -> Option<String> {
        let name = observed.name(manager.port.node);
        let info = &manager.info;
        let Some(peer) = self.peer(manager.guid, info) else {
            return Some(format!(
                "the subnet manager on {name} is in state {}, which is none: ignored",
                info.state_raw()
            ));
        };
        if !peer.trusted {
            return Some(format!("the subnet manager on {name} has another SM_Key than ours: not obeyed"));
        }
        (info.guid() != manager.guid).then(|| {
            format!("the subnet manager on {name} calls itself {}, its port is {}", info.guid(), manager.guid)
        })
    }

    /// What is to be told of a verdict other than [`Verdict::Lead`].
    pub(super) fn explain(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Wait(guid) => {
                self.fail(format!("waits for the subnet manager on port {guid} to hand over"))
            }
            Verdict::Again => self.wishes.full(),
            Verdict::Lead | Verdict::Yield => {}
        }
    }

    /// Does what the election wants done.
    pub(super) fn carry_out(&mut self, now: Timestamp) {
        let orders = self.election.take_orders();
        if orders.is_empty() {
            return;
        }
        for order in orders {
            match order {
                Order::Stop => self.abandon(now),
                Order::Examine => {
                    self.abandon(now);
                    self.wishes.full();
                }
                Order::Send { control, to, state } => self.control(control, to, state, now),
            }
        }
        self.others.next_poll = self.election.polls().map(|_| now + self.settings.polling_interval);
        if matches!(self.sm_state(), SmState::Standby | SmState::NotActive) {
            self.memory_is_outdated = true;
            self.tell.stand_by();
            if self.snapshot.take().is_some() {
                self.actions.push_back(Action::Withdraw);
            }
        }
    }

    /// Ends what is under way. What was sent and not answered may be done or not, and others may write from now on: no
    /// table counts as known any more.
    fn abandon(&mut self, now: Timestamp) {
        for completion in self.transactions.cancel_all() {
            self.note_stray(&completion, now);
        }
        self.strays.give_up();
        self.stale_requests = 0;
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Applying(apply) => self.take_half(*apply),
            Phase::Confirming(confirmation) => {
                confirmation.applied.into_iter().for_each(|apply| self.take_half(*apply));
            }
            Phase::Planning => self.stale_plans += 1,
            Phase::Idle | Phase::Sweeping(_) | Phase::Multicast(_) => {}
        }
        self.foreign_tables = true;
        self.plan = None;
        self.tell.abandon();
        self.multicast.forget();
        self.close_round(now);
    }

    /// What a plan has done that is not applied any further.
    pub(super) fn take_half(&mut self, apply: Apply) {
        let applied = apply.finish();
        self.ground = applied.ground;
        self.observed = Some(applied.observed);
    }

    /// Set(SMInfo) to another manager. HANDOVER says that nothing of ours is written any more: not before the last copy is gone.
    fn control(&mut self, control: SmControl, to: Guid, state: SmState, now: Timestamp) {
        let Some(path) = self.others.paths.get(&to) else { return };
        let mut info = self.sm_info();
        info.set_state_raw(state.to_wire());
        let request = SmpRequest::set(*path, to, control.to_wire(), &info);
        let request = SmpRequest { m_key: self.keys().of(to), ..request };
        let sent = match control {
            SmControl::Handover => self.strays.hold_until_quiet(request, Token::Control, now),
            _ => Some((request, Token::Control)),
        };
        if let Some((request, token)) = sent {
            self.transactions.submit(request.into_transaction(), token);
        }
    }

    /// A standby with a higher priority than before says so to the master by trap 144, and again until that is repressed: the
    /// master looks at once whether to hand over, and need not find it by chance.
    pub(super) fn tell_priority(&mut self) {
        let (Some(observed), Some(master)) = (&self.observed, self.master_lid()) else { return };
        let (own, polled) = (own_end(observed), self.election.polls());
        let (Some(info), Some(polled)) = (observed.port_info(own), polled) else { return };
        let (Some(lid), SmState::Standby) = (info.lid(), self.sm_state()) else { return };
        let data = LocalChangesData::new(lid, info.capability_mask.get(), LocalChangesData::SM_PRIORITY);
        let kind = observed.fabric.node(own.node).kind;
        let notice = Notice::generic(NoticeType::Informational, u32::from(kind.to_wire()), 144, Some(lid));
        let mut smp = Smp::lid_routed(Method::TRAP, Notice::ID, 0);
        smp.m_key.set(self.keys().of(polled).0);
        let whole = notice.with_data(&data).encode(&mut smp.data);
        debug_assert!(whole, "a notice is 64 bytes");
        let datagram = Datagram { address: Address::smp(master.get()), mad: smp.into_mad() };
        self.transactions.submit(Request::new(datagram, polled.0), Token::Control);
    }

    /// Get(SMInfo) of another manager, with our own SMInfo in it: so the other learns who asks.
    fn ask_manager(&self, path: DirectedPath, guid: Guid) -> SmpRequest {
        let mut request = SmpRequest::get::<SmInfo>(path, guid, 0);
        let whole = self.sm_info().encode(&mut request.data);
        debug_assert!(whole, "SMInfo has 21 bytes");
        // Whoever is asked is a program: it gets to see no key that it need not.
        let key = if self.settings.m_keys.protect < 2 { MKey::NONE } else { self.keys().of(guid) };
        SmpRequest { m_key: key, ..request }
    }

    /// When the next poll is due.
    pub(super) const fn poll_due(&self) -> Option<Timestamp> {
        self.others.next_poll
    }

    /// Polls, when it is time.
    pub(super) fn poll(&mut self, now: Timestamp) {
        let Some(guid) = self.election.polls().filter(|_| self.others.next_poll.is_some_and(|at| at <= now))
        else {
            return;
        };
        self.others.next_poll = Some(now + self.settings.polling_interval);
        self.ask_own_port();
        let Some(path) = self.others.paths.get(&guid).copied() else {
            self.election.polled(guid, None);
            return self.carry_out(now);
        };
        let request = self.ask_manager(path, guid).into_transaction();
        let once = Request { timeout: Some(self.poll_timeout()), retries: Some(0), ..request };
        self.transactions.submit(once, Token::Poll(guid));
    }

    /// How long a poll waits for its answer: half of the interval at most, so that the last one that fails ends well before
    /// another would be due.
    pub(super) fn poll_timeout(&self) -> Duration {
        self.settings.transactions.timeout.min(self.settings.polling_interval / 2)
    }

    /// Who was just found silent by polls.
    pub(super) const fn silent_manager(&self) -> Option<Guid> {
        self.others.silent
    }

    pub(super) fn polled(&mut self, guid: Guid, answer: &Answer, now: Timestamp) {
        let info = answer.attribute::<SmInfo>();
        let peer = info.and_then(|info| self.peer(guid, &info)).filter(|peer| peer.trusted);
        if peer.is_some() {
            self.others.heard = Some(now);
        }
        self.election.polled(guid, peer.map(|peer| peer.state));
        // No longer polled: it has answered none of them.
        self.others.silent = Some(guid).filter(|_| peer.is_none() && self.election.polls() != Some(guid));
        self.carry_out(now);
    }

    /// A plan is made. The managers that were met are asked once more before it is applied.
    pub(super) fn confirm(&mut self, plan: Arc<Plan>, observed: &Observed) {
        let confirmation = self.ask_managers(plan, observed);
        self.phase = Phase::Confirming(Box::new(confirmation));
    }

    /// A plan has been applied for so long that others may have taken us for dead: they are asked again before it goes on.
    pub(super) fn confirm_again(&mut self, apply: Box<Apply>) {
        let confirmation = self.ask_managers(Arc::clone(apply.plan()), &Arc::clone(apply.observed()));
        self.phase = Phase::Confirming(Box::new(Confirmation { applied: Some(apply), ..confirmation }));
    }

    fn ask_managers(&mut self, plan: Arc<Plan>, observed: &Observed) -> Confirmation {
        let managers = said_by(&observed.managers);
        let mut open = self.ask_own_link(observed);
        for (guid, _) in &managers {
            if let Some(path) = self.others.paths.get(guid) {
                let request = self.ask_manager(*path, *guid);
                self.transactions.submit(request.into_transaction(), Token::Confirm(*guid));
                open += 1;
            }
        }
        for (guid, (path, asked)) in std::mem::take(&mut self.others.askers) {
            let is_met = managers.iter().any(|(met, _)| *met == guid);
            let is_missed = asked < self.round.walked_since() && is_walked(observed, &path);
            if !is_met && !is_missed {
                self.others.paths.insert(guid, path);
                let request = Request { retries: Some(1), ..self.ask_manager(path, guid).into_transaction() };
                self.transactions.submit(request, Token::Confirm(guid));
                open += 1;
            }
        }
        Confirmation { plan, managers, open, own_link_fell: false, applied: None }
    }

    /// Reads our own port once more, where it is an adapter's that carried data when it was read. How many requests that makes.
    fn ask_own_link(&mut self, observed: &Observed) -> usize {
        let local = observed.local;
        let Some(node) = observed.fabric.get(local.node).filter(|node| !node.is_switch()) else { return 0 };
        if observed.local_state().is_none_or(|state| state < PortState::Armed) {
            return 0;
        }
        let request = SmpRequest::get::<PortInfo>(DirectedPath::LOCAL, node.guid, local.port.0.into());
        let request = request.with_key(self.keys(), observed);
        self.transactions.submit(request.into_transaction(), Token::ConfirmLink);
        1
    }

    /// Set(SMInfo) from another manager.
    pub(super) fn controlled(&mut self, datagram: &Datagram, now: Timestamp) {
        let smp = Smp::from_mad(datagram.mad);
        let control = SmControl::from_wire(smp.header.attribute_modifier.get());
        let info = SmInfo::decode(&smp.data);
        let sender = info.and_then(|info| self.peer(info.guid(), &info));
        let legal = control.zip(sender).is_some_and(|(control, sender)| {
            if let Some(path) = way_back(&smp) {
                self.others.paths.entry(sender.rank.guid).or_insert(path);
            }
            self.election.controlled(control, sender)
        });
        if legal {
            self.carry_out(now);
        } else {
            let modifier = smp.header.attribute_modifier.get();
            let guid = info.map(|info| info.guid().to_string());
            let why = self.why_refused(control, sender);
            tracing::warn!(from = guid, modifier, role = ?self.role(), "a Set(SMInfo) is refused: {why}");
        }
        let mut info = self.sm_info();
        info.sm_key.set(self.sm_key_for(datagram));
        let status = if legal { Status::OK } else { Status::INVALID_FIELD };
        self.reply(datagram, status, |data| info.encode(data));
    }

    /// What is wrong with a Set(SMInfo) that is not followed.
    const fn why_refused(&self, control: Option<SmControl>, sender: Option<Peer>) -> &'static str {
        match (control, sender) {
            (None, _) => "there is no such modifier",
            (_, None) => "its sender says that it is in a state which is none",
            (_, Some(sender)) if !sender.trusted => "its sender has another SM_Key than ours",
            (_, Some(sender)) if sender.rank.guid.0 == self.own.guid.0 => "it comes under our own GUID",
            _ => "nobody in the state that its sender claims may ask this of us in ours",
        }
    }

    /// The same tables with a picture in which something was read anew.
    pub(super) fn republish(&mut self) {
        let (Some(old), Some(observed)) = (&self.snapshot, &self.observed) else { return };
        if matches!(self.phase, Phase::Sweeping(_)) {
            return; // the sweep's own end publishes
        }
        let snapshot = Snapshot::new(
            old.generation + 1,
            Arc::clone(observed),
            Arc::clone(&old.graph),
            Arc::clone(&old.routes),
            old.sm,
        );
        let snapshot = Arc::new(snapshot);
        self.snapshot = Some(Arc::clone(&snapshot));
        self.actions.push_back(Action::Publish(snapshot));
    }
}

/// What the managers that were met said of themselves.
fn said_by(managers: &[OtherManager]) -> Vec<(Guid, SmInfo)> {
    managers.iter().map(|manager| (manager.guid, manager.info)).collect()
}

/// Whether a route ends at a port that was read, where a walk meets who shows itself, or where there is no link any more. Who
/// asked from there before the walk began, and was not met, has ended or is silent; asking it once more would keep the
/// fabric without a master for as long as all tries of a request take.
fn is_walked(observed: &Observed, path: &DirectedPath) -> bool {
    let mut at = observed.local;
    for exit in path.ports() {
        let exit = PortRef { node: at.node, port: PortNum(*exit) };
        match observed.fabric.peer(exit) {
            Some(peer) => at = peer,
            // What is in the way and can't be walked past has a link.
            None => {
                let state = observed.port_info(exit).and_then(PortInfo::port_state);
                return state == Some(PortState::Down);
            }
        }
    }
    let is_switch = observed.fabric.get(at.node).is_some_and(|node| node.is_switch());
    let end = if is_switch { PortRef { port: PortNum::MANAGEMENT, ..at } } else { at };
    observed.port_info(end).is_some()
}

/// The directed route by which a request came, the other way round.
fn way_back(smp: &Smp) -> Option<DirectedPath> {
    let hops = usize::from(smp.header.hop_count);
    if smp.header.mgmt_class() != mad::wire::MgmtClass::SUBN_DR || hops == 0 {
        return None;
    }
    let ports: Vec<u8> = smp.return_path.get(1..=hops)?.iter().rev().copied().collect();
    DirectedPath::new(&ports).ok()
}
