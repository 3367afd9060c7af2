//! Times the bring-up of a fabric by the subnet manager's state machine in virtual time: `benches/virtual.sh` runs it.
//!
//! `bring_up 18,18,36 1,18,18` is the tree of 36-port switches with 11,664 hosts, `bring_up FILE` a fabric from a file. Prints
//! what took how long, counters, and the verdict on the tables in the simulated switches; fails when that is not right. With
//! `--unwatched` before, the world doesn't look whether a forwarding loop has come into being at any moment.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use routing::fabric::Fabric;
use simulated_manager::Manager;
use simulations::generate::{Options, Topology, generate};
use simulations::world::{Agent, AgentId, Config, End, LoopWatch, World};
use sm_core::settings::SmSettings;

fn numbers(text: &str) -> Result<Vec<u16>, std::num::ParseIntError> {
    text.split(',').map(str::parse).collect()
}

fn fabric(arguments: &[String]) -> Result<Fabric, Box<dyn std::error::Error>> {
    match arguments {
        [file] => Ok(routing::formats::load(Path::new(file))?.fabric),
        [m, w] => Ok(generate(&Topology::fat_tree(&numbers(m)?, &numbers(w)?), &Options::default())?),
        _ => Err("expected a topology file, or children and parents of a fat tree by level".into()),
    }
}

/// A manager on the first linked port of an adapter in each connected part.
fn managers(world: &mut World) -> Vec<AgentId> {
    let parts = world.parts();
    let mut begun = vec![false; parts.len()];
    let mut managers = Vec::new();
    for (node, part) in parts.iter().enumerate() {
        let device = world.device(node as u32);
        let mut ports = device.end_ports().filter(|port| device.ports[usize::from(*port)].is_up());
        let Some(port) = ports.next().filter(|_| !device.is_switch() && !begun[*part as usize]) else {
            continue;
        };
        begun[*part as usize] = true;
        managers
            .extend(world.attach(End::new(node as u32, port), Box::new(Manager::new(SmSettings::default()))));
    }
    managers
}

/// User and system time of this process so far, in seconds; the kernel counts in hundredths.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().ok());
    ticks.sum::<Option<u64>>().map(|ticks| ticks as f64 / 100.0)
}

/// Peak of resident memory in MiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let unwatched = arguments.first().is_some_and(|first| first == "--unwatched");
    arguments.drain(..usize::from(unwatched));
    let mut out = std::io::stdout();
    let begin = Instant::now();
    let fabric = fabric(&arguments)?;
    let watch_loops = if unwatched { LoopWatch::Off } else { LoopWatch::Batches };
    let mut world = World::new(&fabric, Config { watch_loops, ..Config::default() });
    drop(fabric);
    writeln!(out, "{} devices built in {:.2} s", world.device_count(), begin.elapsed().as_secs_f64())?;

    let (begin, cpu) = (Instant::now(), cpu_seconds().unwrap_or(0.0));
    let managers = managers(&mut world);
    let settled = world.run_while(world.now() + Duration::from_secs(600), |world| {
        managers.iter().all(|id| {
            world
                .agent::<Manager>(*id)
                .is_some_and(|m| !m.reports().is_empty() && m.is_settled() && m.is_master())
        })
    });
    let (real, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds().unwrap_or(0.0) - cpu);
    let stats = world.stats();
    writeln!(
        out,
        "settled: {settled}; {real:.2} s real, {cpu:.2} s CPU, {} s virtual; {} MADs, {} Sets; peak {} MiB",
        world.now(),
        stats.total_sent(),
        stats.sets(),
        peak().unwrap_or(0)
    )?;
    let begin = Instant::now();
    let verdict = world.check();
    let right = verdict.is_right(false);
    writeln!(out, "checked in {:.2} s: right {right}\n{verdict}", begin.elapsed().as_secs_f64())?;
    writeln!(out, "peak with the check: {} MiB", peak().unwrap_or(0))?;
    if settled && right { Ok(()) } else { Err("the fabric is not up".into()) }
}
