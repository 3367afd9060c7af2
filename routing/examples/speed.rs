//! Prints what routing and verifying cost on fat trees of growing size: `cargo run --release -p routing --example speed`,
//! with names of engines as arguments (all when none is given), largest size by `HOSTS=n`, another
//! topology by `NET=file`. Times are wall and processor time in milliseconds, the best of five (`ROUNDS=n`, and `LOST=n` for
//! the columns after `lost`); a busy machine changes the second less. Those columns are what one lost cable costs from tables in
//! force, a row for one at a switch with hosts (`leaf`) and one elsewhere (`top`): new tables, their proof, and the order of writes
//! with the blocks that differ; `entries` is what that changes. Peak memory is the process's.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "fabrics/tree.rs"]
mod tree;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mad::types::Lid;
use routing::engines::{self, Chained, NO_FALLBACK, RoutingInput, Standing};
use routing::fabric::{Fabric, Link, PortRef, SwitchGraph};
use routing::formats;
use routing::verify::{self, Options, transition};
use tree::Tree;

/// Processor time of all threads so far: the first field of each one's `schedstat`, in nanoseconds.
fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let spent = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Wall and processor time.
type Took = (Duration, Duration);

fn best<T>(run: impl FnMut() -> T) -> (Took, T) {
    best_of(number("ROUNDS").unwrap_or(5), run)
}

fn best_of<T>(rounds: usize, mut run: impl FnMut() -> T) -> (Took, T) {
    let mut time = |()| {
        let (start, processor) = (Instant::now(), processor_time());
        let result = run();
        ((start.elapsed(), processor_time() - processor), result)
    };
    let mut found = time(());
    for _ in 1..rounds {
        let (took, result) = time(());
        let (wall, processor) = (took.0.min(found.0.0), took.1.min(found.0.1));
        found = ((wall, processor), result);
    }
    found
}

fn show((wall, processor): Took) -> String {
    format!("{:.1}/{:.1}", wall.as_secs_f64() * 1e3, processor.as_secs_f64() * 1e3)
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The fabric of a file, with LIDs in order of discovery where no port has one.
fn from_file(path: &str) -> Result<Fabric, String> {
    let mut fabric = formats::load(path.as_ref()).map_err(|error| error.to_string())?.fabric;
    let ends: Vec<_> = fabric
        .nodes()
        .flat_map(|(id, node)| node.end_ports().map(move |(number, port)| (id, number, port.lid)))
        .collect();
    if ends.iter().all(|(.., lid)| lid.is_none()) {
        for (lid, (id, number, _)) in (1..).zip(ends) {
            if let Some(port) = fabric.node_mut(id).port_mut(number) {
                port.lid = Lid::new(lid);
            }
        }
    }
    Ok(fabric)
}

/// A whole number in the environment.
fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// The fabric less one cable between switches: the last one of a switch with hosts (`leaf`), and the last one of others (`top`);
/// one of them where there is no other kind.
fn broken(fabric: &Fabric) -> Vec<(&'static str, Arc<SwitchGraph>)> {
    let is_switch = |end: &PortRef| fabric.node(end.node).is_switch();
    let has_hosts = |end: &PortRef| {
        let ends = fabric.node(end.node).numbered_ports().map(|(port, _)| PortRef { node: end.node, port });
        ends.filter_map(|end| fabric.peer(end)).any(|peer| !is_switch(&peer))
    };
    let cable = |at_leaf: bool| {
        let between = fabric.links().filter(|l| is_switch(&l.a) && is_switch(&l.b));
        between.filter(|l| (has_hosts(&l.a) || has_hosts(&l.b)) == at_leaf).last().copied()
    };
    let without = |(name, link): (&'static str, Option<Link>)| {
        let mut fabric = fabric.clone();
        fabric.disconnect(link?.a);
        Some((name, Arc::new(SwitchGraph::new(&fabric))))
    };
    [("leaf", cable(true)), ("top", cable(false))].into_iter().filter_map(without).collect()
}

/// One engine on one fabric: a row for each cable that is lost.
fn measure(name: &str, graph: &Arc<SwitchGraph>, broken: &[(&str, Arc<SwitchGraph>)]) -> Result<(), String> {
    let engine = engines::by_name(name).map_err(|error| error.to_string())?;
    let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
    let hosts = graph.destinations().iter().filter(|d| d.host).count();
    let begin = format!("{hosts:>7} {:>6} {name:>10}", graph.switch_count());
    let (took, routed) = best(|| engine.route(graph, &input));
    let routes = match routed {
        Ok(routes) => routes,
        Err(error) => {
            println!("{begin} {error}");
            return Ok(());
        }
    };
    let (checked, report) = best(|| verify::check(graph, &routes, Options::default()));
    assert!(report.reaches_all(), "{report}");
    drop(routes);
    // As in the daemon: the tables in force are those that the engine goes on from.
    let chain = [name, NO_FALLBACK];
    let route = |graph: &Arc<SwitchGraph>, standing: Option<&Standing>| {
        engines::route_chain_from(&chain, graph, &input, standing).map_err(|errors| format!("{errors:?}"))
    };
    let Chained { routes, standing, .. } = route(graph, None)?;
    let routes = Arc::new(routes);
    let (_, proof) = verify::check_from(graph, &routes, Options::default(), None);
    let lost = number("LOST").or_else(|| number("ROUNDS")).unwrap_or(5);
    for (cable, broken) in broken {
        let (tables, again) = best_of(lost, || route(broken, Some(&standing)).map(|again| again.routes));
        let again = Arc::new(again?);
        let (proved, report) =
            best_of(lost, || verify::check_from(broken, &again, Options::default(), Some(&proof)).0);
        let (ordered, _) = best_of(lost, || transition::plan(broken, &routes.lfts, &again.lfts));
        assert!(report.reaches_all(), "a tree less one cable reaches all");
        let changed = transition::check(broken, &routes.lfts, &again.lfts);
        println!(
            "{begin} {:>15} {:>15} {cable:>6} {:>12} {:>12} {:>12} {:>9} {:>8}",
            show(took),
            show(checked),
            show(tables),
            show(proved),
            show(ordered),
            changed.entries,
            peak_megabytes()
        );
    }
    Ok(())
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = engines::names().map(Into::into).collect();
    }
    let most = number("HOSTS").unwrap_or(usize::MAX);
    println!(
        "{:>7} {:>6} {:>10} {:>15} {:>15} {:>6} {:>12} {:>12} {:>12} {:>9} {:>8}",
        "hosts",
        "switch",
        "engine",
        "route ms",
        "check ms",
        "lost",
        "tables",
        "proof",
        "order",
        "entries",
        "peak MB"
    );
    let fabrics: Box<dyn Iterator<Item = Result<Fabric, String>>> = match std::env::var("NET") {
        Ok(path) => Box::new(std::iter::once_with(move || from_file(&path))),
        Err(_) => {
            let sizes = [(4, 8), (8, 16), (18, 36), (32, 44)].into_iter();
            let wanted = sizes.take_while(move |(half, pods)| half * half * pods <= most);
            Box::new(wanted.map(|(half, pods)| Ok(Tree::build(half, pods))))
        }
    };
    for fabric in fabrics {
        let fabric = match fabric {
            Ok(fabric) => fabric,
            Err(error) => return println!("{error}"),
        };
        let graph = Arc::new(SwitchGraph::new(&fabric));
        let broken = broken(&fabric);
        for name in &names {
            if let Err(error) = measure(name, &graph, &broken) {
                return println!("{error}");
            }
        }
    }
}
