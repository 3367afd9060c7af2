//! The thread that answers subnet administration from the last snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use super::sa_workers::Workers;
use super::unwritten::Unwritten;
use crate::sa::{Figures, Server, ServerConfig, Wish};
use crate::snapshot::Snapshot;
use crate::store::{Entries, Epoch};

/// Batches of queries taken in before answers are sent; keeps the device's queue short.
const TAKEN_IN: usize = 64;
/// Answers sent before queries are taken in again.
const BATCH: usize = 256;
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
    ) -> Result<Self, DaemonError> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            transport: Arc::clone(transport),
            channels,
            snapshot: Arc::clone(snapshot),
            stop: Arc::clone(&stop),
            workers: Workers::start(config.workers)?,
        };
        let thread = std::thread::Builder::new()
            .name("sa".into())
            .spawn(move || work.run(Server::new(config)))
            .map_err(DaemonError::Thread)?;
        Ok(Self { stop, thread: Some(thread) })
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
    /// Generation of the alias GUIDs.
    aliases: u64,
    /// Nodes to be read that it was not told yet.
    unread: BTreeSet<Guid>,
}

struct Work {
    transport: Arc<dyn Transport>,
    channels: Channels,
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    stop: Arc<AtomicBool>,
    workers: Workers,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.channels.start.elapsed())
    }

    fn leads(&self) -> bool {
        self.channels.standing.leads(self.now())
    }

    fn run(self, mut server: Server) {
        let (mut told, mut more, mut unwritten) = (Told::default(), false, Unwritten::default());
        let (mut counters, mut figures_at) = (Counters::default(), Timestamp::ZERO);
        while !self.stop.load(Ordering::Acquire) {
            let idle = server.deadline().map_or(TURN, |at| (at - self.now()).min(TURN));
            let wait =
                if more { Duration::ZERO } else { unwritten.patience().map_or(idle, |at| at.min(idle)) };
            select! {
                recv(unwritten.next(self.leads())) -> _ => {}
                recv(self.channels.queries) -> batch => match batch {
                    Ok(batch) => self.take(&mut server, &batch),
                    Err(_) => break,
                },
                recv(self.workers.done) -> done => if let Ok((request, answer)) = done {
                    server.computed(&request, answer, self.now());
                },
                default(wait) => {}
            }
            for batch in self.channels.queries.try_iter().take(TAKEN_IN) {
                self.take(&mut server, &batch);
            }
            for (request, answer) in self.workers.done.try_iter() {
                server.computed(&request, answer, self.now());
            }
            if let Some(snapshot) = self.picture(&mut server) {
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
            more = self.send(&mut server, &mut unwritten);
            self.channels.standing.note_queued(server.queued() + unwritten.len(), self.now());
            self.wish(&mut server, &mut told);
            counters.tell_sometimes(&server, self.now());
            if self.now() >= figures_at {
                figures_at = self.now() + FIGURES;
                let _ = self.channels.figures.try_send(server.figures());
            }
        }
        self.finish(&mut server, &mut unwritten);
        counters.tell(&server);
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
        if generation != told.groups && !self.tell(Wish::Multicast(Arc::new(server.demand()))) {
            return;
        }
        told.groups = generation;
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
        for entries in self.channels.restores.try_iter() {
            server.restore(&entries, self.channels.epoch, self.now());
        }
        Some(snapshot)
    }
}
