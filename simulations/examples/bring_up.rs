//! Times the bring-up of a full three-level tree by the subnet manager's state machine in virtual time.
//!
//! `cargo run --release -p simulations --example bring_up -- 18,18,36 1,18,18` is the tree of 36-port switches with 11,664
//! hosts. Prints what took how long, counters, and the verdict on the tables in the simulated switches.

use std::io::Write;
use std::time::{Duration, Instant};

use simulated_manager::Manager;
use simulations::generate::{Options, Topology, generate};
use simulations::world::{Agent, Config, World};
use sm_core::settings::SmSettings;

fn numbers(text: Option<String>, default: &[u16]) -> Vec<u16> {
    text.map_or_else(|| default.to_vec(), |t| t.split(',').filter_map(|n| n.parse().ok()).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let m = numbers(arguments.next(), &[18, 36]);
    let w = numbers(arguments.next(), &[1, 18]);
    let mut out = std::io::stdout();
    let begin = Instant::now();
    let fabric = generate(&Topology::fat_tree(&m, &w), &Options::default())?;
    let mut world = World::new(&fabric, Config::default());
    drop(fabric);
    writeln!(out, "{} devices built in {:.2} s", world.device_count(), begin.elapsed().as_secs_f64())?;

    let begin = Instant::now();
    let manager = Manager::start(&mut world, "H0", SmSettings::default()).ok_or("the tree has no host H0")?;
    let settled = world.run_while(world.now() + Duration::from_secs(600), |world| {
        world.agent::<Manager>(manager).is_some_and(|m| !m.reports().is_empty() && m.is_settled())
    });
    let real = begin.elapsed().as_secs_f64();
    let sent = world.stats().total_sent();
    writeln!(
        out,
        "settled: {settled}; {real:.2} s real, {} s virtual; {sent} MADs, {} Sets",
        world.now(),
        world.stats().sets()
    )?;
    if let Some(report) = world.agent::<Manager>(manager).and_then(|m| m.reports().first()) {
        writeln!(out, "virtual stages: {:?}", report.seconds)?;
    }
    writeln!(out, "role: {:?}", world.agent::<Manager>(manager).map(Manager::role))?;
    let begin = Instant::now();
    let verdict = world.check();
    writeln!(
        out,
        "checked in {:.2} s: right {}\n{verdict}",
        begin.elapsed().as_secs_f64(),
        verdict.is_right(true)
    )?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
