//! The loop around the state machine.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use mad::transport::{Received, TransportError};

use super::keeper::{Book, Copy, Job, Keeper, Part, epoch};
use super::log::Log;
use super::mirroring::Mirroring;
use super::perform::{Performer, Standing};
use super::receiver::ReceiverThread;
use super::sa::{Channels, SaThread};
use super::walk::first_tid;
use super::{DaemonError, Hooks, Setup};
use crate::plan::{self, Plan, PlanError, PlanInput};
use crate::replication::CopyState;
use crate::sa::{Figures, Wish};
use crate::settings::SmSettings;
use crate::sm::{Event, Report, Role, Sm};
use crate::store::version;

/// What a running subnet manager is told from outside.
#[derive(Debug)]
pub enum Control {
    /// End.
    Stop,
    /// Walk the whole fabric now.
    Sweep,
    /// New settings, and a walk.
    Reload(Box<SmSettings>),
}

/// Datagrams handled before anything else has its turn.
const BATCH: usize = 512;
/// Traps that wait to be told to subscribers; those beyond are dropped.
const NOTICES: usize = 256;
/// Sets of registrations that wait to be taken over: one at the start, one where that is of another fabric.
const RESTORES: usize = 4;
const PROGRESS: Duration = Duration::from_millis(100);

/// Brings the fabric up once and ends. Rounds are repeated while something is left open that a repetition may solve.
///
/// # Errors
/// The state directory can't be used, or the device failed. What failed on the fabric is in the report.
pub fn run_once(setup: Setup, hooks: Hooks<'_>) -> Result<Report, DaemonError> {
    let (_keep, control) = bounded(1);
    let mut daemon = Daemon::start(setup, hooks)?;
    let report = daemon.run(&control, true)?;
    daemon.finish();
    report.ok_or(DaemonError::ThreadEnded("sm"))
}

/// Runs until [`Control::Stop`] comes or all senders of `control` are gone.
///
/// # Errors
/// As [`run_once`].
pub fn run(setup: Setup, hooks: Hooks<'_>, control: &Receiver<Control>) -> Result<(), DaemonError> {
    let mut daemon = Daemon::start(setup, hooks)?;
    daemon.run(control, false)?;
    daemon.finish();
    Ok(())
}

struct Daemon<'a> {
    sm: Sm,
    performer: Performer<'a>,
    plans: Receiver<Box<Result<Plan, PlanError>>>,
    wishes: Receiver<Wish>,
    figures: Receiver<Figures>,
    /// States that another manager left in a store that both use.
    adopted: Receiver<Copy>,
    planner: Option<JoinHandle<()>>,
    receiver: ReceiverThread,
    sa: Option<SaThread>,
    /// What the manager was when that was last told.
    part: Part,
    /// Nothing was kept of what ports registered, perhaps with a manager before us; or it is etcd's, without which that one may
    /// have gone on.
    unregistered: bool,
}

impl<'a> Daemon<'a> {
    fn start(setup: Setup, hooks: Hooks<'a>) -> Result<Self, DaemonError> {
        let start = Instant::now();
        let (book, restored, registrations) = Book::open(&setup)?;
        let is_etcds = book.is_etcds;
        restored.complaints.iter().for_each(|complaint| tracing::error!("{complaint}"));
        let receiver = ReceiverThread::start(&setup.transport)?;
        let mirroring = Mirroring::new(setup.mirror, &setup.transport, receiver.mirror.clone());
        let (adopted_in, adopted) = bounded(1);
        let keeper = Keeper::start(book, mirroring, adopted_in, start)?;
        let snapshot = Arc::new(ArcSwapOption::empty());
        let (notices_in, notices) = bounded(NOTICES);
        let (wishes_in, wishes) = bounded(1);
        let (figures_in, figures) = bounded(1);
        let (restores, restored_in) = bounded(RESTORES);
        let standing = Arc::new(Standing::default());
        let unregistered = version(&registrations) == 0 || is_etcds;
        let _ = restores.send(registrations);
        let channels = Channels {
            queries: receiver.queries.clone(),
            notices,
            wishes: wishes_in,
            figures: figures_in,
            restores: restored_in.clone(),
            keeper: keeper.jobs(),
            standing: Arc::clone(&standing),
            epoch: epoch(start),
            start,
        };
        let (sa, desk) = SaThread::start(&setup.transport, channels, &snapshot, setup.sa)?;
        receiver.serve_at(desk);
        let (inputs_in, inputs) = bounded::<Box<PlanInput>>(1);
        let (plans_in, plans) = bounded(1);
        let planner = std::thread::Builder::new()
            .name("planner".into())
            .spawn(move || plan_all(&inputs, &plans_in))
            .map_err(DaemonError::Thread)?;
        Ok(Self {
            sm: Sm::new(setup.settings, restored, setup.reassign, first_tid()).on_port(setup.own),
            performer: Performer {
                transport: setup.transport,
                planner: inputs_in,
                snapshot,
                notices: notices_in,
                keeper,
                restores,
                superseded: restored_in,
                hooks,
                log: Log::default(),
                standing,
                start,
                report: None,
            },
            plans,
            wishes,
            figures,
            adopted,
            planner: Some(planner),
            receiver,
            sa: Some(sa),
            part: Part::None,
            unregistered,
        })
    }

    fn run(&mut self, control: &Receiver<Control>, once: bool) -> Result<Option<Report>, DaemonError> {
        let mut shown = Instant::now();
        // Whoever ends after one round does not serve those who register.
        let unregistered = !once && self.unregistered;
        let mut event = Some(if unregistered { Event::Unregistered } else { Event::Time });
        loop {
            self.sm.note_backlog(self.performer.standing.backlog(self.performer.now()));
            if let Some(event) = event.take() {
                self.sm.handle(event, self.performer.now());
            }
            self.take_in_datagrams()?;
            self.performer.drain(&mut self.sm)?;
            self.follow_role();
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                (self.performer.hooks.progress)(self.sm.progress());
                let now = self.performer.now();
                self.performer.log.tell_due(now);
                for figures in self.figures.try_iter() {
                    (self.performer.hooks.figures)(&figures);
                }
            }
            if once && self.sm.is_settled() {
                return Ok(self.performer.report.take().map(|report| *report));
            }
            let now = self.performer.now();
            let wait = self.sm.deadline().map_or(PROGRESS, |at| at - now).min(PROGRESS);
            select! {
                recv(self.receiver.smps) -> received => {
                    self.received(received.map_err(|_| DaemonError::ThreadEnded("receiver"))?)?;
                }
                recv(self.plans) -> plan => {
                    event = Some(Event::Planned(plan.map_err(|_| DaemonError::ThreadEnded("planner"))?));
                }
                recv(self.wishes) -> wish => {
                    event = Some(wish.map_err(|_| DaemonError::ThreadEnded("sa"))?.into());
                }
                recv(self.adopted) -> copy => {
                    let (restored, entries) = *copy.map_err(|_| DaemonError::ThreadEnded("state"))?;
                    self.performer.restore(entries);
                    self.sm.handle(Event::Mirrored(Box::new(restored)), self.performer.now());
                    // What was acknowledged here since we are master is not in it.
                    event = Some(Event::Unregistered);
                }
                recv(control) -> control => match control {
                    Ok(Control::Sweep) => event = Some(Event::SweepRequested),
                    Ok(Control::Reload(settings)) => event = Some(Event::Settings(settings)),
                    Ok(Control::Stop) | Err(_) => return Ok(None),
                },
                default(wait) => event = Some(Event::Time),
            }
        }
    }

    /// Tells whoever keeps the state what the manager is; a standby that takes over goes on with its copy.
    fn follow_role(&mut self) {
        let part = match self.sm.role() {
            Role::Master => Part::Master,
            Role::Standby => Part::Standby(self.sm.master_lid()),
            Role::Discovering | Role::NotActive => Part::None,
        };
        let before = std::mem::replace(&mut self.part, part);
        if part == before {
            return;
        }
        if matches!(before, Part::Standby(_)) && !matches!(part, Part::Standby(_)) {
            self.take_over();
        }
        self.performer.keeper.keep(Job::Part(part));
    }

    /// A standby takes over. Where it has no copy of the master's state, what it knew of registrations is out of date, and where
    /// the master may have acknowledged what is not in the copy, some may be missing: the ports are told to register anew.
    fn take_over(&mut self) {
        let Some((copy, state)) = self.performer.copy(self.sm.master_heard()) else {
            self.performer.restore(self.performer.forget_registrations());
            return self.sm.handle(Event::Unregistered, self.performer.now());
        };
        let (restored, entries) = *copy;
        tracing::info!(ports = restored.lids.len(), "taking over with the copy of the master's state");
        self.performer.restore(entries);
        self.sm.handle(Event::Mirrored(Box::new(restored)), self.performer.now());
        if state == CopyState::Doubtful {
            tracing::warn!(
                "the copy may lack what the master acknowledged last: all ports are told to register anew"
            );
            self.sm.handle(Event::Unregistered, self.performer.now());
        }
    }

    fn take_in_datagrams(&mut self) -> Result<(), DaemonError> {
        let mut taken = 0;
        while taken < BATCH {
            let Ok(received) = self.receiver.smps.try_recv() else { break };
            taken += self.received(received)?;
        }
        Ok(())
    }

    /// Takes in what the receiver handed on; how much that was.
    fn received(&mut self, received: Result<Vec<Received>, TransportError>) -> Result<usize, DaemonError> {
        match received {
            Ok(received) => {
                let (count, now) = (received.len(), self.performer.now());
                for received in received {
                    self.sm.handle(Event::Received(received), now);
                }
                Ok(count)
            }
            Err(TransportError::Closed) => Err(TransportError::Closed.into()),
            Err(error) => {
                tracing::error!(%error, "reading the device failed");
                Ok(1)
            }
        }
    }

    /// Ends the threads: first nothing is taken in any more, then what was is answered, then the state is written. The IsSM bit
    /// goes last (B71).
    fn finish(mut self) {
        let Performer { planner, keeper, mut hooks, mut log, .. } = self.performer;
        log.tell_rest();
        drop(planner);
        drop(self.plans);
        if let Some(planner) = self.planner.take() {
            // A plan under way is not waited for: its result has nowhere to go.
            if planner.is_finished() {
                let _ = planner.join();
            }
        }
        // Its end is the end of the queries, so that the thread that answers them does not wait for another.
        drop(self.receiver);
        drop(self.sa.take());
        drop(keeper);
        if let Err(error) = (hooks.is_sm)(false) {
            tracing::error!(%error, "the port's IsSM bit can't be changed");
        }
    }
}

fn plan_all(inputs: &Receiver<Box<PlanInput>>, plans: &Sender<Box<Result<Plan, PlanError>>>) {
    for input in inputs {
        let result = plan::plan(&input);
        drop(input); // before the answer: whoever gets it changes the same picture in place
        if plans.send(Box::new(result)).is_err() {
            return;
        }
    }
}
