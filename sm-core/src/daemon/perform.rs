//! Doing what the state machine wants done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, Sender, bounded};
use mad::transport::{Datagram, Transport};
use mad::types::Timestamp;
use mad::wire::smp::Notice;

use super::keeper::{Copy, Job, Keeper};
use super::log::Log;
use super::walk::errno;
use super::{DaemonError, Hooks};
use crate::plan::PlanInput;
use crate::replication::CopyState;
use crate::sm::{Action, Event, Report, SaBacklog, Sm, Told};
use crate::snapshot::Snapshot;
use crate::store::Entries;

/// What subnet administration has to know of the state machine from moment to moment.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// ActCount, as SMInfoRecord tells it.
    pub(super) act_count: AtomicU32,
    /// [`Sm::leads_until`], in nanoseconds from the start.
    pub(super) leads_until: AtomicU64,
    /// What waits for the SA's answer, as the SA says.
    queued: AtomicUsize,
    /// When nothing did last, in nanoseconds from the start.
    idle_at: AtomicU64,
    /// Who has been told to register anew.
    pub(super) told: ArcSwapOption<Told>,
}

impl Standing {
    /// So many requests wait for the SA's answer.
    pub(super) fn note_queued(&self, queued: usize, now: Timestamp) {
        self.queued.store(queued, Ordering::Relaxed);
        if queued == 0 {
            self.idle_at.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// What waits for the SA's answer, and for how long.
    pub(super) fn backlog(&self, now: Timestamp) -> SaBacklog {
        let busy = now - Timestamp(self.idle_at.load(Ordering::Relaxed));
        SaBacklog { queued: self.queued.load(Ordering::Relaxed), busy }
    }

    /// Whether we are certainly master at this moment.
    pub(super) fn leads(&self, now: Timestamp) -> bool {
        now.as_nanos() <= self.leads_until.load(Ordering::Relaxed)
    }
}

/// Everything that actions act upon.
pub(super) struct Performer<'a> {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) planner: Sender<Box<PlanInput>>,
    pub(super) snapshot: Arc<ArcSwapOption<Snapshot>>,
    /// To those who tell subscribers.
    pub(super) notices: Sender<Notice>,
    pub(super) keeper: Keeper,
    /// Registrations that the SA goes on with in place of its own.
    pub(super) restores: Sender<Entries>,
    /// The other end of it: what was not taken over yet is dropped for what comes later.
    pub(super) superseded: Receiver<Entries>,
    pub(super) hooks: Hooks<'a>,
    /// What the state machine says of itself.
    pub(super) standing: Arc<Standing>,
    pub(super) log: Log,
    pub(super) start: Instant,
    /// The last round's report, taken by whoever waits for it.
    pub(super) report: Option<Box<Report>>,
}

impl Performer<'_> {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    /// Performs actions until there are none.
    pub(super) fn drain(&mut self, sm: &mut Sm) -> Result<(), DaemonError> {
        self.standing.act_count.store(sm.act_count(), Ordering::Relaxed);
        self.standing.leads_until.store(sm.leads_until().as_nanos(), Ordering::Relaxed);
        while let Some(action) = sm.poll_action(self.now()) {
            match action {
                Action::Send(datagram, timeout) => {
                    if let Err(error) = self.transport.send(&datagram, timeout) {
                        let errno = errno(&error).ok_or(error)?;
                        self.send_failed(sm, &datagram, errno);
                    }
                }
                Action::Plan(input) => {
                    self.planner.send(input).map_err(|_| DaemonError::ThreadEnded("planner"))?;
                }
                Action::Publish(snapshot) => {
                    (self.hooks.published)(&snapshot);
                    self.snapshot.store(Some(snapshot));
                }
                Action::Withdraw => self.snapshot.store(None),
                Action::SetIsSm(on) => {
                    if let Err(error) = (self.hooks.is_sm)(on) {
                        tracing::error!(%error, "the port's IsSM bit can't be changed");
                    }
                }
                Action::SaveLids(lids) => self.keeper.keep(Job::Lids(lids)),
                Action::SaveQuirks(quirks) => self.keeper.keep(Job::NotKept(quirks)),
                Action::SaveKeys(keys) => self.keeper.keep(Job::Keys(keys)),
                Action::SaveServed(ports) => self.keeper.keep(Job::Served(ports)),
                Action::Told(told) => self.standing.told.store(Some(told)),
                Action::AnotherFabric => {
                    self.keeper.keep(Job::AnotherFabric);
                    self.restore(Entries::new());
                    sm.handle(Event::Unregistered, self.now());
                }
                Action::Notice(notice) => {
                    Log::trap(&notice);
                    // Full: a trap comes again until it is repressed, and subscribers get no promise.
                    let _ = self.notices.try_send(notice);
                }
                Action::Report(report) => {
                    self.log.round(&report, self.now());
                    (self.hooks.report)(&report);
                    self.report = Some(report);
                }
            }
        }
        Ok(())
    }

    /// Has the SA go on with these registrations from the next picture on.
    pub(super) fn restore(&self, entries: Entries) {
        while self.superseded.try_recv().is_ok() {}
        let _ = self.restores.try_send(entries); // nobody else sends
    }

    /// The copy of the state of the master that was last seen alive at `heard`, where there is one.
    pub(super) fn copy(&self, heard: Option<Timestamp>) -> Option<(Copy, CopyState)> {
        let (reply, copy) = bounded(1);
        self.keeper.keep(Job::TakeOver { heard, reply });
        copy.recv().ok().flatten()
    }

    /// Drops what is kept of registrations; what is left.
    pub(super) fn forget_registrations(&self) -> Entries {
        let (reply, left) = bounded(1);
        self.keeper.keep(Job::ForgetRegistrations(reply));
        left.recv().unwrap_or_default()
    }

    fn send_failed(&self, sm: &mut Sm, datagram: &Datagram, errno: i32) {
        let tid = datagram.mad.header.transaction_id.get() as u32;
        sm.handle(Event::SendFailed { tid, errno }, self.now());
    }
}
