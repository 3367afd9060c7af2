//! Every scenario file, and scenarios drawn from seeds.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use simulated_manager::Manager;
use simulations::scenario::{
    Outcome, Scenario, Traced, What, random, random_with_clients, random_with_managers, run, run_watched,
};

/// Seeds that a plain test run plays, from 1 on; `RSM_CHAOS_SEEDS` plays more, `RSM_SEED` one alone, of which `RSM_TRACE`
/// names a file for everything that happens.
const SEEDS: u64 = 500;
/// Seeds drawn with clients that are played.
const SEEDS_WITH_CLIENTS: u64 = 100;
/// The same for scenarios in which managers fail: half a minute. A thousand take two and a half minutes of processor time.
const MANAGER_SEEDS: u64 = 200;

fn play(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &mut Manager::of_scenario())
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.about))
}

#[test]
fn every_scenario_file_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // large ones, with tests of their own
        }
        let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let outcome = play(&scenario, 1);
        if !outcome.is_right() {
            wrong.push(format!("{}:\n{outcome}", path.display()));
        }
        count += 1;
    }
    assert!(count >= 68, "{count} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// 2,016 hosts join three groups and the broadcast group within a second while a switch reboots.
#[test]
fn b38_two_thousand_hosts_join_within_a_second_while_a_switch_reboots() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/large/job-start.toml");
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let outcome = play(&scenario, 1);
    assert!(outcome.is_right(), "{outcome}");
}

/// What these seeds draw made loops once, or left wrong tables: a cable moved in a long sweep, the manager's own, and one back to its
/// switch; copies of Sets that came late (317, and 275 of another manager); ports set by the way over a cable that was moved (610,
/// 939, 1471); a block read by nobody (1277, 1471); old entries written again to switches that had fallen idle (1078); a cable moved while it
/// was asked for the last time (1271).
#[test]
fn drawn_scenarios_with_clients_that_found_loops_hold() {
    let seeds = [113, 141, 207, 226, 275, 317, 430, 520, 610, 694, 789, 870, 939, 1078, 1271, 1277, 1471];
    for seed in seeds {
        let outcome = play(&random_with_clients(seed), seed);
        assert!(outcome.is_right(), "{outcome}");
    }
}

/// What these seeds draw brought members back that had left while their manager was away: one that rules the part that it was cut off
/// with, is killed and starts again with what it kept, or hands over and takes over again; or their ports were out of its sight.
#[test]
fn drawn_scenarios_in_which_members_left_unseen_hold() {
    for seed in [62, 174, 288, 343, 357, 563, 972, 1059, 1296, 1371, 1491] {
        let outcome = play(&random_with_clients(seed), seed);
        assert!(outcome.is_right(), "{outcome}");
    }
}

/// All that clients want is acknowledged and known in the end, and the tables hold no forwarding loop at any moment.
#[test]
fn drawn_scenarios_with_clients_hold() {
    let mut wrong = Vec::new();
    for seed in 1..=SEEDS_WITH_CLIENTS {
        let outcome = play(&random_with_clients(seed), seed);
        if !outcome.is_right() {
            wrong.push(format!("{outcome}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {SEEDS_WITH_CLIENTS} seeds:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn drawn_scenarios_hold() {
    drawn(random, SEEDS);
}

/// Whatever becomes of managers and their cables, each connected part has one master in the end, no other port has
/// changed its LID, and nothing that was acknowledged is lost.
#[test]
fn drawn_failures_of_managers_hold() {
    drawn(random_with_managers, MANAGER_SEEDS);
}

/// Seed 452 lost a membership that was acknowledged 15 ms before the master was cut off; in 475 a manager ruled the other part and was gone
/// again while ours waited for answers to what it had told there; in 50 an etcd came back with other registrations while ports were told; in
/// 204, 357, 377, 502, 872 and 905 a manager without a state directory started again with what an etcd held that had been away; in 339 and 461
/// an etcd had lost its data before a takeover.
#[test]
fn drawn_failures_of_managers_that_were_felt_once_hold() {
    for seed in [50, 204, 339, 357, 377, 452, 461, 475, 502, 872, 905] {
        let outcome = play(&random_with_managers(seed), seed);
        assert!(outcome.is_right(), "RSM_SEED={seed}: {outcome}");
    }
}

fn drawn(draw: fn(u64) -> Scenario, usual: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("RSM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("RSM_CHAOS_SEEDS").unwrap_or(usual),
    };
    let mut wrong = Vec::new();
    for seed in seeds.clone() {
        let scenario = draw(seed);
        let outcome = match std::env::var_os("RSM_TRACE") {
            Some(file) => {
                let (text, outcome) = trace(&scenario, seed, false);
                std::fs::write(file, text).unwrap();
                outcome
            }
            None => play(&scenario, seed),
        };
        if !outcome.is_right() {
            wrong.push(format!("RSM_SEED={seed}: {:?}\n{outcome}", scenario.step));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} seeds fail:\n{}",
        wrong.len(),
        seeds.end - seeds.start,
        wrong.join("\n")
    );
}

/// Everything that happens, a line each, and the bytes of each datagram where they are wanted.
fn trace(scenario: &Scenario, seed: u64, bytes: bool) -> (String, Outcome) {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    let watch = Box::new(move |event: &Traced| {
        let mut text = sink.lock().unwrap();
        writeln!(text, "{event}").unwrap();
        if let (What::Packet { packet, .. }, true) = (&event.what, bytes) {
            writeln!(text, "{:x?}", packet.mad.bytes()).unwrap();
        }
    });
    let outcome = run_watched(scenario, seed, &mut Manager::of_scenario(), Some(watch)).unwrap();
    (
        Arc::try_unwrap(text).map_or_else(|text| text.lock().unwrap().clone(), |m| m.into_inner().unwrap()),
        outcome,
    )
}

#[test]
fn the_same_seed_plays_the_same_run_byte_for_byte() {
    for (draw, seed) in [(random as fn(u64) -> _, 3), (random, 4), (random_with_clients, 3)] {
        let scenario = draw(seed);
        let (one, two) = (trace(&scenario, seed, true), trace(&scenario, seed, true));
        assert!(one.0.lines().count() > 1000);
        assert!(one.0 == two.0, "RSM_SEED={seed}");
        assert_eq!(one.1.failures, two.1.failures);
    }
}

/// Every id has its row, and every scenario and test that a row names is there.
#[test]
fn the_table_of_faults_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let table = std::fs::read_to_string(root.join("docs/faults.md")).unwrap();
    for number in 1..=80 {
        assert!(table.contains(&format!("\n| B{number:02} |")), "B{number:02}");
    }
    let mut sources = String::new();
    for folder in ["mad", "routing", "sm-core", "simulations", "cli"] {
        add_sources(&root.join(folder), &mut sources);
    }
    for name in table.split('`').skip(1).step_by(2) {
        if name.ends_with(".toml") {
            assert!(root.join("simulations/scenarios").join(name).is_file(), "{name}");
        } else if name.starts_with('b') {
            let there = ["(", "<"].iter().any(|next| sources.contains(&format!("fn {name}{next}")));
            assert!(there, "{name}");
        }
    }
    // And the other way round: a scenario that cites an id is named in its row.
    for entry in std::fs::read_dir(root.join("simulations/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let about = Scenario::parse(&std::fs::read_to_string(&path).unwrap()).unwrap().about;
        let file = path.file_name().unwrap().to_str().unwrap();
        for row in table.lines().filter(|row| row.starts_with("| B") && about.contains(&row[2..5])) {
            assert!(row.contains(file), "{file} is not named in: {row}");
        }
    }
}

fn add_sources(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *sources += &std::fs::read_to_string(path).unwrap();
        }
    }
}
