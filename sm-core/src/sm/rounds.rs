//! Rounds: sweep, plan, apply, and what is concluded from each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mad::types::{PortNum, PortState, Timestamp};

use super::election::Verdict;
use super::report::{Report, Role, seconds};
use super::role::Confirmation;
use super::wishes::Generation;
use super::{Action, MadCounts, Phase, Sm, StageSeconds, Token};
use crate::apply::{Applied, Apply};
use crate::keys::KeyRing;
use crate::observed::{FindingKind, Observed};
use crate::plan::{Plan, PlanError, PlanInput, own_end, port_tables};
use crate::snapshot::{SmFacts, Snapshot};
use crate::sweep::{PKeyReading, Sweep, SweepError, SweepResult, SweepSettings};

/// After this many rounds in a row that left something open, the next waits for the interval.
const QUICK_ROUNDS: u32 = 4;
/// Least time between the beginnings of two looks that traps ask for.
const LOOK_GAP: Duration = Duration::from_millis(100);
/// Pause before a round that repeats what failed.
const PAUSE: Duration = Duration::from_millis(200);
/// Where the interval is 0: how long to wait with what is left open.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// The round under way, or the last one.
#[derive(Debug, Default)]
pub(super) struct Round {
    number: u64,
    full: bool,
    began: Generation,
    sweep_began: Timestamp,
    plan_began: Timestamp,
    apply_began: Timestamp,
    /// Which registrations the SA had then.
    tell_era: u32,
    /// When the other managers were last asked who is master.
    confirmed: Timestamp,
    /// Dangling ports asked in this look.
    asked: Vec<(mad::types::Guid, PortNum)>,
    report: Option<Box<Report>>,
    /// Whether the last round left something open: Sets not confirmed, LIDs waited for, questions unanswered.
    open: bool,
    /// Whether the last plan was not applied as a whole, so that the next round applies one, whatever a look finds.
    retry: bool,
    /// Rounds in a row that left something open.
    quick: u32,
    pub(super) generation: u64,
}

impl Round {
    /// When the sweep of the round began.
    pub(super) const fn sweep_began(&self) -> Timestamp {
        self.sweep_began
    }

    /// From when on everything in the picture was read in this round; a look keeps what has not changed.
    pub(super) const fn walked_since(&self) -> Timestamp {
        if self.full { self.sweep_began } else { Timestamp::ZERO }
    }

    /// Whether there is nothing left open, or too little hope to hurry.
    pub(super) const fn is_settled(&self) -> bool {
        self.number > 0 && self.report.is_none() && (!self.open || self.quick > QUICK_ROUNDS)
    }
}

impl Sm {
    /// Goes on as far as it can without an answer.
    pub(super) fn advance(&mut self, now: Timestamp) {
        loop {
            self.submit(now);
            let over = match &self.phase {
                Phase::Idle => self.begin_round(now) || self.begin_multicast(now),
                Phase::Sweeping(sweep) => sweep.is_done(),
                Phase::Planning => false,
                Phase::Confirming(confirmation) => confirmation.open == 0,
                Phase::Applying(apply) => apply.is_done() || apply.waits_to_lead(),
                Phase::Multicast(apply) => apply.is_done(),
            };
            if !over {
                return;
            }
            match std::mem::replace(&mut self.phase, Phase::Idle) {
                Phase::Sweeping(sweep) if sweep.is_done() => self.swept(*sweep, now),
                Phase::Confirming(confirmation) => self.confirmed(*confirmation, now),
                Phase::Applying(apply) if apply.waits_to_lead() => self.confirm_again(apply),
                Phase::Applying(apply) => self.applied(apply.finish(), now),
                Phase::Multicast(apply) if apply.is_done() => self.multicast_applied(apply.finish(), now),
                other => self.phase = other,
            }
        }
    }

    /// Hands the stage's next requests to the engine, as many as its window can use.
    fn submit(&mut self, now: Timestamp) {
        let lapsed = now - self.round.confirmed > self.lapse();
        if let Phase::Applying(apply) = &mut self.phase {
            apply.knows_to_lead(!lapsed);
            apply.at(now);
        }
        for (request, token) in self.strays.due(now) {
            self.transactions.submit(request.into_transaction(), token);
        }
        while self.transactions.is_hungry() {
            let next = match &mut self.phase {
                Phase::Sweeping(sweep) => sweep.next_request().map(|(r, ask)| (r, Token::Sweep(ask))),
                Phase::Applying(apply) => apply.next_request().map(|(r, job)| (r, Token::Apply(job))),
                Phase::Multicast(apply) => apply.next_request().map(|(r, job)| {
                    let keyed =
                        self.observed.as_ref().map_or(r, |observed| r.with_key(&self.ground.keys, observed));
                    (keyed, Token::Multicast(job))
                }),
                Phase::Idle | Phase::Planning | Phase::Confirming(_) => None,
            };
            let Some((request, token)) = next else { return };
            if let Some((request, token)) = self.strays.hold(request, token, now) {
                self.transactions.submit(request.into_transaction(), token);
            }
        }
    }

    /// Begins a round if there is a reason for one. True when it began.
    fn begin_round(&mut self, now: Timestamp) -> bool {
        if self.transactions.in_flight() + self.transactions.queued() > self.stale_requests {
            return false;
        }
        self.poll(now);
        if matches!(self.role(), Role::Standby | Role::NotActive) {
            return false;
        }
        // Where cables were moved, nothing is set by the routes of a picture that is about to be made anew.
        if !self.wishes.wants_full() {
            self.ask_renamed();
            self.tell_some(now);
        }
        self.balance(now);
        if self.balance_is_open() {
            return false;
        }
        let begins = self.round_due().is_some_and(|at| at <= now);
        if begins {
            self.begin_sweep(self.wishes.wants_full() || self.observed.is_none(), now);
        }
        begins
    }

    /// When the next round begins, as far as is known now; [`Timestamp::ZERO`]: at once.
    pub(super) fn round_due(&self) -> Option<Timestamp> {
        if self.wishes.wants_full() {
            return Some(Timestamp::ZERO);
        }
        if self.observed.is_none() {
            return self.next_look;
        }
        let wished = self.wishes.wants_look().then(|| self.look_allowed());
        let replan = self.wishes.wants_replan().then_some(Timestamp::ZERO);
        [self.next_look, self.watch.deadline(), wished, replan, self.renewal_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the next look that traps ask for may begin: however many come, there are no more than ten a second (B65).
    pub(super) fn look_allowed(&self) -> Timestamp {
        if self.round.number == 0 { Timestamp::ZERO } else { self.round.sweep_began + LOOK_GAP }
    }

    fn begin_sweep(&mut self, full: bool, now: Timestamp) {
        let round = &mut self.round;
        round.number += 1;
        round.full = full;
        round.began = self.wishes.begin();
        round.sweep_began = now;
        round.report = Some(Box::new(Report::new(round.number, Role::of(self.election.state()))));
        self.stats_at_start = self.transactions.stats();
        self.next_look = None;
        let examined = !self.foreign_tables;
        if full && std::mem::take(&mut self.foreign_tables) {
            self.ground.tables = Arc::default();
        }
        let settings = SweepSettings {
            read_tables: true,
            known_tables: self.ground.tables.switches_without_doubt().collect(),
            pkeys: PKeyReading::of(&self.settings.plan.partitions),
            aliases: Arc::clone(&self.aliases),
            qos_of: if full { BTreeSet::new() } else { std::mem::take(&mut self.tables_wanted) },
            ask_managers: true,
            silent_manager: self.silent_manager(),
            introduction: Some(self.sm_info()),
            keys: Arc::clone(&self.ground.keys),
            own: self.own.guid,
            raised: self.raised.iter().copied().collect(),
            acknowledge_changes: self.election.leads() && examined,
            first_serial: self.round.number << 32,
        };
        let sweep = match self.observed.clone().filter(|_| !full) {
            Some(observed) => {
                let hurry = self.round.open && self.round.quick <= QUICK_ROUNDS;
                let watched = if hurry { self.watch.all() } else { self.watch.due(now) };
                let mut doubtful: Vec<_> = self
                    .wishes
                    .take_doubtful()
                    .into_iter()
                    .filter_map(|lid| {
                        let end = self.snapshot.as_ref()?.end_port(lid)?;
                        Some((observed.fabric.get(end.node)?.guid, end.port))
                    })
                    .collect();
                doubtful.append(&mut self.changed_meanwhile);
                doubtful.extend(self.renew_leases(&observed, now));
                self.round.asked.clone_from(&watched);
                Sweep::look(settings, observed, &watched, &doubtful)
            }
            None => {
                self.round.asked = self.watch.all();
                self.wishes.take_doubtful();
                Sweep::full(settings)
            }
        };
        self.phase = Phase::Sweeping(Box::new(sweep));
    }

    fn swept(&mut self, sweep: Sweep, now: Timestamp) {
        self.stale_requests += sweep.given_up_requests();
        let result = match sweep.finish(self.observed.as_ref()) {
            Ok(result) if !self.round.full && self.own_link_fell(&result.observed) => {
                return self.walk_anew("our own link was down: its cable may lead elsewhere now", now);
            }
            Ok(result) => result,
            Err(error @ SweepError::Moved) => return self.walk_anew(&error.to_string(), now),
            Err(error) => return self.nothing_found(&error, now),
        };
        if self.round.full {
            self.wishes.full_done(self.round.began);
            self.stuck.clear();
        } else {
            self.wishes.look_done(self.round.began);
        }
        let SweepResult { observed, tables, reset, findings, changed, look_again, keys, own_twin } = result;
        self.adopt_keys(keys);
        let known_before = self.before_others.take_if(|_| self.round.full);
        if known_before.is_some_and(|known| known.contradicts(&tables)) && self.role() == Role::Master {
            self.serve_nobody(); // ports registered with whoever wrote those
        }
        if changed {
            let known = Arc::make_mut(&mut self.ground.tables);
            reset.iter().for_each(|guid| known.forget(*guid));
            reset.iter().for_each(|guid| self.multicast.known.forget(*guid));
            self.multicast.foreign.extend(tables.keys());
            known.take(tables);
            known.retain_present(&observed);
            self.multicast.known.retain_present(&observed.fabric);
        }
        let new_silence = self.watch.update(&observed, &self.round.asked, now);
        self.own.guid = observed.fabric.port(own_end(&observed)).map_or(self.own.guid, |p| p.guid);
        let unanswered = new_silence
            || findings.iter().any(|f| matches!(f.kind, FindingKind::Unanswered | FindingKind::Moved));
        if look_again {
            self.wishes.look();
        }
        if !unanswered {
            self.raised.clear();
        }
        if let Some(report) = &mut self.round.report {
            report.findings = findings.iter().map(|f| f.text.clone()).collect();
            report.count(&observed);
            report.seconds.sweep = seconds(now - self.round.sweep_began);
        }
        let before = self.observed.replace(Arc::clone(&observed));
        if !self.local_port_is_up(&observed) {
            return self.link_is_down(now);
        }
        if changed && self.role() == Role::Master {
            self.tell.retain_present(&observed);
        }
        if self.may_have_missed_others(before.as_deref(), &observed) {
            self.foreign_tables = true;
            self.wishes.full();
            self.carry_out(now);
            return self.close_round(now);
        }
        let verdict = self.meet(&observed);
        if verdict == Verdict::Lead && own_twin && self.role() != Role::Master {
            // Neither could be told from the other by anybody. Whoever is master already goes on: anybody can claim a GUID.
            self.fail("another manager runs under our own GUID: nothing is written until it is gone".into());
            self.round.open = true;
            self.observed = None; // so that the next round walks from nothing
            return self.close_round(now);
        }
        if verdict != Verdict::Lead {
            self.explain(verdict);
            self.carry_out(now);
            return self.close_round(now);
        }
        self.check_memory(&observed);
        if self.tell.was_restored() && self.was_another_s(&observed) {
            self.serve_nobody();
        }
        let replan = self.wishes.wants_replan();
        self.round.open = unanswered;
        if changed || replan || self.round.retry || self.plan.is_none() {
            self.begin_plan(observed, now);
        } else if let Some(plan) = self.with_aliases(&observed) {
            self.confirm(Arc::new(plan), &observed);
        } else {
            self.end_round(now);
        }
    }

    fn begin_plan(&mut self, observed: Arc<Observed>, now: Timestamp) {
        self.round.plan_began = now;
        self.wishes.plan_done(self.round.began);
        self.phase = Phase::Planning;
        self.actions.push_back(Action::Plan(Box::new(PlanInput {
            memory: self.memory_for_plan(&observed),
            observed,
            settings: self.settings.plan.clone(),
            stuck: self.stuck.iter().copied().chain(self.refusing()).collect(),
            keys: Arc::clone(&self.ground.keys),
            reassign: self.reassign,
            tables: Arc::clone(&self.ground.tables),
            previous: self.plan.clone(),
            measured: self.balance.take(),
            aliases: Arc::clone(&self.aliases),
        })));
    }

    /// The plan in force with the blocks of alias GUIDs that are not in the ports yet; `None` where all are.
    fn with_aliases(&self, observed: &Observed) -> Option<Plan> {
        let tables = port_tables::plan_aliases(observed, &self.aliases);
        let plan = self.plan.as_ref().filter(|_| !tables.is_empty())?;
        Some(plan.with_port_tables_only(tables))
    }

    pub(super) fn planned(&mut self, result: Result<Plan, PlanError>, now: Timestamp) {
        if self.stale_plans > 0 {
            self.stale_plans -= 1;
            return;
        }
        if !matches!(self.phase, Phase::Planning) {
            return;
        }
        self.phase = Phase::Idle;
        let plan_time = seconds(now - self.round.plan_began);
        let Some(observed) = self.observed.clone() else { return };
        match result {
            Ok(plan) => {
                if let Some(report) = &mut self.round.report {
                    report.seconds.plan = plan_time;
                    report.verdict = Some(plan.verdict.clone());
                    report.moved = plan.moved;
                    report.findings.extend(plan.findings.iter().cloned());
                    count_lids(report, &plan, &observed);
                }
                self.confirm(Arc::new(plan), &observed);
            }
            Err(error) => {
                (self.round.open, self.round.retry) = (true, true);
                self.fail(error.to_string());
                self.end_round(now);
            }
        }
    }

    /// The other managers were asked once more: the plan is applied, unless one of them is in charge by now.
    fn confirmed(&mut self, mut confirmation: Confirmation, now: Timestamp) {
        let peers = self.peers(&confirmation.managers);
        let verdict = if confirmation.own_link_fell { None } else { Some(self.election.confirmed(&peers)) };
        let mut half_applied = confirmation.applied.take();
        if verdict != Some(Verdict::Lead) {
            self.round.retry = true;
            half_applied.take().into_iter().for_each(|apply| self.take_half(*apply));
        }
        match verdict {
            None => return self.walk_anew("our own link fell while we looked", now),
            Some(Verdict::Lead) => self.round.confirmed = now,
            Some(verdict) => {
                self.explain(verdict);
                self.carry_out(now);
                return self.close_round(now);
            }
        }
        if let Some(apply) = half_applied {
            self.phase = Phase::Applying(apply);
            return;
        }
        let Some(observed) = self.observed.take() else { return };
        self.reassign = false;
        self.answer_before_telling(&confirmation.plan, &observed);
        if let Some(snapshot) =
            self.snapshot.as_ref().and_then(|s| s.while_given(&confirmation.plan.lids.given))
        {
            self.round.generation = self.round.generation.max(snapshot.generation);
            let snapshot = Arc::new(snapshot);
            self.snapshot = Some(Arc::clone(&snapshot));
            self.actions.push_back(Action::Publish(snapshot));
        }
        self.expect_keys(&confirmation.plan, &observed);
        self.round.apply_began = now;
        self.round.tell_era = self.tell.era();
        let ground = std::mem::take(&mut self.ground);
        self.ground.keys = Arc::clone(&ground.keys);
        self.plan = Some(Arc::clone(&confirmation.plan));
        let apply = Apply::new(confirmation.plan, observed, ground).verifying_links(self.round.sweep_began);
        self.phase = Phase::Applying(Box::new(apply));
    }

    /// Whoever is told of a new subnet manager asks it at once, and the kernel's clients take a second to ask again. So one that
    /// takes over a fabric in service answers before it tells the first port, from the tables as they were found (B61, B72).
    fn answer_before_telling(&mut self, plan: &Plan, observed: &Arc<Observed>) {
        if self.snapshot.is_some() {
            return;
        }
        self.own.lid = observed.fabric.port(own_end(observed)).and_then(|port| port.lid);
        self.publish(plan, Arc::clone(observed), false);
    }

    fn applied(&mut self, applied: Applied, now: Timestamp) {
        let Some(plan) = self.plan.clone() else { return };
        let Applied { observed, ground, failures, not_kept, counts, stuck, .. } = applied;
        let changed_meanwhile = applied.changed_meanwhile;
        if applied.moved {
            self.wishes.full();
        }
        self.raised.extend(applied.raised);
        self.tell.done(&applied.reregistered, self.round.tell_era);
        self.tell.add(applied.untold);
        self.ground = ground;
        KeyRing::meet_all(&mut self.ground.keys, &observed);
        self.adopt_keys(Arc::clone(&self.ground.keys));
        self.stuck.extend(stuck);
        self.own.lid = observed.fabric.port(own_end(&observed)).and_then(|p| p.lid);
        if let Some(report) = &mut self.round.report {
            report.seconds.apply = seconds(now - self.round.apply_began);
            report.sets = counts.named();
            report.failures.extend(failures.iter().map(ToString::to_string));
            for note in &not_kept {
                *report.not_kept.entry(note.fields.to_string()).or_default() += 1;
            }
        }
        if !not_kept.is_empty() {
            self.actions.push_back(Action::SaveQuirks(Arc::new(self.ground.quirks.clone())));
        }
        self.memory_is_outdated = false;
        if *self.memory != plan.lids.memory {
            self.memory = Arc::new(plan.lids.memory.clone());
            self.actions.push_back(Action::SaveLids(Arc::clone(&self.memory)));
        }
        for guid in &plan.lids.without {
            self.fail(format!("no LID is free for port {guid}"));
        }
        self.round.retry = !failures.is_empty() || !plan.lids.waiting.is_empty();
        self.round.open |= self.round.retry;
        if !changed_meanwhile.is_empty() {
            self.changed_meanwhile = changed_meanwhile;
            self.wishes.look();
        }
        self.tell.add_unserved(&observed, self.settings.plan.client_reregister);
        self.publish(&plan, Arc::clone(&observed), failures.is_empty());
        self.observed = Some(observed);
        self.end_round(now);
    }

    /// Swaps in a new picture. `whole` says that every Set was confirmed, so that the planned tables are those in force.
    fn publish(&mut self, plan: &Plan, observed: Arc<Observed>, whole: bool) {
        let Some(lid) = self.own.lid else { return };
        self.round.generation += 1;
        let routes = if whole {
            Arc::clone(&plan.routes)
        } else {
            Arc::new(confirmed_routes(plan, &self.ground.tables))
        };
        let sm = SmFacts {
            guid: self.own.guid,
            lid,
            priority: self.settings.priority,
            state: self.sm_state().to_wire(),
            act_count: self.act_count,
            sm_key: self.settings.sm_key,
            gid_prefix: self.settings.plan.subnet_prefix,
            subnet_timeout: self.settings.plan.subnet_timeout,
        };
        let graph = Arc::clone(&plan.graph);
        let multicast = Arc::new(self.multicast.known.tables(&graph));
        let snapshot = Snapshot::new(self.round.generation, observed, graph, routes, sm);
        let snapshot = snapshot.with_partitions(Arc::clone(&self.settings.plan.partitions));
        let snapshot = Arc::new(snapshot.with_multicast(self.round.generation, multicast));
        self.snapshot = Some(Arc::clone(&snapshot));
        self.actions.push_back(Action::Publish(snapshot));
    }

    pub(super) fn end_round(&mut self, now: Timestamp) {
        self.tell_again();
        let interval = self.settings.sweep_interval;
        if self.round.open {
            self.round.quick += 1;
            let quick = self.round.quick <= QUICK_ROUNDS;
            let long = if interval.is_zero() { LONG_PAUSE } else { interval };
            self.next_look = Some(now + if quick { PAUSE } else { long });
        } else {
            self.round.quick = 0;
            self.next_look = (!interval.is_zero()).then(|| now + interval);
        }
        let Some(mut report) = self.round.report.take() else { return };
        let locked = self.observed.as_ref().map(|observed| self.locked_ports(observed)).unwrap_or_default();
        let (before, stats) = (self.stats_at_start, self.transactions.stats());
        report.mads = MadCounts {
            sent: stats.sent - before.sent,
            answered: stats.answered - before.answered,
            retried: stats.retried - before.retried,
            timed_out: stats.timed_out - before.timed_out,
            send_errors: stats.send_errors - before.send_errors,
        };
        report.role = self.role();
        report.sm_lid = self.own.lid;
        let total = seconds(now - self.round.sweep_began);
        report.seconds = StageSeconds { total, ..report.seconds };
        if let Some(observed) = &self.observed {
            report.failures.extend(left_out(observed));
            report.failures.extend(locked);
        }
        self.actions.push_back(Action::Report(report));
    }

    /// Ends the round, unless it is over.
    pub(super) fn close_round(&mut self, now: Timestamp) {
        if self.round.report.is_some() {
            self.end_round(now);
        }
    }

    /// Adds to what the round met that was odd.
    pub(super) fn note(&mut self, findings: Vec<String>) {
        if let Some(report) = &mut self.round.report {
            report.findings.extend(findings);
        }
    }

    pub(super) fn fail(&mut self, text: String) {
        if let Some(report) = &mut self.round.report {
            report.failures.push(text);
        }
    }

    /// Ends the round, since what it read may be of other nodes than it asked; the next walks from nothing.
    fn walk_anew(&mut self, why: &str, now: Timestamp) {
        self.note(vec![why.to_owned()]);
        self.wishes.full();
        self.close_round(now);
    }

    /// Whether our own link carried data when the last picture was taken, and had to be trained since.
    fn own_link_fell(&self, now: &Observed) -> bool {
        self.observed.as_ref().and_then(|before| before.local_state()) == Some(PortState::Active)
            && now.local_state() == Some(PortState::Init)
    }

    fn nothing_found(&mut self, error: &SweepError, now: Timestamp) {
        self.wishes.full_done(self.round.began);
        self.observed = None;
        self.round.open = true;
        self.fail(error.to_string());
        self.end_round(now);
    }

    /// Whether others can reach us. Where our own port does not even answer ourselves, a standby finds nobody there.
    fn local_port_is_up(&self, observed: &Observed) -> bool {
        let end = observed.local;
        let alone = end.port == PortNum::MANAGEMENT;
        let answers = observed.port_info(end).is_some();
        alone || (answers && observed.fabric.port(end).is_some_and(|p| p.state.is_up()))
    }

    fn link_is_down(&mut self, now: Timestamp) {
        self.round.open = true;
        self.fail("our own port has no link, or does not answer: there is no fabric to manage".into());
        self.election.link_is_down();
        self.carry_out(now);
        self.observed = None; // so that the next round walks from nothing
        self.close_round(now);
    }
}

/// Places that a complete bring-up must not have.
fn left_out(observed: &Observed) -> Vec<String> {
    let silent = observed.dangling().map(|end| {
        format!("port {} of {} has a link, but nobody usable behind it", end.port, observed.name(end.node))
    });
    let unread = observed
        .unread()
        .map(|end| format!("port {} of {}: PortInfo was not answered", end.port, observed.name(end.node)));
    silent.chain(unread).collect()
}

fn count_lids(report: &mut Report, plan: &Plan, observed: &Observed) {
    for (_, node) in observed.fabric.nodes() {
        for (_, port) in node.end_ports() {
            if let Some(range) = plan.lids.given.get(&port.guid) {
                if port.lid == Some(range.base) { report.lids_kept += 1 } else { report.lids_new += 1 }
            }
        }
    }
}

/// The tables as they are known to be, where they are not as planned.
fn confirmed_routes(plan: &Plan, tables: &crate::apply::KnownTables) -> routing::routes::Routes {
    let mut routes = (*plan.routes).clone();
    for switch in 0..plan.graph.switch_count() as u32 {
        let guid = plan.graph.guid(switch);
        routes.lfts.row_mut(switch).update(|row| {
            for (block, part) in row.chunks_mut(routing::routes::LFT_BLOCK).enumerate() {
                match tables.get(guid, block) {
                    Some(content) => part.copy_from_slice(&content[..part.len()]),
                    None => part.fill(routing::routes::NO_PORT),
                }
            }
        });
    }
    routes
}
