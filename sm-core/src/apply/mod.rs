//! Brings the fabric from what it is to what it shall be: `Desired - Observed` as ordered steps, each a batch of Sets.
//!
//! Nothing that is right already is sent, and everything counts as right only when a reply said so: the picture is brought
//! up to date from the replies to the Sets. A Set that is refused or not answered changes nothing in the picture (B07),
//! and what is blamed for it is the smallest thing that it concerns (B26).
//!
//! The order, with a barrier between steps:
//! 1. SwitchInfo: PortStateChange is cleared before anything is configured, so that a restart shows at the next look (B04);
//!    where that was set, ports that were down are read once more, and after a long sweep the far ends of links are asked once
//!    more who they are, since a change before the clearing shows nowhere else and Sets would go astray;
//!    then SL-to-VL and VL arbitration tables, where the routes need more than one virtual lane or the operator asks for it;
//! 2. tables of switches over which nothing can flow yet; links that are to be raised are asked again where that took long;
//!    blocks of switches in service of which nothing is known are read, and emptied where they are not as they shall be: the
//!    order of writes was proved for empty ones (B29);
//! 3. ports 0 and links between switches: settings and ARMED in one Set; 4. those links ACTIVE;
//! 5. tables of switches in service, in the order that the verifier proved free of loops and cuts; what it knew nothing
//!    of after that, the block with the subnet manager's own LID last (B29);
//! 6. LinearFDBTop where raising it earlier would have put unknown entries in force;
//! 7. P_Key tables of adapters and of the switch ports that face them, and alias GUIDs;
//! 8. links of hosts: settings and ARMED; 9. ACTIVE, with ClientReregister (B72); 10. M_Keys.
//!
//! No link is raised on a switch whose SwitchInfo or table was not confirmed in this round (B04).

mod arbitration;
mod empty;
mod jobs;
mod keys;
mod lanes;
mod links;
mod port_set;
mod preview;
mod quirks;
mod report;
mod steps;
mod tables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mad::types::{Guid, PortNum, PortState, Timestamp};
use mad::wire::smp::PortInfo;
use routing::fabric::NodeId;

use crate::keys::KeyRing;
use crate::observed::{Observed, ObservedNode};
use crate::plan::Plan;
use crate::plan::fields::{FieldSet, PortField};
use crate::plan::ports::PortPlan;
use crate::request::{Answer, SmpRequest};
pub use jobs::Job;
use links::Verification;
pub(crate) use port_set::reregister_request;
pub use preview::{PlannedSet, preview};
pub use quirks::Quirks;
pub use report::{Failure, NotKept, SetCounts};
use steps::Step;
pub use tables::{Block, KnownTables};

/// More reregistrations than this at one time are spread over time.
const MANY_TO_TELL: usize = 256;

/// What apply starts from, and hands back changed by the replies.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// Tables as far as they are known.
    pub tables: Arc<KnownTables>,
    /// Fields that ports don't keep.
    pub quirks: Quirks,
    /// M_Keys.
    pub keys: Arc<KeyRing>,
}

/// A plan being applied.
#[derive(Debug)]
pub struct Apply {
    plan: Arc<Plan>,
    observed: Arc<Observed>,
    ground: Ground,
    steps: VecDeque<Step>,
    queue: VecDeque<Job>,
    outstanding: usize,
    answered: usize,
    /// Switches of which SwitchInfo or a block was not confirmed.
    unconfirmed: BTreeSet<Guid>,
    /// Blocks of which some switch in service holds what is not known: the proven order ends there, for these LIDs.
    stalled: BTreeSet<u16>,
    /// What was asked of blocks that are being read again, by switch and block.
    doubted: BTreeMap<(u32, u16), Block>,
    failures: Vec<Failure>,
    not_kept: Vec<NotKept>,
    counts: SetCounts,
    /// Port GUIDs that did not take their LID.
    stuck: BTreeSet<Guid>,
    /// Port GUIDs whose ClientReregister was confirmed.
    reregistered: BTreeSet<Guid>,
    /// Port GUIDs that are to be told to register anew and are not confirmed.
    untold: BTreeSet<Guid>,
    /// Whether there are more ports in service to be told than should all come at once (B72).
    many_to_tell: bool,
    /// Switches whose PortStateChange is set and was not cleared before their ports were read.
    read_before: BTreeSet<NodeId>,
    changed_meanwhile: Vec<(Guid, PortNum)>,
    /// Far ends of links that are asked before links are raised and tables written.
    verification: Verification,
    /// Whether a cable was found to lead elsewhere.
    moved: bool,
    /// Whether it is known, as of now, that nobody else writes.
    leads: bool,
    /// Ports of switches that were told to go to ARMED or ACTIVE.
    raised: BTreeSet<(Guid, PortNum)>,
}

/// How applying ended.
#[derive(Debug)]
pub struct Applied {
    /// The picture with what the replies confirmed.
    pub observed: Arc<Observed>,
    /// Tables and quirks, the same.
    pub ground: Ground,
    /// What was not confirmed.
    pub failures: Vec<Failure>,
    /// Fields that ports were seen not to keep, for the first time.
    pub not_kept: Vec<NotKept>,
    /// Sets sent.
    pub counts: SetCounts,
    /// Port GUIDs that did not take their LID (B15).
    pub stuck: BTreeSet<Guid>,
    /// Port GUIDs whose ClientReregister was confirmed.
    pub reregistered: BTreeSet<Guid>,
    /// Port GUIDs that have to be told to register anew by a Set of their own: too many for all at once, or not confirmed.
    pub untold: BTreeSet<Guid>,
    /// Ports to be read again: read as down, and up when PortStateChange had been cleared; or at an end of a link that fell
    /// meanwhile.
    pub changed_meanwhile: Vec<(Guid, PortNum)>,
    /// Whether a cable leads elsewhere than the picture says: the fabric has to be walked from nothing.
    pub moved: bool,
    /// Ports of switches that were told to go to ARMED or ACTIVE.
    pub raised: BTreeSet<(Guid, PortNum)>,
}

impl Apply {
    /// Starts. `observed` is the picture that the plan was made from.
    pub fn new(plan: Arc<Plan>, observed: Arc<Observed>, ground: Ground) -> Self {
        let steps = steps::all(&plan);
        let in_service =
            |end| observed.port_info(end).and_then(PortInfo::port_state) == Some(PortState::Active);
        let to_tell = plan.ports.iter().filter(|p| p.reregister && in_service(p.end)).count();
        let many_to_tell = to_tell > MANY_TO_TELL;
        let waits = |p: &&PortPlan| many_to_tell && p.reregister && in_service(p.end);
        let untold = plan.ports.iter().filter(waits).filter_map(|p| observed.fabric.port(p.end));
        let untold = untold.map(|port| port.guid).collect();
        let changed = |n: &ObservedNode| n.switch_info.is_some_and(|info| info.port_state_change() != 0);
        let read_before = observed.nodes.iter().filter(|(_, n)| changed(n)).map(|(id, _)| *id).collect();
        Self {
            plan,
            observed,
            ground,
            steps,
            queue: VecDeque::new(),
            outstanding: 0,
            answered: 0,
            unconfirmed: BTreeSet::new(),
            stalled: BTreeSet::new(),
            doubted: BTreeMap::new(),
            failures: Vec::new(),
            not_kept: Vec::new(),
            counts: SetCounts::default(),
            stuck: BTreeSet::new(),
            reregistered: BTreeSet::new(),
            untold,
            many_to_tell,
            read_before,
            changed_meanwhile: Vec::new(),
            verification: Verification::default(),
            moved: false,
            leads: true,
            raised: BTreeSet::new(),
        }
    }

    /// Has far ends of links asked who they are before links are raised and anything is written, where cables may have been
    /// moved since `pictured`, when the look at the fabric began.
    #[must_use]
    pub fn verifying_links(mut self, pictured: Timestamp) -> Self {
        self.verification = Verification::of(pictured);
        self
    }

    /// What time it is. Call it before [`Apply::next_request`] and [`Apply::answer`].
    pub const fn at(&mut self, now: Timestamp) {
        self.verification.at(now);
    }

    /// Whether nothing is due at a port but a new MasterSMLID, which it is told with the reregistration, in its turn: told
    /// before, its clients would come all at once (B72).
    fn told_later(&self, plan: &PortPlan) -> bool {
        let Some(info) = self.observed.port_info(plan.end) else { return false };
        let only = FieldSet::EMPTY.with(PortField::MasterSmLid);
        let difference = FieldSet::difference(info, &plan.desired).without(FieldSet::KEYS);
        self.many_to_tell
            && plan.reregister
            && info.port_state() == Some(PortState::Active)
            && difference == only
    }

    /// The next request; `None` when nothing can be sent before an answer comes, or at all.
    pub fn next_request(&mut self) -> Option<(SmpRequest, Job)> {
        loop {
            while let Some(job) = self.queue.pop_front() {
                let request = self.request(&job).filter(|request| !self.is_shut(request));
                if let Some(request) = request {
                    self.outstanding += 1;
                    return Some((request, job));
                }
            }
            if self.outstanding > 0 {
                return None;
            }
            self.verify_again();
            let step = self.steps.pop_front()?;
            self.queue = steps::jobs(self, step).into();
            if step.writes_tables() && !self.leads && !self.queue.is_empty() {
                self.queue.clear();
                self.steps.push_front(step);
                return None;
            }
        }
    }

    /// Before tables are written in a later step: whether it is known that nobody else has written meanwhile.
    pub const fn knows_to_lead(&mut self, leads: bool) {
        self.leads = leads;
    }

    /// Whether nothing is sent before [`Apply::knows_to_lead`] has said that we lead. Call [`Apply::next_request`] until it
    /// gives `None` before.
    pub fn waits_to_lead(&self) -> bool {
        !self.leads && !self.is_done() && self.outstanding == 0 && self.queue.is_empty()
    }

    /// Takes the end of a request.
    pub fn answer(&mut self, job: Job, answer: &Answer) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.answered += 1;
        self.job_answered(job, answer);
    }

    /// Whether nothing is in flight and no step is left. Call [`Apply::next_request`] until it gives `None` before.
    pub fn is_done(&self) -> bool {
        self.outstanding == 0 && self.queue.is_empty() && self.steps.is_empty()
    }

    /// Requests that ended, and those known to be open in this step.
    pub fn progress(&self) -> (usize, usize) {
        (self.answered, self.outstanding + self.queue.len())
    }

    /// The plan.
    pub const fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The picture as it is confirmed by now.
    pub const fn observed(&self) -> &Arc<Observed> {
        &self.observed
    }

    /// What is known of keys by now.
    pub const fn keys(&self) -> &Arc<KeyRing> {
        &self.ground.keys
    }

    /// Gives up what is not sent yet; requests in flight still have to be answered before it is done.
    pub fn stop(&mut self) {
        self.queue.clear();
        self.steps.clear();
    }

    /// Closes it when it is done.
    pub fn finish(self) -> Applied {
        Applied {
            observed: self.observed,
            ground: self.ground,
            failures: self.failures,
            not_kept: self.not_kept,
            counts: self.counts,
            stuck: self.stuck,
            reregistered: self.reregistered,
            untold: self.untold,
            changed_meanwhile: self.changed_meanwhile,
            moved: self.moved,
            raised: self.raised,
        }
    }
}
