//! Prints what routing and verifying cost on fat trees of growing size: `cargo run --release -p routing --example speed`,
//! with names of engines as arguments (all when none is given), largest size by `HOSTS=n`. Times are wall and processor
//! time in milliseconds, the best of five; a busy machine changes the second less. The columns after
//! `lost` are what one lost cable costs from tables in force: new tables, their proof, and the order of writes with the blocks
//! that differ; `entries` is what that changes. Peak memory is the process's.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mad::types::{Guid, Lid, NodeType, PortNum, PortState};
use routing::engines::{self, NO_FALLBACK, RoutingInput};
use routing::fabric::{Fabric, Node, NodeId, PortRef, SwitchGraph};
use routing::verify::{self, Options, transition};

/// A three-level tree: `pods` pods of `half` leaves with `half` hosts and `half` middle switches, `half²` at the top.
struct Tree {
    fabric: Fabric,
    next_port: Vec<u8>,
    lid: u16,
}

impl Tree {
    fn node(&mut self, kind: NodeType, ports: u8) -> NodeId {
        let index = self.next_port.len() as u64;
        let mut node = Node::new(kind, Guid(0x0002_c900_0000_0000 + index * 2), format!("N{index}"), ports);
        self.lid += 1;
        let own = PortNum(u8::from(kind == NodeType::Ca));
        node.port_mut(own).expect("made with it").lid = Lid::new(self.lid);
        self.next_port.push(0);
        self.fabric.add_node(node).expect("GUIDs are counted up")
    }

    fn link(&mut self, a: NodeId, b: NodeId) {
        let [a, b] = [a, b].map(|node| {
            self.next_port[node.index()] += 1;
            PortRef { node, port: PortNum(self.next_port[node.index()]) }
        });
        self.fabric.connect(a, b).expect("free ports");
        for end in [a, b] {
            self.fabric.node_mut(end.node).port_mut(end.port).expect("connected").state = PortState::Active;
        }
    }

    fn build(half: usize, pods: usize) -> Fabric {
        let mut tree = Self { fabric: Fabric::new(), next_port: Vec::new(), lid: 0 };
        let radix = (2 * half) as u8;
        let top: Vec<NodeId> = (0..half * half).map(|_| tree.node(NodeType::Switch, radix)).collect();
        for _ in 0..pods {
            let middle: Vec<NodeId> = (0..half).map(|_| tree.node(NodeType::Switch, radix)).collect();
            for _ in 0..half {
                let leaf = tree.node(NodeType::Switch, radix);
                for _ in 0..half {
                    let host = tree.node(NodeType::Ca, 1);
                    tree.link(leaf, host);
                }
                middle.iter().for_each(|m| tree.link(leaf, *m));
            }
            for (group, m) in middle.iter().enumerate() {
                (0..half).for_each(|i| tree.link(*m, top[group * half + i]));
            }
        }
        tree.fabric
    }
}

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

fn best<T>(mut run: impl FnMut() -> T) -> (Took, T) {
    let mut time = |()| {
        let (start, processor) = (Instant::now(), processor_time());
        let result = run();
        ((start.elapsed(), processor_time() - processor), result)
    };
    let mut found = time(());
    for _ in 0..4 {
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

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = engines::names().map(Into::into).collect();
    }
    let most: usize = std::env::var("HOSTS").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    println!(
        "{:>7} {:>6} {:>10} {:>15} {:>15} {:>12} {:>12} {:>12} {:>9} {:>8}",
        "hosts",
        "switch",
        "engine",
        "route ms",
        "check ms",
        "lost: tables",
        "proof",
        "order",
        "entries",
        "peak MB"
    );
    for (half, pods) in [(4, 8), (8, 16), (18, 36), (32, 44)] {
        if half * half * pods > most {
            break;
        }
        let fabric = Tree::build(half, pods);
        let graph = Arc::new(SwitchGraph::new(&fabric));
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let mut broken = fabric.clone();
        let last = broken.links().last().copied().expect("a link");
        broken.disconnect(last.a);
        let broken = Arc::new(SwitchGraph::new(&broken));
        for name in &names {
            let engine = match engines::by_name(name) {
                Ok(engine) => engine,
                Err(error) => return println!("{error}"),
            };
            let (took, routed) = best(|| engine.route(&graph, &input));
            let routes = match routed {
                Ok(routes) => routes,
                Err(error) => {
                    println!(
                        "{:>7} {:>6} {name:>10} {error}",
                        graph.destinations().iter().filter(|d| d.host).count(),
                        graph.switch_count()
                    );
                    continue;
                }
            };
            let (checked, report) = best(|| verify::check(&graph, &routes, Options::default()));
            assert!(report.reaches_all(), "{report}");
            let routes = Arc::new(routes);
            let chain = [name.as_str(), NO_FALLBACK];
            let chained = engines::route_chain_from(&chain, &graph, &input, None).ok();
            let basis = chained.and_then(|chained| chained.standing);
            let (_, proof) = verify::check_from(&graph, &routes, Options::default(), None);
            let (tables, again) = best(|| {
                let again = engines::route_chain_from(&chain, &broken, &input, basis.as_ref());
                again.map(|chained| Arc::new(chained.routes)).unwrap_or_default()
            });
            let (proved, report) =
                best(|| verify::check_from(&broken, &again, Options::default(), Some(&proof)).0);
            let (ordered, _) = best(|| transition::plan(&broken, &routes.lfts, &again.lfts));
            assert!(report.reaches_all(), "a tree less one cable reaches all");
            let changed = transition::check(&broken, &routes.lfts, &again.lfts);
            println!(
                "{:>7} {:>6} {name:>10} {:>15} {:>15} {:>12} {:>12} {:>12} {:>9} {:>8}",
                graph.destinations().iter().filter(|d| d.host).count(),
                graph.switch_count(),
                show(took),
                show(checked),
                show(tables),
                show(proved),
                show(ordered),
                changed.entries,
                peak_megabytes()
            );
        }
    }
}
