//! How many PathRecords one core computes, in process, from a snapshot of a two-level fat tree: single queries through the whole
//! answering function, the table of all paths of a source, and the table of all pairs. Rates are by the processor time of
//! this thread, so that other load on the machine matters little.
//!
//! `cargo run --release -p sm-core --example path_rate`

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use mad::transport::Address;
use mad::types::{PKey, PortNum, ServiceLevel, Timestamp};
use mad::wire::sa::{PathRecord, Record, SaMad};
use mad::wire::smp::PKeyTable;
use mad::wire::{Attribute, Method};
use sm_core::sa::{Answer, Registry, Request, answer};
use sm_core::snapshot::{EndPort, Snapshot};
use zerocopy::FromZeros;

#[allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]
#[path = "../src/testing.rs"]
mod testing;

/// Paths that a measurement computes at least.
const PATHS: usize = 5_000_000;

#[allow(clippy::print_stdout)]
fn main() {
    println!("end ports |   Gets/s | tables of a source: records/s | all pairs: records/s");
    for (leaves, spines, hosts) in [(6, 3, 6), (36, 18, 18), (144, 18, 18)] {
        let snapshot = with_pkeys(&testing::Tree { leaves, spines, hosts, lmc: 0 }.snapshot());
        println!(
            "{:9} | {:8.0} | {:29.0} | {:20.0}",
            snapshot.end_ports().len(),
            gets(&snapshot),
            tables(&snapshot),
            all_pairs(&snapshot)
        );
    }
}

/// The same with the P_Key tables of adapters as they usually are: read, and full members of the default partition.
fn with_pkeys(snapshot: &Snapshot) -> Snapshot {
    let mut observed = (*snapshot.observed).clone();
    let table = PKeyTable::from_keys(&[PKey::DEFAULT_FULL]);
    for node in observed.nodes.values_mut().filter(|node| node.switch_info.is_none()) {
        node.tables.pkeys = BTreeMap::from([((PortNum(1), 0), table)]);
    }
    let (graph, routes) = (Arc::clone(&snapshot.graph), Arc::clone(&snapshot.routes));
    Snapshot::new(snapshot.generation, Arc::new(observed), graph, routes, snapshot.sm)
}

/// Processor time of this thread in seconds.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn query(port: &EndPort, snapshot: &Snapshot) -> PathRecord {
    let mut template = PathRecord::new_zeroed();
    template.set_numb_path(1);
    template.set_reversible(1);
    template.sgid.set(snapshot.gid_of(port).0);
    template
}

const MASK: u64 = PathRecord::SGID | PathRecord::NUMB_PATH | PathRecord::REVERSIBLE;

fn source(snapshot: &Snapshot) -> Address {
    Address::gsi(snapshot.sm.lid.get(), ServiceLevel(0))
}

fn gets(snapshot: &Snapshot) -> f64 {
    let (ports, registry) = (snapshot.end_ports(), Registry::default());
    let mut mad = SaMad::request(Method::GET, PathRecord::ID, MASK | PathRecord::DGID);
    let start = processor_time();
    for n in 0..PATHS / 5 {
        // A stride that visits the pairs out of order, as a job start does.
        let (a, b) = (&ports[n * 7919 % ports.len()], &ports[n * 104_729 % ports.len()]);
        let mut template = query(a, snapshot);
        template.dgid.set(snapshot.gid_of(b).0);
        let _fits = template.encode(&mut mad.data);
        let request = Request::new(mad, source(snapshot));
        match black_box(answer(snapshot, &registry, &request, Timestamp::ZERO)) {
            Answer::Single(reply) if reply.header.status().is_ok() => {}
            other => panic!("{other:?}"),
        }
    }
    (PATHS / 5) as f64 / (processor_time() - start)
}

fn tables(snapshot: &Snapshot) -> f64 {
    let mut mad = SaMad::request(Method::GET_TABLE, PathRecord::ID, MASK);
    let mut paths = 0;
    let start = processor_time();
    for port in snapshot.end_ports().iter().cycle() {
        let _fits = query(port, snapshot).encode(&mut mad.data);
        paths += table(snapshot, mad);
        if paths >= PATHS {
            break;
        }
    }
    paths as f64 / (processor_time() - start)
}

fn all_pairs(snapshot: &Snapshot) -> f64 {
    let mad = SaMad::request(Method::GET_TABLE, PathRecord::ID, 0);
    let mut paths = 0;
    let start = processor_time();
    while paths < PATHS {
        paths += table(snapshot, mad);
    }
    paths as f64 / (processor_time() - start)
}

fn table(snapshot: &Snapshot, mad: SaMad) -> usize {
    let request = Request::new(mad, source(snapshot));
    match black_box(answer(snapshot, &Registry::default(), &request, Timestamp::ZERO)) {
        Answer::Table { records, .. } => records.len() / PathRecord::TABLE_LEN,
        other => panic!("{other:?}"),
    }
}
