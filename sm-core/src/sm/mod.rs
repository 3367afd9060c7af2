//! The subnet manager as a state machine: one owner of everything that changes.
//!
//! Sans-IO: [`Sm::handle`] takes events with the time at which they came, [`Sm::poll_action`] gives what is to be done
//! until there is nothing more, [`Sm::deadline`] says when to come back with [`Event::Time`] although nothing happened.
//!
//! ```text
//!            +------------------------- wish or interval --------------------------+
//!            v                                                                     |
//!        sweeping ---- nothing changed, nothing open ---------------------------> idle
//!            |  another manager is in charge -> STANDBY (polls it)                 ^
//!            v                                                                     |
//!        planning (a worker; SMInfo and traps are answered meanwhile)              |
//!            v                                                                     |
//!        confirming (the other managers are asked once more; from here on MASTER)  |
//!            v                                                                     |
//!        applying -- confirmed: snapshot, LIDs saved -- not all: look again soon --+
//! ```
//!
//! One round is brought to its end before the next begins; what happens meanwhile leaves a mark ([`wishes`]).

mod balance;
mod cut;
mod election;
mod event;
mod incoming;
mod inline;
mod keys;
mod memory;
mod multicast;
mod pace;
mod report;
mod role;
mod rounds;
mod strays;
mod tell;
mod watch;
mod wishes;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use mad::transactions::{Completion, TransactionStats, Transactions};
use mad::types::{Guid, Lid, PortNum, Timestamp};

use crate::aliases::AliasTable;
use crate::apply::{Apply, Ground, Job, KnownTables};
use crate::keys::KeyRing;
use crate::multicast::{MftJob, MulticastApply};
use crate::observed::Observed;
use crate::plan::Plan;
use crate::plan::lids::LidMemory;
use crate::request::Answer;
use crate::settings::SmSettings;
use crate::snapshot::Snapshot;
use crate::store::Restored;
use crate::sweep::{Ask, Sweep, SweepProgress};
use balance::Balance;
use election::{Election, Rank};
pub use event::{Action, Event};
pub use inline::Inline;
use keys::KeyNotes;
use multicast::MulticastState;
pub use pace::SaBacklog;
pub use report::{MadCounts, ManagerSeen, Report, Role, StageSeconds};
use role::{Confirmation, Others};
use rounds::Round;
use strays::Strays;
use tell::Tell;
pub use tell::Told;
use watch::Watch;
use wishes::Wishes;

/// Whom an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Sweep(Ask),
    Apply(Job),
    Multicast(MftJob),
    /// NodeDescription of a renamed node.
    Renamed(Guid),
    /// ClientReregister of a port in service.
    Tell {
        guid: Guid,
        tries: u32,
        /// Which registrations the SA had when it was told.
        era: u32,
    },
    /// SMInfo of the manager that is polled.
    Poll(Guid),
    /// SMInfo of a manager, right before a plan is applied.
    Confirm(Guid),
    /// PortInfo of our own port, right before a plan is applied.
    ConfirmLink,
    /// Counters of a switch port.
    Counter(Guid, PortNum),
    /// PortInfo of our own port.
    OwnPort,
    /// HANDOVER to a higher manager, or ACKNOWLEDGE of one that came to us.
    Control,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Sweeping(Box<Sweep>),
    /// The plan is being made elsewhere.
    Planning,
    /// The other managers are asked once more before the plan is applied.
    Confirming(Box<Confirmation>),
    Applying(Box<Apply>),
    /// Multicast tables are sent.
    Multicast(Box<MulticastApply>),
}

/// Who we are on the fabric, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Own {
    guid: Guid,
    lid: Option<Lid>,
}

/// Where the machine is, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing to do.
    Idle,
    /// The fabric is being walked.
    Sweeping(SweepProgress),
    /// LIDs and routes are computed.
    Planning,
    /// Sets are sent.
    Applying {
        /// Sets that ended.
        done: usize,
        /// Sets open in the present step.
        open: usize,
    },
}

/// The state machine.
#[derive(Debug)]
pub struct Sm {
    settings: SmSettings,
    election: Election,
    others: Others,
    own: Own,
    phase: Phase,
    transactions: Transactions<Token>,
    strays: Strays,
    /// Requests in flight of sweeps that are over and gave them up.
    stale_requests: usize,
    /// Plans being made that nobody waits for any more.
    stale_plans: usize,
    actions: VecDeque<Action>,
    /// The picture as it is confirmed; `None` before the first sweep and while a plan is applied.
    observed: Option<Arc<Observed>>,
    ground: Ground,
    memory: Arc<LidMemory>,
    /// The memory was restored, and no full sweep has shown yet that it is of this fabric.
    memory_is_doubtful: bool,
    /// Another manager was master since the memory was made, and no copy of what that one knew has come.
    memory_is_outdated: bool,
    stuck: BTreeSet<Guid>,
    snapshot: Option<Arc<Snapshot>>,
    /// The plan in force.
    plan: Option<Arc<Plan>>,
    multicast: MulticastState,
    /// The alias GUIDs that ports are to hold.
    aliases: Arc<AliasTable>,
    wishes: Wishes,
    watch: Watch,
    tell: Tell,
    balance: Balance,
    key_notes: KeyNotes,
    /// Ports that came up between their reading and the clearing of PortStateChange.
    changed_meanwhile: Vec<(Guid, PortNum)>,
    /// Nodes whose SL-to-VL and VL arbitration tables somebody asked for.
    tables_wanted: BTreeSet<Guid>,
    /// Ports of switches that were raised since the last look that was answered in full.
    raised: BTreeSet<(Guid, PortNum)>,
    round: Round,
    next_look: Option<Timestamp>,
    started: bool,
    reassign: bool,
    act_count: u32,
    traps: u64,
    /// Another manager may have written tables since we read them; they are read anew in the next sweep (B20).
    foreign_tables: bool,
    /// The tables that were known before another manager may have written some, where it was apart from us with them.
    before_others: Option<Arc<KnownTables>>,
    /// Counters of the engine when the round began.
    stats_at_start: TransactionStats,
}

impl Sm {
    /// A subnet manager that begins with a full sweep at its first event. `first_tid` should differ from run to run.
    pub fn new(settings: SmSettings, restored: Restored, reassign: bool, first_tid: u32) -> Self {
        let transactions = Transactions::new(settings.transactions, first_tid);
        let rank = Rank { priority: settings.priority, guid: Guid::NONE };
        let keys = Arc::new(KeyRing::new(Arc::clone(&settings.m_keys), restored.keys));
        Self {
            election: Election::new(rank, role::policy(&settings)),
            others: Others::default(),
            settings,
            own: Own::default(),
            phase: Phase::Idle,
            transactions,
            strays: Strays::default(),
            stale_requests: 0,
            stale_plans: 0,
            actions: VecDeque::new(),
            observed: None,
            ground: Ground { quirks: restored.quirks, keys, ..Ground::default() },
            memory_is_doubtful: !restored.lids.is_empty(),
            memory_is_outdated: false,
            memory: Arc::new(restored.lids),
            stuck: BTreeSet::new(),
            snapshot: None,
            plan: None,
            multicast: MulticastState::with_demand(restored.demand),
            aliases: restored.aliases,
            wishes: Wishes::default(),
            watch: Watch::default(),
            tell: Tell::with(restored.served),
            balance: Balance::default(),
            key_notes: KeyNotes::default(),
            changed_meanwhile: Vec::new(),
            tables_wanted: BTreeSet::new(),
            raised: BTreeSet::new(),
            round: Round::default(),
            next_look: None,
            started: false,
            reassign,
            act_count: 0,
            traps: 0,
            foreign_tables: false,
            before_others: None,
            stats_at_start: TransactionStats::default(),
        }
    }

    /// Takes an event. Poll actions afterwards until there are none.
    pub fn handle(&mut self, event: Event, now: Timestamp) {
        self.act_count = self.act_count.wrapping_add(1);
        if !self.started {
            self.started = true;
            self.actions.push_back(Action::SetIsSm(true));
            self.wishes.full();
        }
        self.notice_lapse(now);
        if self.transactions.deadline().is_some_and(|at| at <= now) {
            for completion in self.transactions.expired(now) {
                self.complete(completion, now);
            }
        }
        match event {
            Event::Received(received) => match self.transactions.receive(&received, now) {
                Some(completion) => self.complete(completion, now),
                None => self.incoming(&received, now),
            },
            Event::SendFailed { tid, errno } => {
                if let Some(completion) = self.transactions.send_failed(tid, errno, now) {
                    self.complete(completion, now);
                }
            }
            Event::Multicast(demand) => self.multicast.demand = demand,
            Event::Aliases(aliases) => {
                self.aliases = aliases;
                self.wishes.look();
            }
            Event::QosTables(nodes) => {
                self.tables_wanted.extend(nodes);
                self.wishes.look();
            }
            Event::Unregistered => {
                self.serve_nobody();
                self.wishes.replan();
            }
            Event::Mirrored(restored) => self.take_mirrored(*restored),
            Event::SweepRequested => self.wishes.full(),
            Event::Settings(settings) => self.change_settings(*settings),
            Event::Planned(result) => self.planned(*result, now),
            Event::Time => {}
        }
        self.advance(now);
    }

    /// The next thing to do.
    pub fn poll_action(&mut self, now: Timestamp) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let (datagram, timeout) = self.transactions.poll_send(now)?;
        Some(Action::Send(datagram, Some(timeout)))
    }

    /// When to come back with [`Event::Time`] at the latest; `None`: not before something happens.
    pub fn deadline(&self) -> Option<Timestamp> {
        let due =
            if self.transactions.is_idle() { self.idle_deadline() } else { self.transactions.deadline() };
        [due, self.strays.deadline(), self.heartbeat()].into_iter().flatten().min()
    }

    /// When something begins that waits for no answer.
    fn idle_deadline(&self) -> Option<Timestamp> {
        if !matches!(self.phase, Phase::Idle) {
            return None;
        }
        let poll = self.poll_due();
        if matches!(self.role(), Role::Standby | Role::NotActive) {
            return poll;
        }
        let writes = self.may_write();
        let tell = self.tell.deadline().filter(|_| writes);
        let multicast = self.multicast.deadline().filter(|_| writes);
        let balance = self.balance_due().filter(|_| writes);
        [self.round_due(), tell, multicast, poll, balance].into_iter().flatten().min()
    }

    /// Tells what waits for the SA's answer by now: whoever has to be told to register anew waits for that.
    pub const fn note_backlog(&mut self, backlog: SaBacklog) {
        self.tell.note_backlog(backlog);
    }

    /// Where it is.
    pub fn progress(&self) -> Progress {
        match &self.phase {
            Phase::Idle | Phase::Multicast(_) => Progress::Idle,
            Phase::Sweeping(sweep) => Progress::Sweeping(sweep.progress()),
            Phase::Planning | Phase::Confirming(_) => Progress::Planning,
            Phase::Applying(apply) => {
                let (done, open) = apply.progress();
                Progress::Applying { done, open }
            }
        }
    }

    /// Whether the last round is over and there is no reason to hurry with the next: all is done, or what is left
    /// failed several times.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.round.is_settled() && !self.wishes.wants_look()
    }

    /// What it is to other subnet managers.
    pub const fn role(&self) -> Role {
        Role::of(self.sm_state())
    }

    /// The last picture that was published.
    pub const fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.snapshot.as_ref()
    }

    /// Counts up with what it does, as SMInfo tells.
    pub const fn act_count(&self) -> u32 {
        self.act_count
    }

    /// Traps that came.
    pub const fn traps(&self) -> u64 {
        self.traps
    }

    /// Counters of the datagrams since the start.
    pub const fn statistics(&self) -> TransactionStats {
        self.transactions.stats()
    }

    /// Settings take effect at the next step (B11): a look plans again with them.
    fn change_settings(&mut self, settings: SmSettings) {
        if settings.plan != self.settings.plan || settings.m_keys != self.settings.m_keys {
            self.wishes.replan();
        }
        self.wishes.full();
        let raised = settings.priority > self.settings.priority;
        self.settings = settings;
        self.adopt_keys(Arc::clone(&self.ground.keys));
        self.renew_rank();
        if raised {
            self.tell_priority();
        }
    }

    fn note_stray(&mut self, completion: &Completion<Token>, now: Timestamp) {
        if let Some(stray) = &completion.stray {
            self.strays.note(stray, self.settings.plan.subnet_timeout, now);
        }
    }

    fn complete(&mut self, completion: Completion<Token>, now: Timestamp) {
        self.note_stray(&completion, now);
        if let Token::Counter(guid, port) = completion.token {
            return self.counter_answered((guid, port), &completion.outcome);
        }
        let answer = Answer::of(completion.outcome);
        match (completion.token, &mut self.phase) {
            (Token::Sweep(ask), phase) => {
                let current = match phase {
                    Phase::Sweeping(sweep) => sweep.answer(ask, &answer),
                    _ => false,
                };
                if !current {
                    self.stale_requests = self.stale_requests.saturating_sub(1);
                }
            }
            (Token::Apply(job), Phase::Applying(apply)) => {
                apply.at(now);
                apply.answer(job, &answer);
            }
            (Token::Multicast(job), Phase::Multicast(apply)) => apply.answer(job, &answer),
            (Token::Tell { guid, tries, era }, _) => self.told(guid, tries, era, &answer),
            (Token::Renamed(guid), _) => self.renamed_answered(guid, &answer),
            (Token::Poll(guid), _) => self.polled(guid, &answer, now),
            (Token::OwnPort, _) => self.own_port_answered(&answer),
            (Token::Confirm(guid), Phase::Confirming(confirmation)) => confirmation.answer(guid, &answer),
            (Token::ConfirmLink, Phase::Confirming(confirmation)) => confirmation.own_port_answered(&answer),
            (
                Token::Apply(_)
                | Token::Multicast(_)
                | Token::Confirm(_)
                | Token::ConfirmLink
                | Token::Control
                | Token::Counter(..),
                _,
            ) => {}
        }
    }
}
