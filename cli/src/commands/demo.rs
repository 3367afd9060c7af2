//! `rsm demo`: the whole subnet manager, its threads and its wire formats, against a simulated fabric in this process.
//! Every claim that it prints is judged by the simulated switches' own tables, not by what the manager believes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use mad::types::Guid;
use routing::fabric::Fabric;
use simulations::generate::{Options, Topology, generate};
use simulations::memory::{MemoryFabric, PortTransport};
use simulations::world;
use sm_core::config::LogConfig;
use sm_core::daemon::{self, Control, Hooks, Setup};
use sm_core::sa::ServerConfig;
use sm_core::settings::SmSettings;
use sm_core::sm::Report;

use crate::args::Demo;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::{logging, out, summary};

/// Shape of the demonstration's tree.
const LEAVES: u16 = 6;
const SPINES: u16 = 3;
const HOSTS_PER_LEAF: u16 = 6;
/// Longest wait for the manager to finish something.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(args: &Demo) -> Outcome {
    let log = logging::init(&LogConfig { level: args.log_level, ..LogConfig::default() })?;
    let tree = generate(&Topology::tree(LEAVES, SPINES, HOSTS_PER_LEAF), &Options::default())?;
    let fabric = MemoryFabric::new(&tree, world::Config::default());
    let first = tree.nodes().find(|(_, node)| !node.is_switch()).map(|(_, node)| node.description.clone());
    let transport = first.and_then(|name| fabric.attach(&name, 1)).context("the fabric has no host")?;
    out::line(&format!(
        "A fat tree of {} hosts: {LEAVES} leaf switches, {SPINES} spines. Nothing is configured yet.\n",
        LEAVES * HOSTS_PER_LEAF
    ))?;
    let (controls, control) = bounded(4);
    let (reports_in, reports) = bounded(1024);
    let progress = Progress::start(&log, "bringing up");
    thread::scope(|scope| {
        let manager = scope.spawn(move || {
            let transport = Arc::new(transport);
            let setup = setup(&transport);
            let mut progress = Some(progress);
            let hooks = Hooks {
                is_sm: Box::new(move |on| {
                    transport.set_is_sm(on);
                    Ok(())
                }),
                report: Box::new(move |report| {
                    drop(progress.take());
                    // Nobody reads on when the demonstration has failed.
                    let _ = reports_in.try_send(report.clone());
                }),
                ..Hooks::default()
            };
            daemon::run(setup, hooks, &control)
        });
        let shown = show(&fabric, &tree, &reports);
        // The manager may be gone already; its own error says why then.
        let _ = controls.send(Control::Stop);
        let ended =
            manager.join().map_err(|_| Failure::Failed(anyhow!("the subnet manager's thread died")))?;
        ended?;
        shown
    })?;
    out::line("The same on a real fabric: rsm run. On a simulated one with stock tools: see the README.")
}

fn setup(transport: &Arc<PortTransport>) -> Setup {
    Setup {
        transport: Arc::clone(transport) as Arc<_>,
        own: Guid::NONE,
        settings: SmSettings::default(),
        state_dir: None,
        state_sync: sm_core::config::StateSync::Grouped,
        reassign: false,
        sa: ServerConfig::default(),
        mirror: None,
        etcd: None,
    }
}

/// The story: up, a cable pulled, a spine lost, all back.
fn show(fabric: &MemoryFabric, tree: &Fabric, reports: &Receiver<Report>) -> Outcome {
    let report = settled(reports, |_| true)?;
    out::write(&summary::as_text(&report))?;
    out::line(&format!("\nTopology: {}", summary_of(tree)))?;
    judge(fabric)?;

    let names: Vec<String> = switch_names(tree);
    let (leaf, spine) = (&names[0], &names[names.len() - 1]);
    let uplink = u8::try_from(HOSTS_PER_LEAF + 1)?;
    change(fabric, reports, &format!("Pulling the cable at port {uplink} of {leaf}"), || {
        fabric.unlink(leaf, uplink)
    })?;
    change(fabric, reports, "Plugging it in again", || fabric.relink(leaf, uplink))?;
    let ports = 1..=u8::try_from(LEAVES)?;
    change(fabric, reports, &format!("Taking down the spine {spine}"), || {
        ports.clone().all(|port| fabric.unlink(spine, port))
    })?;
    change(fabric, reports, "Bringing it back", || ports.clone().all(|port| fabric.relink(spine, port)))
}

/// Something happens to the fabric, the manager mends it, the switches' tables are judged.
fn change(
    fabric: &MemoryFabric,
    reports: &Receiver<Report>,
    what: &str,
    action: impl FnOnce() -> bool,
) -> Outcome {
    while reports.try_recv().is_ok() {}
    fabric.reset_stats();
    let start = Instant::now();
    if !action() {
        return Err(anyhow!("{what}: the fabric has no such cable").into());
    }
    let report =
        settled(reports, |report| report.verdict.is_some() && fabric.with(|w| w.check().is_right(false)))?;
    let sets: Vec<String> = report.sets.iter().map(|(name, count)| format!("{name} {count}")).collect();
    out::line(&format!(
        "\n{what}: mended after {:.1} ms; Sets: {}",
        start.elapsed().as_secs_f64() * 1000.0,
        if sets.is_empty() { "none".to_owned() } else { sets.join(", ") }
    ))?;
    judge(fabric)
}

/// The next report of a round that left nothing open and satisfies `done`.
fn settled(reports: &Receiver<Report>, done: impl Fn(&Report) -> bool) -> Outcome<Report> {
    let end = Instant::now() + LIMIT;
    loop {
        match reports.recv_deadline(end) {
            Ok(report) if report.is_complete() && done(&report) => return Ok(report),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Err(anyhow!("not done after {LIMIT:?}").into()),
            Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the subnet manager has ended").into()),
        }
    }
}

/// What the simulated switches' own tables say.
fn judge(fabric: &MemoryFabric) -> Outcome {
    let verdict = fabric.with(|world| world.check());
    out::line(&format!("The switches' own tables: {}", verdict.routes))?;
    out::line(&format!("Forwarding loops at any moment so far: {}", verdict.loops))?;
    if verdict.is_right(false) { Ok(()) } else { Err(anyhow!("the fabric is not right:\n{verdict}").into()) }
}

fn switch_names(tree: &Fabric) -> Vec<String> {
    tree.switches().map(|(_, node)| node.description.clone()).collect()
}

fn summary_of(tree: &Fabric) -> String {
    format!(
        "{} nodes, {} links; switches {}",
        tree.node_count(),
        tree.link_count(),
        switch_names(tree).join(" ")
    )
}
