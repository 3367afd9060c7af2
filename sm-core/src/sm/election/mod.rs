//! Who is master: the state machine of subnet managers among each other (specification volume 1, 14.4).
//!
//! ```text
//!                  another is master, or ranks higher           unanswered polls, DISCOVER
//!   DISCOVERING ------------------------------------> STANDBY -----------------------------> DISCOVERING
//!        | nobody is, confirmed right before             | HANDOVER (answered by ACKNOWLEDGE)
//!        v the first Set                                 v
//!      MASTER <------------------------------------- MASTER     STANDBY -- DISABLE --> NOTACTIVE -- STANDBY --> STANDBY
//!        | a master, or a standby unless `sticky`, ranks higher: HANDOVER to it
//!        +----------------------------------------------------> STANDBY
//! ```
//!
//! Higher priority wins, then the lower port GUID. Two rules keep two managers from writing at the same time:
//! - **Nobody becomes master unseen.** Before the first Set of a plan the managers known are asked once more; and who was
//!   asked meanwhile, while DISCOVERING, by somebody that its sweep had not met, sweeps again.
//! - **The higher master waits.** Of two masters that are joined (B58) the lower one stops, then sends HANDOVER; until that
//!   comes, or the other has stepped back or is silent, the higher one writes nothing (C14-60.2.1). Whatever ends the
//!   waiting, the fabric is examined from nothing before anything is written: the other has changed it.
//!
//! A manager that was stopped for so long that others may have taken over (*lapsed*) is DISCOVERING when it wakes.
//!
//! Pure: no clock, no wire. `sm::role` keeps the time and sends; the model checker explores this very code.

mod control;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use mad::types::Guid;
use mad::wire::smp::{SmControl, SmState};

/// Sweeps repeated in a row because of askers that did not say who they are. A monitoring tool that goes on asking must not keep a fabric without
/// a master.
const MOST_REPEATS: u8 = 3;
/// Unknown askers that are remembered; more are as good as these.
const MOST_STRANGERS: usize = 16;

/// What decides between managers. The greater one is to be master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rank {
    /// Priority, 0 to 15.
    pub(crate) priority: u8,
    /// GUID of the port.
    pub(crate) guid: Guid,
}

impl Rank {
    const fn key(self) -> (u8, Reverse<u64>) {
        (self.priority, Reverse(self.guid.0))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Another manager as it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    /// Its rank.
    pub(crate) rank: Rank,
    /// Its state.
    pub(crate) state: SmState,
    /// Whether its SM_Key is ours, or is not shown. Others are reported and never obeyed (B64).
    pub(crate) trusted: bool,
}

/// What is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Policy {
    /// Whether a master stays master although a standby ranks higher.
    pub(crate) sticky: bool,
    /// Polls without an answer after which the one that is polled counts as gone.
    pub(crate) retries: u32,
}

/// What is to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// Nothing more is written; what is under way is abandoned.
    Stop,
    /// The same, and the fabric is examined from nothing, tables included, before anything is written again.
    Examine,
    /// Set(SMInfo), stating `state` as ours.
    Send {
        /// The attribute modifier.
        control: SmControl,
        /// To whom.
        to: Guid,
        /// Our state as the Set tells it: an ACKNOWLEDGE comes from a manager in STANDBY.
        state: SmState,
    },
}

/// What a look at the other managers comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// We are in charge.
    Lead,
    /// We will be in charge once this lower master has handed over; until then nothing is written.
    Wait(Guid),
    /// Another one is, or is to be, in charge.
    Yield,
    /// Somebody asked who was not met: sweep again.
    Again,
}

/// The one that is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Watched {
    guid: Guid,
    /// Polls in a row that were not answered by a MASTER.
    unanswered: u32,
    /// Whether we sent it HANDOVER.
    handed_over: bool,
}

impl Watched {
    const fn new(guid: Guid) -> Self {
        Self { guid, unanswered: 0, handed_over: false }
    }
}

/// The state machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Election {
    rank: Rank,
    policy: Policy,
    state: SmState,
    /// In STANDBY the master; in MASTER the lower master whose HANDOVER is awaited.
    watched: Option<Watched>,
    /// A higher manager that answered and did not become master when it was its turn: the fabric does not wait for it again.
    unwilling: Option<Watched>,
    /// Who asked for our SMInfo while we were DISCOVERING; `None` for somebody who did not say who it is.
    strangers: BTreeSet<Option<Guid>>,
    repeats: u8,
    orders: Vec<Order>,
}

impl Election {
    /// A manager that has seen nothing yet.
    pub(crate) const fn new(rank: Rank, policy: Policy) -> Self {
        Self {
            rank,
            policy,
            state: SmState::Discovering,
            watched: None,
            unwilling: None,
            strangers: BTreeSet::new(),
            repeats: 0,
            orders: Vec::new(),
        }
    }

    /// Our state as SMInfo tells it.
    pub(crate) const fn state(&self) -> SmState {
        self.state
    }

    /// Our own rank, which a sweep or a new configuration may change.
    pub(crate) fn set_rank(&mut self, rank: Rank, policy: Policy) {
        if (self.rank, self.policy) != (rank, policy) {
            (self.rank, self.policy, self.unwilling) = (rank, policy, None);
        }
    }

    /// Whether we are master and wait for nobody.
    pub(crate) fn leads(&self) -> bool {
        self.state == SmState::Master && self.watched.is_none()
    }

    /// Who is to be asked for SMInfo at every polling interval.
    pub(crate) fn polls(&self) -> Option<Guid> {
        self.watched.map(|watched| watched.guid)
    }

    /// What is to be done because of the events since the last call.
    pub(crate) fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// A sweep has met these managers.
    pub(crate) fn swept(&mut self, peers: &[Peer]) -> Verdict {
        self.forget_met(peers);
        self.judge(peers)
    }

    /// Who was met is no stranger.
    fn forget_met(&mut self, peers: &[Peer]) {
        self.strangers.retain(|asker| !peers.iter().any(|peer| Some(peer.rank.guid) == *asker));
    }

    /// The managers that were met were asked once more, right before the first Set. [`Verdict::Lead`]: go on, as MASTER.
    pub(crate) fn confirmed(&mut self, peers: &[Peer]) -> Verdict {
        let verdict = self.judge(peers);
        if verdict != Verdict::Lead {
            return verdict;
        }
        self.forget_met(peers);
        let strangers = std::mem::take(&mut self.strangers);
        if self.state == SmState::Discovering && !strangers.is_empty() {
            // Who names itself is a manager, and will be met or be gone; of others there may be no end.
            let named = strangers.iter().any(Option::is_some);
            if named || self.repeats < MOST_REPEATS {
                self.repeats += u8::from(!named);
                return Verdict::Again;
            }
        }
        self.repeats = 0;
        self.state = SmState::Master;
        Verdict::Lead
    }

    fn judge(&mut self, peers: &[Peer]) -> Verdict {
        let best = |wanted: &dyn Fn(&Peer) -> bool| {
            peers.iter().filter(|peer| peer.trusted && wanted(peer)).map(|peer| peer.rank).max()
        };
        let (own, sticky) = (self.rank, self.policy.sticky);
        let is_master = |peer: &Peer| peer.state == SmState::Master;
        let master = best(&is_master);
        self.unwilling = self.unwilling.filter(|one| master.is_none_or(|rank| rank.guid != one.guid));
        let unwilling = self.unwilling;
        match self.state {
            SmState::Standby | SmState::NotActive => Verdict::Yield,
            SmState::Discovering => {
                let willing = |peer: &Peer| unwilling.is_none_or(|one| one.guid != peer.rank.guid);
                let higher =
                    best(&|peer| peer.state != SmState::NotActive && peer.rank > own && willing(peer));
                master.or(higher).map_or(Verdict::Lead, |rank| self.stand_by(Watched::new(rank.guid)))
            }
            SmState::Master => {
                let refused =
                    |peer: &Peer| unwilling.is_some_and(|u| u.handed_over && u.guid == peer.rank.guid);
                let waits = |peer: &Peer| peer.state == SmState::Standby && !sticky && !refused(peer);
                if let Some(rank) = best(&|peer| (is_master(peer) || waits(peer)) && peer.rank > own) {
                    let verdict = self.stand_by(Watched { handed_over: true, ..Watched::new(rank.guid) });
                    self.send(SmControl::Handover, rank.guid, SmState::Master);
                    return verdict;
                }
                let Some(rank) = master else {
                    if self.watched.is_none() {
                        return Verdict::Lead;
                    }
                    self.examine(SmState::Master); // the one that we waited for has stepped back, or is gone
                    return Verdict::Again;
                };
                if self.polls() != Some(rank.guid) {
                    self.watched = Some(Watched::new(rank.guid));
                    self.orders.push(Order::Stop);
                }
                Verdict::Wait(rank.guid)
            }
        }
    }

    fn stand_by(&mut self, master: Watched) -> Verdict {
        self.state = SmState::Standby;
        self.watched = Some(master);
        self.strangers.clear();
        self.orders.push(Order::Stop);
        Verdict::Yield
    }

    fn send(&mut self, control: SmControl, to: Guid, state: SmState) {
        self.orders.push(Order::Send { control, to, state });
    }

    /// Somebody asked for our SMInfo.
    pub(crate) fn asked_by(&mut self, asker: Option<Guid>) {
        if self.state == SmState::Discovering && self.strangers.len() < MOST_STRANGERS {
            self.strangers.insert(asker);
        }
    }

    /// The end of a poll of `guid`; `None`: no answer.
    pub(crate) fn polled(&mut self, guid: Guid, answer: Option<SmState>) {
        let Some(watched) = self.watched.as_mut().filter(|watched| watched.guid == guid) else { return };
        let standby = self.state == SmState::Standby;
        match answer {
            Some(SmState::Master) => watched.unanswered = 0,
            Some(_) if !standby => self.examine(SmState::Master), // it has stepped back
            _ => {
                watched.unanswered += 1;
                if watched.unanswered > self.policy.retries {
                    self.unwilling = answer.filter(|_| standby).and(self.watched);
                    self.examine(if standby { SmState::Discovering } else { SmState::Master });
                }
            }
        }
    }

    /// Goes on in `state` after an examination.
    fn examine(&mut self, state: SmState) {
        self.state = state;
        self.watched = None;
        self.strangers.clear();
        self.orders.push(Order::Examine);
    }

    /// We were stopped for so long that others may have taken us for dead. In STANDBY that changes nothing: one poll at most was
    /// under way meanwhile, and who takes over is DISCOVERING first. (Beginning to count anew here, a standby whose polls
    /// end later than they should would never take over.)
    pub(crate) fn lapsed(&mut self) {
        if matches!(self.state, SmState::Master | SmState::Discovering) {
            self.examine(SmState::Discovering);
        }
    }

    /// Our own port has no link: we step back, and come again as one that has just started.
    pub(crate) fn link_is_down(&mut self) {
        if matches!(self.state, SmState::Master | SmState::Discovering) {
            self.state = SmState::Discovering;
            self.watched = None;
            self.orders.push(Order::Stop);
        }
    }
}
