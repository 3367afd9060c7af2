//! The thread that answers subnet administration from the last snapshot, and the place where it works.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, Sender, TrySendError, select};
use mad::transport::{Datagram, Transport};
use mad::types::{Guid, Timestamp};
use mad::wire::Method;
use mad::wire::smp::Notice;

use super::DaemonError;
use super::keeper::Job;
use super::log::Counters;
use super::perform::Standing;
use super::priority::run_before_others;
use super::sa_workers::Workers;
use super::unwritten::Unwritten;
use crate::sa::{Figures, Server, ServerConfig, Wish, is_light, is_registration};
use crate::snapshot::Snapshot;
use crate::store::{Entries, Epoch};

/// Batches of queries taken in before answers are sent; keeps the device's queue short.
const TAKEN_IN: usize = 64;
/// Answers sent before queries are taken in again.
const BATCH: usize = 256;
/// Queries that the receiver answers itself, and what it sends then: as much as keeps it from the device for some ten
/// microseconds. An acknowledgement of a table's window sends the next one.
const AT_ONCE: usize = 16;
const AT_ONCE_ANSWERS: usize = 128;
/// Those who subscribed to events, with whom the receiver registers others itself: each may have to be told.
const FEW_TO_TELL: usize = 64;
/// Time from one telling of the groups to the next. A storm of joins costs one computation of the tables for each, and one join
/// waits for no other.
const GROUPS_PACE: Duration = Duration::from_millis(10);
const TURN: Duration = Duration::from_millis(200);
/// How long answers are sent after the last query was taken in.
const END: Duration = Duration::from_secs(1);
/// How long the device waits for the answer to a Report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two tellings of what was counted.
const FIGURES: Duration = Duration::from_secs(1);

/// What the thread shares with the others.
pub(super) struct Channels {
    /// Datagrams of the class.
    pub(super) queries: Receiver<Vec<Datagram>>,
    /// Traps that subscribers may want to hear of. Those too many are dropped.
    pub(super) notices: Receiver<Notice>,
    /// What the subnet manager is to do. One wish waits at most; what comes up meanwhile is in the next.
    pub(super) wishes: Sender<Wish>,
    /// Registrations to go on with; sent before the picture that they belong to.
    pub(super) restores: Receiver<Entries>,
    /// Where changed registrations are kept.
    pub(super) keeper: Sender<Job>,
    /// What was counted, for those who watch. What is not taken in time is dropped.
    pub(super) figures: Sender<Figures>,
    /// What the subnet manager is at this moment.
    pub(super) standing: Arc<Standing>,
    /// UNIX time of the start.
    pub(super) epoch: Epoch,
    /// The start of the run.
    pub(super) start: Instant,
}

/// The thread; ends when it is dropped.
pub(super) struct SaThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SaThread {
    pub(super) fn start(
        transport: &Arc<dyn Transport>,
        channels: Channels,
        snapshot: &Arc<ArcSwapOption<Snapshot>>,
        config: ServerConfig,
    ) -> Result<(Self, Arc<Desk>), DaemonError> {
        let stop = Arc::new(AtomicBool::new(false));
        let desk = Arc::new(Desk {
            transport: Arc::clone(transport),
            channels,
            snapshot: Arc::clone(snapshot),
            workers: Workers::start(config.workers)?,
            state: Mutex::new(State::new(Server::new(config))),
        });
        let (of_thread, until) = (Arc::clone(&desk), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("sa".into())
            .spawn(move || of_thread.run(&until))
            .map_err(DaemonError::Thread)?;
        Ok((Self { stop, thread: Some(thread) }, desk))
    }
}

impl Drop for SaThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the subnet manager was told.
#[derive(Default)]
struct Told {
    /// Generation of the groups.
    groups: u64,
    /// When the groups may be told anew.
    groups_at: Timestamp,
    /// Generation of the alias GUIDs.
    aliases: u64,
    /// Nodes to be read that it was not told yet.
    unread: BTreeSet<Guid>,
}

/// What is at work here: of one thread at a time.
struct State {
    server: Server,
    told: Told,
    unwritten: Unwritten,
    counters: Counters,
    figures_at: Timestamp,
    /// Whether answers wait that can be sent at once.
    more: bool,
    /// Until when the thread sleeps if nothing comes.
    sleeps_until: Timestamp,
    /// Whether the end of a commit wakes the thread.
    hears_commits: bool,
}

impl State {
    fn new(server: Server) -> Self {
        Self {
            server,
            told: Told::default(),
            unwritten: Unwritten::default(),
            counters: Counters::default(),
            figures_at: Timestamp::ZERO,
            more: false,
            sleeps_until: Timestamp::ZERO,
            hears_commits: false,
        }
    }
}

impl State {
    /// Whether the subnet manager does not know the groups as they are.
    fn has_groups_to_tell(&self) -> bool {
        self.server.registry().groups.generation() != self.told.groups
    }
}

/// Subnet administration with all that it needs: the thread `sa` works here, and the receiver where there is little to do,
/// for waking another thread costs more than most answers.
pub(super) struct Desk {
    transport: Arc<dyn Transport>,
    channels: Channels,
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    workers: Workers,
    state: Mutex<State>,
}

/// What came of [`Desk::serve_at_once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtOnce {
    /// The queries were not taken: they go to the thread.
    NotTaken,
    /// All is answered.
    Done,
    /// The queries were taken, and the thread has to go on.
    GoOn,
}

impl Desk {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.channels.start.elapsed())
    }

    fn leads(&self) -> bool {
        self.channels.standing.leads(self.now())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers queries that take no time, in the caller's thread, when nobody is at work here and nothing waits: the bounds and
    /// turns of those who ask are as if the thread had taken them. Never waits.
    pub(super) fn serve_at_once(&self, queries: &[Datagram]) -> AtOnce {
        let brief = |query: &Datagram| is_light(query) || is_registration(query);
        let few = queries.len() <= AT_ONCE && queries.iter().all(brief);
        let keeper = &self.channels.keeper;
        // Whoever reads the device must not have to wait for a store.
        let kept_soon = keeper.capacity().is_none_or(|most| keeper.len() < most / 2);
        if !few || !kept_soon || !self.channels.queries.is_empty() || !self.channels.restores.is_empty() {
            return AtOnce::NotTaken;
        }
        let picture = self.snapshot.load();
        let (Ok(mut state), Some(snapshot)) = (self.state.try_lock(), &*picture) else {
            return AtOnce::NotTaken;
        };
        let state = &mut *state;
        if state.more || !state.server.is_idle_with(snapshot) {
            return AtOnce::NotTaken;
        }
        let registers = queries.iter().any(is_registration);
        if registers && state.server.registry().subscriptions.iter().nth(FEW_TO_TELL).is_some() {
            return AtOnce::NotTaken;
        }
        let now = self.now();
        if let Some(told) = &*self.channels.standing.told.load() {
            state.server.note_told(told, now);
        }
        for query in queries {
            state.server.receive(query, snapshot, now);
        }
        let mut answers = Vec::with_capacity(queries.len());
        while answers.len() < AT_ONCE_ANSWERS
            && let Some(answer) = state.server.poll_send(now)
        {
            answers.push(answer);
        }
        state.more = answers.len() == AT_ONCE_ANSWERS;
        let unwritten = state.unwritten.len();
        let changes = if registers { state.server.take_changes(self.channels.epoch) } else { Vec::new() };
        self.send_all(&state.unwritten.keep(answers, changes, keeper, self.leads()));
        self.channels.standing.note_queued(state.server.queued() + state.unwritten.len(), now);
        let earlier = state.server.deadline().is_some_and(|at| at < state.sleeps_until);
        let unheard = state.unwritten.len() > unwritten && !state.hears_commits;
        let unwished = state.unwritten.len() == 0 && state.has_groups_to_tell();
        let goes_on = state.more || earlier || unheard || unwished;
        if goes_on { AtOnce::GoOn } else { AtOnce::Done }
    }

    fn run(&self, stop: &AtomicBool) {
        run_before_others();
        while !stop.load(Ordering::Acquire) {
            let (wait, written) = self.prepare_to_sleep();
            let (mut batch, mut computed, mut commit_written) = (None, None, None);
            select! {
                recv(written) -> commit => commit_written = commit.ok(),
                recv(self.channels.queries) -> queries => match queries {
                    Ok(queries) => batch = Some(queries),
                    Err(_) => break,
                },
                recv(self.workers.done) -> done => computed = done.ok(),
                default(wait) => {}
            }
            let state = &mut *self.state();
            for batch in batch.into_iter().chain(self.channels.queries.try_iter().take(TAKEN_IN)) {
                self.take(&mut state.server, &batch);
            }
            if let Some(commit) = commit_written {
                state.unwritten.written(commit);
            }
            for (request, answer) in computed.into_iter().chain(self.workers.done.try_iter()) {
                state.server.computed(&request, answer, self.now());
            }
            self.turn(state);
        }
        let state = &mut *self.state();
        self.finish(&mut state.server, &mut state.unwritten);
        state.counters.tell(&state.server);
    }

    /// How long to sleep at most, and what tells that something was written.
    fn prepare_to_sleep(&self) -> (Duration, Receiver<u64>) {
        let state = &mut *self.state();
        let now = self.now();
        let idle = state.server.deadline().map_or(TURN, |at| (at - now).min(TURN));
        let wait = if state.more {
            Duration::ZERO
        } else {
            let groups = state.has_groups_to_tell().then(|| state.told.groups_at - now);
            [state.unwritten.patience(), groups].into_iter().flatten().fold(idle, Duration::min)
        };
        let leads = self.leads();
        (state.sleeps_until, state.hears_commits) = (now + wait, leads);
        (wait, state.unwritten.next(leads))
    }

    /// Everything that is to be done after something came or time has passed.
    fn turn(&self, state: &mut State) {
        let State { server, told, unwritten, .. } = state;
        if let Some(snapshot) = self.picture(server) {
            server.set_snapshot(&snapshot, self.now());
        }
        server.set_act_count(self.channels.standing.act_count.load(Ordering::Relaxed));
        for notice in self.channels.notices.try_iter().take(BATCH) {
            server.notice(&notice);
        }
        while let Some(job) = server.poll_heavy(self.now()) {
            let _ = self.workers.jobs.send(job);
        }
        self.send_all(&unwritten.take_written(self.leads()));
        let more = self.send(server, unwritten);
        self.channels.standing.note_queued(server.queued() + unwritten.len(), self.now());
        self.wish(server, told);
        state.more = more;
        state.counters.tell_sometimes(&state.server, self.now());
        if self.now() >= state.figures_at {
            state.figures_at = self.now() + FIGURES;
            let _ = self.channels.figures.try_send(state.server.figures());
        }
    }

    /// Nothing is taken in any more: what was, is answered, as far as [`END`] allows; long tables under way are left out.
    fn finish(&self, server: &mut Server, unwritten: &mut Unwritten) {
        let end = Instant::now() + END;
        for batch in self.channels.queries.try_iter() {
            self.take(server, &batch);
        }
        while self.send(server, unwritten) && Instant::now() < end {}
        while let Some(patience) = unwritten.patience()
            && Instant::now() < end
        {
            let _ = unwritten.next(true).recv_timeout(patience.min(END));
            self.send_all(&unwritten.take_written(self.leads()));
        }
    }

    /// Sends a batch of answers. Whether there are more: then queries are taken in between, so that those beyond the
    /// server's bounds get BUSY and not silence (B47).
    fn send(&self, server: &mut Server, unwritten: &mut Unwritten) -> bool {
        let mut answers = Vec::new();
        while answers.len() < BATCH {
            let Some(answer) = server.poll_send(self.now()) else { break };
            answers.push(answer);
        }
        let more = answers.len() == BATCH;
        let changes = server.take_changes(self.channels.epoch);
        self.send_all(&unwritten.keep(answers, changes, &self.channels.keeper, self.leads()));
        more
    }

    fn send_all(&self, answers: &[Datagram]) {
        for answer in answers {
            let timeout = (answer.mad.header.method() == Method::REPORT).then_some(REPORT_TIMEOUT);
            if let Err(error) = self.transport.send(answer, timeout) {
                tracing::debug!(lid = answer.address.lid, %error, "an SA answer was not sent");
            }
        }
    }

    /// Tells what is wished. While the last wish still waits, the next turn tells it.
    fn wish(&self, server: &mut Server, told: &mut Told) {
        told.unread.append(&mut server.take_unread());
        let generation = server.registry().groups.generation();
        let now = self.now();
        if generation != told.groups && now >= told.groups_at {
            told.groups_at = now + GROUPS_PACE;
            if self.channels.wishes.is_full() || !self.tell(Wish::Multicast(Arc::new(server.demand()))) {
                return;
            }
            told.groups = generation;
        }
        let aliases = server.registry().aliases.table();
        if aliases.generation() != told.aliases && !self.tell(Wish::Aliases(Arc::clone(aliases))) {
            return;
        }
        told.aliases = aliases.generation();
        if !told.unread.is_empty() && self.tell(Wish::QosTables(told.unread.clone())) {
            told.unread.clear();
        }
    }

    /// Whether the wish was taken, or nobody is there any more to take it.
    fn tell(&self, wish: Wish) -> bool {
        !matches!(self.channels.wishes.try_send(wish), Err(TrySendError::Full(_)))
    }

    /// Before the first snapshot there is nothing to answer from: the sender asks again.
    fn take(&self, server: &mut Server, batch: &[Datagram]) {
        if let Some(snapshot) = self.picture(server) {
            for query in batch {
                server.receive(query, &snapshot, self.now());
            }
        }
    }

    /// The picture to answer from, with the registrations that were kept for it taken over.
    fn picture(&self, server: &mut Server) -> Option<Arc<Snapshot>> {
        let snapshot = self.snapshot.load_full()?;
        // Read before: registrations that it is about are sent first.
        let told = self.channels.standing.told.load_full();
        for entries in self.channels.restores.try_iter() {
            server.restore(&entries, self.channels.epoch, self.now());
        }
        if let Some(told) = told {
            server.note_told(&told, self.now());
        }
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests;
