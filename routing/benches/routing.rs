//! What engines, the verifier and a lost cable cost, by criterion: `cargo bench -p routing`, on a three-level tree of 1,024
//! hosts; `HOSTS=11664` adds the one of that size. `benches/routing.sh` prints a table of more sizes and engines.

#[path = "../examples/fabrics/tree.rs"]
mod tree;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use routing::engines::{self, NO_FALLBACK, RoutingInput};
use routing::fabric::{Fabric, SwitchGraph};
use routing::verify::{self, Options, transition};
use tree::Tree;

/// Engines whose time grows faster than the tables are measured at the smallest size only.
const SLOW: [&str; 3] = ["dfsssp", "nue", "lash"];

fn route(criterion: &mut Criterion, hosts: usize, graph: &SwitchGraph) {
    let mut group = criterion.benchmark_group("route");
    let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
    group.sample_size(10);
    for name in ["minhop", "updn", "ftree", "sssp"].into_iter().chain(SLOW) {
        if hosts > 2000 && SLOW.contains(&name) {
            continue;
        }
        let engine = engines::by_name(name).expect("an engine");
        group.bench_function(BenchmarkId::new(name, hosts), |bench| {
            bench.iter(|| black_box(engine.route(graph, &input).expect("a tree")));
        });
    }
    group.finish();
}

fn verify_all(criterion: &mut Criterion, hosts: usize, graph: &SwitchGraph) {
    let routes = engines::by_name("minhop").expect("an engine").route(graph, &RoutingInput::default());
    let routes = routes.expect("a tree");
    let mut group = criterion.benchmark_group("verify");
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("complete", hosts), |bench| {
        bench.iter(|| black_box(verify::check(graph, &routes, Options::default())));
    });
    group.finish();
}

/// One cable between switches less: tables, proof and order of writes, each from what stands.
fn lose_a_cable(criterion: &mut Criterion, hosts: usize, fabric: &Fabric, graph: &Arc<SwitchGraph>) {
    let input = RoutingInput::default();
    let mut broken = fabric.clone();
    broken.disconnect(broken.links().last().expect("links").a);
    let broken = Arc::new(SwitchGraph::new(&broken));
    let chain = ["minhop", NO_FALLBACK];
    let standing = engines::route_chain_from(&chain, graph, &input, None).expect("a tree");
    let (routes, basis) = (Arc::new(standing.routes), standing.standing);
    let proof = verify::check_from(graph, &routes, Options::default(), None).1;
    let again = || engines::route_chain_from(&chain, &broken, &input, Some(&basis)).expect("a tree").routes;
    let next = Arc::new(again());
    let mut group = criterion.benchmark_group("lost cable");
    group.sample_size(20);
    group.bench_function(BenchmarkId::new("tables", hosts), |bench| bench.iter(|| black_box(again())));
    group.bench_function(BenchmarkId::new("proof", hosts), |bench| {
        bench.iter(|| black_box(verify::check_from(&broken, &next, Options::default(), Some(&proof))));
    });
    group.bench_function(BenchmarkId::new("order", hosts), |bench| {
        bench.iter(|| black_box(transition::plan(&broken, &routes.lfts, &next.lfts)));
    });
    group.finish();
}

fn main() {
    let most = std::env::var("HOSTS").ok().and_then(|hosts| hosts.parse().ok()).unwrap_or(1_024);
    let mut criterion = Criterion::default().configure_from_args();
    for (half, pods) in [(8, 16), (18, 36)] {
        let hosts = half * half * pods;
        if hosts > most {
            break;
        }
        let fabric = Tree::build(half, pods);
        let graph = Arc::new(SwitchGraph::new(&fabric));
        route(&mut criterion, hosts, &graph);
        verify_all(&mut criterion, hosts, &graph);
        lose_a_cable(&mut criterion, hosts, &fabric, &graph);
    }
    criterion.final_summary();
}
