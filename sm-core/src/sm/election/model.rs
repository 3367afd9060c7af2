//! The election explored by the model checker `stateright`: two and three managers, each with the very [`Election`] that
//! runs, and around it what `sm::role` and `sm::rounds` do with its verdicts and orders. Every order of events up to a
//! number of steps is tried; the run prints how many states that are, and how deep they lie.
//!
//! Faults, as many as the budget of a run allows: a manager freezes and wakes; a Set(SMInfo) is lost, comes late or twice; a
//! Get(SMInfo) and all its repetitions get no answer; a priority is raised above all others or lowered below them. What must hold in every state that can be
//! reached:
//! - *nobody writes while another does*, unless questions went unanswered: so no two masters are at work at once;
//! - *two masters soon know of each other*: when the faults end there, one polling interval or two later one leads at most;
//! - *all comes right*: when the faults end there, a fair schedule leads to exactly one master within a few polling
//!   intervals, all others stand by, and then nothing changes any more (no endless handover).

use std::fmt;

use mad::types::Guid;
use mad::wire::smp::{SmControl, SmState};
use stateright::{Checker, Model, Property};

use super::{Election, Order, Peer, Policy, Rank, Verdict};

/// Faults tried with two managers.
const TWO: [Budget; 3] = [
    Budget { freezes: 1, priorities: 1, ..Budget::NONE },
    Budget { gets_lost: 1, sets_lost: 1, sets_doubled: 1, ..Budget::NONE },
    Budget { priorities: 2, sets_lost: 1, ..Budget::NONE },
];
/// Faults tried with three.
const THREE: [Budget; 4] = [
    Budget { freezes: 1, ..Budget::NONE },
    Budget { sets_lost: 1, gets_lost: 1, ..Budget::NONE },
    Budget { priorities: 1, freezes: 1, ..Budget::NONE },
    Budget { priorities: 1, sets_lost: 1, sets_doubled: 1, ..Budget::NONE },
];

/// Faults tried with three of which one is master.
const IN_SERVICE: [Budget; 3] = [
    Budget { freezes: 1, priorities: 1, ..Budget::NONE },
    Budget { freezes: 2, ..Budget::NONE },
    Budget { gets_lost: 1, sets_lost: 1, sets_doubled: 1, priorities: 1, ..Budget::NONE },
];

/// Rounds of the fair schedule after which all must be right.
const ROUNDS: usize = 16;

/// What a manager is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Idle,
    /// Plans what it found with these others.
    Planning(Vec<usize>),
    /// Sends Sets.
    Writing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Manager {
    election: Election,
    work: Work,
    frozen: bool,
    /// Whether it wants to sweep; a master looks around at any time besides.
    sweeps: bool,
}

/// A Set(SMInfo) on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Message {
    to: usize,
    from: usize,
    control: u32,
    state: SmState,
}

/// Faults that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    freezes: u8,
    sets_lost: u8,
    sets_doubled: u8,
    gets_lost: u8,
    priorities: u8,
}

impl Budget {
    const NONE: Self = Self { freezes: 0, sets_lost: 0, sets_doubled: 0, gets_lost: 0, priorities: 0 };
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    managers: Vec<Manager>,
    /// Sorted: the order on the wire is nobody's promise.
    wire: Vec<Message>,
    left: Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Sweeps, and hears what it finds; `deaf`: no manager answers.
    Sweep {
        who: usize,
        deaf: bool,
    },
    /// The plan is ready: asks once more, and begins to write.
    Confirm {
        who: usize,
    },
    /// All Sets are confirmed.
    Written {
        who: usize,
    },
    Poll {
        who: usize,
        deaf: bool,
    },
    Deliver {
        index: usize,
        doubled: bool,
    },
    Lose {
        index: usize,
    },
    Freeze {
        who: usize,
    },
    Wake {
        who: usize,
    },
    /// A new priority: the highest or the lowest of all.
    Rank {
        who: usize,
        priority: u8,
    },
}

/// A mistake, to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// HANDOVER is sent, and the sender goes on as master.
    KeepsMastership,
    /// The higher of two masters does not wait.
    DoesNotWait,
    /// Unmet askers are forgotten.
    ForgetsStrangers,
    /// Who wakes goes on where it was.
    TrustsItsSleep,
    /// A HANDOVER is followed without an examination.
    NeverExamines,
}

#[derive(Clone)]
struct Subnet {
    managers: usize,
    budget: Budget,
    sticky: bool,
    /// Whether all begin with one of them in charge and the others standing by.
    in_service: bool,
    /// Most steps from the start.
    depth: usize,
    mistake: Mistake,
}

const fn guid(who: usize) -> Guid {
    Guid(who as u64 + 1)
}

impl Subnet {
    /// Manager 0 ranks lowest.
    const fn rank(who: usize) -> Rank {
        Rank { priority: who as u8, guid: guid(who) }
    }

    fn ask(&self, state: &mut State, who: usize, of: usize) -> Option<Peer> {
        if state.managers[of].frozen {
            return None;
        }
        let asked = &mut state.managers[of].election;
        asked.asked_by(Some(guid(who)));
        if self.mistake == Mistake::ForgetsStrangers {
            asked.strangers.clear();
        }
        Some(Peer { rank: asked.rank, state: asked.state, trusted: true })
    }

    fn ask_all(&self, state: &mut State, who: usize, whom: &[usize]) -> Vec<Peer> {
        whom.iter().filter_map(|of| self.ask(state, who, *of)).collect()
    }

    /// As `Sm::carry_out`.
    fn carry_out(&self, state: &mut State, who: usize) {
        let manager = &mut state.managers[who];
        for order in manager.election.take_orders() {
            match order {
                Order::Stop => manager.work = Work::Idle,
                Order::Examine => {
                    manager.work = Work::Idle;
                    manager.sweeps = self.mistake != Mistake::NeverExamines;
                }
                Order::Send { control, to, state: told } => {
                    if self.mistake == Mistake::KeepsMastership && control == SmControl::Handover {
                        manager.election.state = SmState::Master;
                        manager.election.watched = None;
                    }
                    let to = to.0 as usize - 1;
                    state.wire.push(Message { to, from: who, control: control.to_wire(), state: told });
                }
            }
        }
        state.wire.sort();
        state.wire.dedup(); // a message twice on its way is one that may be delivered twice
    }

    fn follow(&self, state: &mut State, who: usize, verdict: Verdict, next: Work) {
        let manager = &mut state.managers[who];
        match verdict {
            Verdict::Lead => manager.work = next,
            Verdict::Wait(_) if self.mistake == Mistake::DoesNotWait => {
                manager.election.watched = None;
                manager.election.take_orders();
                manager.work = next;
            }
            Verdict::Wait(_) | Verdict::Yield => manager.work = Work::Idle,
            Verdict::Again => (manager.work, manager.sweeps) = (Work::Idle, true),
        }
        self.carry_out(state, who);
    }

    fn sweep(&self, state: &mut State, who: usize, deaf: bool) {
        state.managers[who].sweeps = false;
        let others: Vec<usize> = (0..self.managers).filter(|other| *other != who && !deaf).collect();
        let peers = self.ask_all(state, who, &others);
        let met = peers.iter().map(|peer| peer.rank.guid.0 as usize - 1).collect();
        let verdict = state.managers[who].election.swept(&peers);
        self.follow(state, who, verdict, Work::Planning(met));
    }

    fn confirm(&self, state: &mut State, who: usize) {
        let Work::Planning(met) = state.managers[who].work.clone() else { return };
        let peers = self.ask_all(state, who, &met);
        let verdict = state.managers[who].election.confirmed(&peers);
        self.follow(state, who, verdict, Work::Writing);
    }

    fn poll(&self, state: &mut State, who: usize, deaf: bool) {
        let Some(watched) = state.managers[who].election.polls() else { return };
        let answer = if deaf { None } else { self.ask(state, who, watched.0 as usize - 1) };
        state.managers[who].election.polled(watched, answer.map(|peer| peer.state));
        self.carry_out(state, who);
    }

    fn deliver(&self, state: &mut State, message: &Message) {
        let Some(control) = SmControl::from_wire(message.control) else { return };
        let rank = state.managers[message.from].election.rank;
        let sender = Peer { rank, state: message.state, trusted: true };
        state.managers[message.to].election.controlled(control, sender);
        self.carry_out(state, message.to);
    }

    fn wake(&self, state: &mut State, who: usize) {
        state.managers[who].frozen = false;
        if self.mistake != Mistake::TrustsItsSleep {
            state.managers[who].election.lapsed();
            self.carry_out(state, who);
        }
    }

    /// One polling interval of the fair schedule: everybody is awake and has its turn at everything.
    fn fair_round(&self, state: &mut State) {
        for who in 0..self.managers {
            if state.managers[who].frozen {
                self.wake(state, who);
            }
        }
        for message in std::mem::take(&mut state.wire) {
            self.deliver(state, &message);
        }
        for who in 0..self.managers {
            self.poll(state, who, false);
            if may_sweep(&state.managers[who]) && state.managers[who].work == Work::Idle {
                self.sweep(state, who, false);
            }
            self.confirm(state, who);
            if state.managers[who].work == Work::Writing {
                state.managers[who].work = Work::Idle;
            }
        }
    }

    /// Whether of two managers that think that they are in charge one knows better when all is answered for as long as a master needs
    /// to bring what it is at to its end and to sweep once.
    fn soon_at_most_one_leads(&self, state: &State) -> bool {
        let leads = |state: &State| {
            let awake = state.managers.iter().filter(|manager| !manager.frozen);
            awake.filter(|manager| manager.election.leads()).count()
        };
        if leads(state) < 2 {
            return true;
        }
        let mut state = state.clone();
        (0..2).any(|_| {
            self.fair_round(&mut state);
            leads(&state) < 2
        })
    }

    /// Whether a fair schedule from here ends with one master, and stays there.
    fn comes_right(&self, state: &State) -> bool {
        let mut state = state.clone();
        (0..ROUNDS).for_each(|_| self.fair_round(&mut state));
        let Some(master) = self.settled(&state) else { return false };
        (0..3).all(|_| {
            self.fair_round(&mut state);
            self.settled(&state) == Some(master)
        })
    }

    /// The one that leads, if all others watch it.
    fn settled(&self, state: &State) -> Option<usize> {
        let is_master = |who: &usize| state.managers[*who].election.state == SmState::Master;
        let masters: Vec<usize> = (0..self.managers).filter(is_master).collect();
        let [master] = masters[..] else { return None };
        let watches = |who: usize| state.managers[who].election.polls() == Some(guid(master));
        let settled = state.managers[master].election.leads()
            && state.wire.is_empty()
            && (0..self.managers).all(|who| who == master || watches(who));
        settled.then_some(master)
    }
}

fn may_sweep(manager: &Manager) -> bool {
    match manager.election.state {
        SmState::Master => true,
        SmState::Discovering => manager.sweeps,
        SmState::Standby | SmState::NotActive => false,
    }
}

impl Model for Subnet {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let policy = Policy { sticky: self.sticky, retries: 1 };
        let managers = (0..self.managers)
            .map(|who| Manager {
                election: Election::new(Self::rank(who), policy),
                work: Work::Idle,
                frozen: false,
                sweeps: true,
            })
            .collect();
        let mut state = State { managers, wire: Vec::new(), left: self.budget };
        if self.in_service {
            (0..ROUNDS).for_each(|_| self.fair_round(&mut state));
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let left = state.left;
        for (who, manager) in state.managers.iter().enumerate() {
            if manager.frozen {
                steps.push(Step::Wake { who });
                continue;
            }
            if left.freezes > 0 {
                steps.push(Step::Freeze { who });
            }
            if left.priorities > 0 {
                steps.extend([0, self.managers as u8].map(|priority| Step::Rank { who, priority }));
            }
            let deaf = if left.gets_lost > 0 { &[false, true][..] } else { &[false][..] };
            match manager.work {
                Work::Idle if may_sweep(manager) => {
                    steps.extend(deaf.iter().map(|deaf| Step::Sweep { who, deaf: *deaf }));
                }
                Work::Idle => {}
                Work::Planning(_) => steps.push(Step::Confirm { who }),
                Work::Writing => steps.push(Step::Written { who }),
            }
            if manager.election.polls().is_some() {
                steps.extend(deaf.iter().map(|deaf| Step::Poll { who, deaf: *deaf }));
            }
        }
        for (index, message) in state.wire.iter().enumerate() {
            if left.sets_lost > 0 {
                steps.push(Step::Lose { index });
            }
            if !state.managers[message.to].frozen {
                steps.push(Step::Deliver { index, doubled: false });
                if left.sets_doubled > 0 {
                    steps.push(Step::Deliver { index, doubled: true });
                }
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Sweep { who, deaf } => {
                state.left.gets_lost -= u8::from(deaf);
                self.sweep(&mut state, who, deaf);
            }
            Step::Confirm { who } => self.confirm(&mut state, who),
            Step::Written { who } => state.managers[who].work = Work::Idle,
            Step::Poll { who, deaf } => {
                state.left.gets_lost -= u8::from(deaf);
                self.poll(&mut state, who, deaf);
            }
            Step::Deliver { index, doubled } => {
                let message = if doubled { state.wire[index].clone() } else { state.wire.remove(index) };
                state.left.sets_doubled -= u8::from(doubled);
                self.deliver(&mut state, &message);
            }
            Step::Lose { index } => {
                state.left.sets_lost -= 1;
                state.wire.remove(index);
            }
            Step::Freeze { who } => {
                state.left.freezes -= 1;
                state.managers[who].frozen = true;
            }
            Step::Wake { who } => self.wake(&mut state, who),
            Step::Rank { who, priority } => {
                state.left.priorities -= 1;
                let election = &mut state.managers[who].election;
                let rank = Rank { priority, ..election.rank };
                election.set_rank(rank, election.policy);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nobody writes while another does", |model: &Self, state: &State| {
                let writes = |m: &&Manager| !m.frozen && m.work == Work::Writing;
                let heard = state.left.gets_lost == model.budget.gets_lost;
                !heard || state.managers.iter().filter(writes).count() < 2
            }),
            Property::always("two masters soon know of each other", |model: &Self, state: &State| {
                model.soon_at_most_one_leads(state)
            }),
            Property::always("all comes right", |model: &Self, state: &State| model.comes_right(state)),
        ]
    }
}

impl fmt::Debug for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { managers, budget, sticky, in_service, .. } = self;
        write!(f, "{managers} managers, {budget:?}, sticky {sticky}, in service {in_service}")
    }
}

/// Explores all states; how many there are, or the way to one where something does not hold.
fn explore(subnet: Subnet) -> Result<usize, String> {
    let name = format!("{subnet:?}");
    let depth = subnet.depth;
    let checker = subnet.checker().threads(2).target_max_depth(depth).spawn_bfs().join();
    let Some((property, path)) = checker.discoveries().into_iter().next() else {
        println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
        return Ok(checker.unique_state_count());
    };
    let steps: Vec<String> = path.into_actions().iter().map(|step| format!("{step:?}")).collect();
    Err(format!("{name}: \"{property}\" does not hold after\n{}", steps.join("\n")))
}

fn sound(managers: usize, budget: Budget, sticky: bool, in_service: bool, depth: usize) -> usize {
    let subnet = Subnet { managers, budget, sticky, in_service, depth, mistake: Mistake::None };
    explore(subnet).unwrap_or_else(|text| panic!("{text}"))
}

#[test]
fn two_managers_agree_whatever_happens() {
    for sticky in [false, true] {
        for budget in TWO {
            assert!(sound(2, budget, sticky, false, 24) > 100);
        }
    }
}

#[test]
fn three_managers_agree_whatever_happens() {
    for budget in THREE {
        assert!(sound(3, budget, false, false, 9) > 100);
    }
}

/// Deeper than from the start: who is master, freezes, is taken over from and wakes.
#[test]
fn three_managers_in_service_agree_whatever_happens() {
    for budget in IN_SERVICE {
        assert!(sound(3, budget, false, true, 12) > 100);
    }
}

#[test]
fn a_mistake_in_a_transition_is_found() {
    for mistake in [
        Mistake::KeepsMastership,
        Mistake::DoesNotWait,
        Mistake::ForgetsStrangers,
        Mistake::TrustsItsSleep,
        Mistake::NeverExamines,
    ] {
        let subnet =
            |budget| Subnet { managers: 2, budget, sticky: false, in_service: false, depth: 24, mistake };
        let found = TWO.into_iter().find_map(|budget| explore(subnet(budget)).err());
        println!("{mistake:?}: {}", found.expect("the mistake is found"));
    }
}
