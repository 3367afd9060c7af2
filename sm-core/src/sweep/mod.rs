//! Discovery: walks the fabric breadth-first by directed route and yields what every node said of itself.
//!
//! Sans-IO. [`Sweep::next_request`] gives requests, [`Sweep::answer`] takes their ends, in any order and any number at a time;
//! [`Sweep::is_done`] says when [`Sweep::finish`] may be called. Two kinds:
//! - *full*, from nothing: one NodeInfo for each link (the far node's LocalPortNum settles both ends), one
//!   NodeDescription for each node, one SwitchInfo for each switch, one PortInfo for each port that is linked or belongs
//!   to a switch; of switches whose tables are in use and unknown, those tables besides (B20);
//! - a *look* at a known fabric: one SwitchInfo for each switch; where PortStateChange says so, that switch's ports are
//!   read again and what is behind new links is walked. Everything else is kept. An idle look costs one Get for a switch.
//!
//! Nothing is followed for ever: a node is entered once, by GUID; routes end at 63 hops; a node that stops answering is
//! left after two unanswered questions (B05).

mod attributes;
mod keys;
mod look;
mod nodes;
mod outcome;
mod tables;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mad::types::{DirectedPath, Guid, MKey, PortNum};
use mad::wire::Attribute;
use mad::wire::smp::{LinearForwardingTable, NodeDescription, NodeInfo, PortInfo, SmInfo, SwitchInfo};
use routing::fabric::{NodeId, PortRef};

use crate::aliases::AliasTable;
use crate::keys::KeyRing;
use crate::observed::{Finding, FindingKind, Observed, PortTable};
use crate::plan::own_end;
use crate::request::{Answer, SmpRequest};

pub use outcome::{FoundTable, SweepError, SweepResult};
pub use tables::PKeyReading;
pub(crate) use tables::has_lanes;

/// What a sweep does besides walking.
#[derive(Clone, Debug, Default)]
pub struct SweepSettings {
    /// Whether the tables of switches that forward already are read.
    pub read_tables: bool,
    /// Switches whose tables are known and need no reading.
    pub known_tables: HashSet<Guid>,
    /// Whose P_Key tables are read.
    pub pkeys: PKeyReading,
    /// The alias GUIDs that ports are to hold: their blocks are read.
    pub aliases: Arc<AliasTable>,
    /// Nodes whose SL-to-VL and VL arbitration tables a look reads.
    pub qos_of: BTreeSet<Guid>,
    /// Whether other subnet managers are asked for their SMInfo.
    pub ask_managers: bool,
    /// PortGUID of a manager that has just left all its polls unanswered: it is asked three times in quick succession, and no more.
    pub silent_manager: Option<Guid>,
    /// Our own SMInfo, told to the managers that are asked: so they learn of us, though nothing else may tell them.
    pub introduction: Option<SmInfo>,
    /// Whether PortStateChange is cleared before a switch's ports are read, so that no change is lost in between (B04).
    /// The only Set of a sweep; for masters.
    pub acknowledge_changes: bool,
    /// M_Keys, as far as they are known.
    pub keys: Arc<KeyRing>,
    /// PortGUID of our own port, where it is known: its key may be needed before it can tell.
    pub own: Guid,
    /// Ports that were raised since the last sweep. Where PortStateChange is set on their switch, the far end is read too: it
    /// may have been reset after it was configured and before this end was raised, and this end shows nothing of it.
    pub raised: HashSet<Place>,
    /// Where this sweep's questions are numbered from: above those of any sweep before.
    pub first_serial: u64,
}

/// One end of a cable by GUID: stays right when a node goes and another takes its place in the graph.
pub type Place = (Guid, PortNum);

/// What was asked; comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    what: What,
    /// Asked for the second time in this sweep.
    again: bool,
    /// Tells this question from the same one asked by another route.
    serial: u64,
    /// The key that it carried.
    key: MKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Who is at the end of this port's cable; `None`: ourselves.
    Node(Option<Place>),
    /// Who is still there, where `port` of `guid` was met before it was met again at `new`.
    Recheck {
        old: Place,
        new: Place,
        guid: Guid,
        port: PortNum,
    },
    Description(Guid),
    SwitchInfo(Guid),
    Acknowledge(Guid),
    Port {
        guid: Guid,
        port: PortNum,
        extended: bool,
    },
    Table {
        guid: Guid,
        block: u16,
    },
    Manager(Place),
    /// Whether a manager runs behind this port, where a node says that it is ours.
    Twin(Place),
    PortTable {
        place: Place,
        table: PortTable,
    },
}

impl What {
    /// The node that is asked, where it is known.
    const fn node(&self) -> Option<Guid> {
        match self {
            Self::Node(_) | Self::Recheck { .. } | Self::Twin(_) => None,
            Self::Description(guid)
            | Self::SwitchInfo(guid)
            | Self::Acknowledge(guid)
            | Self::Port { guid, .. }
            | Self::Table { guid, .. }
            | Self::Manager((guid, _))
            | Self::PortTable { place: (guid, _), .. } => Some(*guid),
        }
    }
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Nodes met.
    pub nodes: usize,
    /// Requests that ended.
    pub answered: usize,
    /// Requests in flight or waiting.
    pub open: usize,
}

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    settings: SweepSettings,
    /// `None` until our own node answered.
    observed: Option<Arc<Observed>>,
    queue: VecDeque<Ask>,
    /// Questions under way by serial, with the routes that they took.
    outstanding: HashMap<u64, (Ask, DirectedPath)>,
    next_serial: u64,
    /// Questions given up for a better route, whose ends have not come yet.
    given_up: usize,
    answered: usize,
    /// Unanswered questions of each node.
    silences: HashMap<Guid, u32>,
    port_guids: HashMap<Guid, Place>,
    tables: BTreeMap<Guid, FoundTable>,
    /// Port tables asked for in this sweep.
    asked_tables: HashSet<(Place, PortTable)>,
    /// Ports that refuse bit 31 of PortInfo's modifier although their capability mask promises it.
    no_extended: HashSet<Place>,
    /// What is known of keys by now.
    keys: Arc<KeyRing>,
    /// Keys that a port hid its own from, and those to which nobody behind a port answered.
    tried: HashMap<Guid, Vec<MKey>>,
    tried_behind: HashMap<Option<Place>, Vec<MKey>>,
    look: Option<look::Look>,
    /// Far ends of links that went, to be read when routes to them were found again.
    orphaned: Vec<Place>,
    /// Links that this look has walked, both ways round.
    confirmed: HashSet<(Place, Place)>,
    look_again: bool,
    /// Whether a manager runs on another node with a GUID of our own.
    own_twin: bool,
    findings: Vec<Finding>,
    failure: Option<SweepError>,
}

/// How long the first of the questions to a manager that polls found silent waits.
const QUICKLY: Duration = Duration::from_millis(100);

/// More findings than these are not worth reading, and a hostile fabric must not fill the memory.
const MAX_FINDINGS: usize = 4096;

impl Sweep {
    /// A walk from nothing.
    pub fn full(settings: SweepSettings) -> Self {
        let mut sweep = Self::new(settings, None);
        sweep.ask(What::Node(None));
        sweep
    }

    fn new(settings: SweepSettings, observed: Option<Arc<Observed>>) -> Self {
        Self {
            observed,
            queue: VecDeque::new(),
            outstanding: HashMap::new(),
            next_serial: settings.first_serial,
            given_up: 0,
            keys: Arc::clone(&settings.keys),
            tried: HashMap::new(),
            tried_behind: HashMap::new(),
            settings,
            answered: 0,
            silences: HashMap::new(),
            port_guids: HashMap::new(),
            tables: BTreeMap::new(),
            asked_tables: HashSet::new(),
            no_extended: HashSet::new(),
            look: None,
            orphaned: Vec::new(),
            confirmed: HashSet::new(),
            look_again: false,
            own_twin: false,
            findings: Vec::new(),
            failure: None,
        }
    }

    /// The next request; `None` when nothing can be asked before an answer comes, or at all.
    pub fn next_request(&mut self) -> Option<(SmpRequest, Ask)> {
        self.leave_dead_routes();
        loop {
            while let Some(mut ask) = self.queue.pop_front() {
                if let Some(request) = self.request(&ask.what) {
                    let request = self.lock_up(&ask.what, request);
                    ask.key = request.m_key;
                    ask.serial = self.next_serial;
                    self.next_serial += 1;
                    self.outstanding.insert(ask.serial, (ask, request.path));
                    return Some((request, ask));
                }
            }
            if !self.outstanding.is_empty() || !self.next_stage() {
                return None;
            }
        }
    }

    /// Takes the end of a request; one that was given up since, for a better route, means nothing any more. False: the
    /// request was not of this sweep.
    pub fn answer(&mut self, ask: Ask, answer: &Answer) -> bool {
        if ask.serial < self.settings.first_serial {
            return false;
        }
        if self.outstanding.remove(&ask.serial).is_none() {
            self.given_up = self.given_up.saturating_sub(1);
            return true;
        }
        self.take(ask, answer);
        true
    }

    /// Questions given up for a better route, whose ends are still to come when the sweep is done.
    pub const fn given_up_requests(&self) -> usize {
        self.given_up
    }

    fn take(&mut self, ask: Ask, answer: &Answer) {
        self.answered += 1;
        if *answer == Answer::Silent {
            if self.try_another_key(ask) || self.try_another_key_behind(ask) {
                return;
            }
            let briefly = match ask.what {
                What::SwitchInfo(guid) => self.is_first_glance(guid),
                What::Manager(place) => self.is_silent_manager(place),
                _ => false,
            };
            if !ask.again && !briefly {
                self.queue.push_back(Ask { again: true, ..ask });
                return;
            }
            if let Some(guid) = ask.what.node() {
                *self.silences.entry(guid).or_default() += 1;
            }
        }
        match ask.what {
            What::Node(from) => self.node_answered(from, ask.key, answer),
            What::Recheck { old, new, guid, port } => self.rechecked(old, new, (guid, port), answer),
            What::Description(guid) => self.description_answered(guid, answer),
            What::SwitchInfo(guid) => self.switch_info_answered(guid, answer),
            What::Acknowledge(guid) => self.acknowledged(guid, answer),
            What::Port { guid, port, extended } => self.port_answered((guid, port), extended, &ask, answer),
            What::Table { guid, block } => self.table_answered(guid, block, answer),
            What::Manager(place) => self.manager_answered(place, answer),
            What::Twin(_) => self.own_twin |= answer.attribute::<SmInfo>().is_some(),
            What::PortTable { place, table } => self.port_table_answered(place, table, answer),
        }
    }

    /// Whether nothing is in flight and nothing is left to ask. Call [`Sweep::next_request`] until it gives `None` before.
    pub fn is_done(&self) -> bool {
        self.outstanding.is_empty() && self.queue.is_empty()
    }

    /// How far it is.
    pub fn progress(&self) -> SweepProgress {
        SweepProgress {
            nodes: self.observed.as_ref().map_or(0, |o| o.fabric.node_count()),
            answered: self.answered,
            open: self.outstanding.len() + self.queue.len(),
        }
    }

    fn ask(&mut self, what: What) {
        self.queue.push_back(Ask { what, again: false, serial: 0, key: MKey::NONE });
    }

    /// Whether the questions to this node are over: two went unanswered.
    fn given_up(&self, guid: Guid) -> bool {
        self.silences.get(&guid).is_some_and(|n| *n >= 2)
    }

    /// What to send, unless it has become needless since it was queued.
    fn request(&mut self, what: &What) -> Option<SmpRequest> {
        if what.node().is_some_and(|guid| self.given_up(guid)) {
            return None;
        }
        let none = Guid::NONE;
        match *what {
            What::Node(None) => Some(SmpRequest::get::<NodeInfo>(DirectedPath::LOCAL, none, 0)),
            What::Node(Some(place)) => {
                let end = self.end(place)?;
                if self.observed()?.fabric.peer(end).is_some() {
                    return None;
                }
                let path = self.path_beyond(end)?;
                Some(SmpRequest::get::<NodeInfo>(path, none, 0))
            }
            What::Twin(place) => {
                let end = self.end(place)?;
                Some(SmpRequest::get::<SmInfo>(self.path_beyond(end)?, none, 0))
            }
            What::Recheck { old, .. } => {
                let end = self.end(old)?;
                Some(SmpRequest::get::<NodeInfo>(self.path_beyond(end)?, none, 0))
            }
            What::Description(guid) => Some(SmpRequest::get::<NodeDescription>(self.path(guid)?, guid, 0)),
            What::SwitchInfo(guid) => {
                let request = SmpRequest::get::<SwitchInfo>(self.path(guid)?, guid, 0);
                Some(SmpRequest { retries: self.is_first_glance(guid).then_some(0), ..request })
            }
            What::Acknowledge(guid) => {
                let mut info = self.observed()?.nodes.get(&self.id(guid)?)?.switch_info?;
                info.set_port_state_change(1);
                Some(SmpRequest::set(self.path(guid)?, guid, 0, &info))
            }
            What::Port { guid, port, extended } => {
                let modifier =
                    u32::from(port.0) | if extended { PortInfo::MODIFIER_EXTENDED_SPEEDS } else { 0 };
                Some(SmpRequest::get::<PortInfo>(self.path(guid)?, guid, modifier))
            }
            What::Table { guid, block } => {
                Some(SmpRequest::get::<LinearForwardingTable>(self.path(guid)?, guid, u32::from(block)))
            }
            What::Manager(place @ (guid, _)) => {
                let mut request = SmpRequest::get::<SmInfo>(self.path(guid)?, guid, 0);
                if self.is_silent_manager(place) {
                    (request.retries, request.timeout) = (Some(2), Some(QUICKLY));
                }
                if let Some(mut info) = self.settings.introduction {
                    // Not known when the first sweep begins.
                    info.guid.set(self.own_guid().unwrap_or_default().0);
                    let whole = info.encode(&mut request.data);
                    debug_assert!(whole, "SMInfo has 21 bytes");
                }
                Some(request)
            }
            What::PortTable { place, table } => self.port_table_request(place, table),
        }
    }

    /// The route over a port, or a finding that it would be too long.
    fn path_beyond(&mut self, end: PortRef) -> Option<DirectedPath> {
        let node = self.observed()?.nodes.get(&end.node)?;
        let path = node.path;
        if let Ok(longer) = path.extend(end.port) {
            return Some(longer);
        }
        let text = format!("what is behind {} is more than 63 hops away", self.place_name(end));
        self.finding(FindingKind::TooFar, path, text);
        None
    }

    /// PortGUID of our own port, once our node has told it.
    pub(crate) fn own_guid(&self) -> Option<Guid> {
        let observed = self.observed()?;
        observed.fabric.port(own_end(observed)).map(|port| port.guid).filter(|guid| guid.is_some())
    }

    fn observed(&self) -> Option<&Observed> {
        self.observed.as_deref()
    }

    /// The picture, to change; copied when somebody else still holds it.
    fn observed_mut(&mut self) -> Option<&mut Observed> {
        self.observed.as_mut().map(Arc::make_mut)
    }

    fn id(&self, guid: Guid) -> Option<NodeId> {
        self.observed()?.fabric.find(guid)
    }

    fn end(&self, (guid, port): Place) -> Option<PortRef> {
        Some(PortRef { node: self.id(guid)?, port })
    }

    fn place(&self, end: PortRef) -> Option<Place> {
        Some((self.observed()?.fabric.get(end.node)?.guid, end.port))
    }

    fn path(&self, guid: Guid) -> Option<DirectedPath> {
        Some(self.observed()?.nodes.get(&self.id(guid)?)?.path)
    }

    /// Whether polls have just found the manager on this port silent. One that still shows itself was stopped, or its host has
    /// crashed; or the polls were lost.
    fn is_silent_manager(&self, place: Place) -> bool {
        let guid = || Some(self.observed()?.fabric.port(self.end(place)?)?.guid);
        self.settings.silent_manager.is_some() && self.settings.silent_manager == guid()
    }

    fn place_name(&self, end: PortRef) -> String {
        self.observed().map_or_else(String::new, |o| format!("port {} of {}", end.port, o.name(end.node)))
    }

    /// A GUID of this node is there twice, the second time behind `end`. Where that is our own, a manager may run there.
    fn met_twice(&mut self, guid: Guid, end: PortRef) {
        let own = self.observed().and_then(|o| o.fabric.get(o.local.node)).map(|node| node.guid);
        if let Some(place) = self.place(end).filter(|_| own == Some(guid)) {
            self.ask(What::Twin(place));
        }
    }

    /// Notes a finding, once.
    fn finding(&mut self, kind: FindingKind, path: DirectedPath, text: String) {
        let finding = Finding { kind, path, text };
        if self.findings.len() < MAX_FINDINGS && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Removes a node of which too little is known to work with it; its neighbours' ports are left dangling.
    fn refuse_node(&mut self, guid: Guid, kind: FindingKind, reason: &str) {
        let Some(id) = self.id(guid) else { return };
        let Some(observed) = self.observed_mut() else { return };
        let path = observed.nodes.get(&id).map_or(DirectedPath::LOCAL, |n| n.path);
        let text = format!("{} at route {path}: {reason}; left out", observed.name(id));
        if id == observed.local.node {
            self.failure = Some(SweepError::LocalNode(reason.to_owned()));
        } else {
            observed.remove_node(id);
            self.port_guids.retain(|_, (node, _)| *node != guid);
        }
        self.finding(kind, path, text);
    }
}

/// Sets used while a sweep is closed.
type Guids = BTreeSet<Guid>;
