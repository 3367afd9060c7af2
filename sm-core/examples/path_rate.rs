//! How many PathRecords one core computes: single queries through the whole answering function, and tables.
//!
//! `cargo run --release -p sm-core --example path_rate`

use std::hint::black_box;
use std::time::Instant;

use mad::transport::Address;
use mad::types::{ServiceLevel, Timestamp};
use mad::wire::sa::{PathRecord, Record, SaMad};
use mad::wire::{Attribute, Method};
use sm_core::sa::{Answer, Registry, Request, answer};
use zerocopy::FromZeros;

#[allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]
#[path = "../src/testing.rs"]
mod testing;

#[allow(clippy::print_stdout)]
fn main() {
    let registry = Registry::default();
    for (leaves, spines, hosts) in [(6, 3, 6), (36, 18, 18), (144, 18, 18)] {
        let snapshot = testing::Tree { leaves, spines, hosts, lmc: 0 }.snapshot();
        let ports = snapshot.end_ports();
        let source = Address::gsi(snapshot.sm.lid.get(), ServiceLevel(0));

        let mut mad = SaMad::request(Method::GET, PathRecord::ID, 0);
        mad.component_mask
            .set(PathRecord::DGID | PathRecord::SGID | PathRecord::NUMB_PATH | PathRecord::REVERSIBLE);
        let mut template = PathRecord::new_zeroed();
        template.set_numb_path(1);
        template.set_reversible(1);
        let queries = 1_000_000_usize;
        let start = Instant::now();
        for n in 0..queries {
            // A stride that visits the pairs out of order, as a job start does.
            let (a, b) = (&ports[n * 7919 % ports.len()], &ports[n * 104_729 % ports.len()]);
            template.sgid.set(snapshot.gid_of(a).0);
            template.dgid.set(snapshot.gid_of(b).0);
            let _fits = template.encode(&mut mad.data);
            match black_box(answer(&snapshot, &registry, &Request::new(mad, source), Timestamp::ZERO)) {
                Answer::Single(reply) if reply.header.status().is_ok() => {}
                other => panic!("{other:?}"),
            }
        }
        let gets = queries as f64 / start.elapsed().as_secs_f64();

        let mad = SaMad::request(Method::GET_TABLE, PathRecord::ID, 0);
        let start = Instant::now();
        let Answer::Table { records, .. } =
            black_box(answer(&snapshot, &registry, &Request::new(mad, source), Timestamp::ZERO))
        else {
            panic!("no table");
        };
        let paths = (records.len() / PathRecord::TABLE_LEN) as f64 / start.elapsed().as_secs_f64();
        println!(
            "{:5} end ports: {gets:10.0} Gets/s, {paths:10.0} records/s in a table of all pairs",
            ports.len()
        );
    }
}
