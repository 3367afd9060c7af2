//! Finds a shortest cycle among channels, or that there is none.
//!
//! Channels that nothing waits for, and those that wait for nothing, are peeled off (Kahn 1962) until only cycles and what
//! lies between them is left; from the rest, breadth-first searches look for the shortest way back. Cost: linear for the
//! verdict; the searches are bounded by a budget, so that in a graph full of long cycles a short one is shown, not always
//! the shortest.

use super::dependencies::{Dependencies, Lanes};
use super::network::Network;

/// A channel: arc and VL.
pub(super) type Vertex = (u32, usize);

/// Steps that all searches together may take.
const BUDGET: usize = 500_000;

struct ChannelGraph<'a> {
    network: &'a Network<'a>,
    lanes: &'a Lanes<'a>,
    dependencies: &'a Dependencies,
}

impl ChannelGraph<'_> {
    fn arcs(&self) -> usize {
        self.network.from.len()
    }

    fn len(&self) -> usize {
        self.arcs() * self.lanes.vls
    }

    fn for_each_next(&self, vertex: usize, mut visit: impl FnMut(usize)) {
        let (arc, vl) = ((vertex % self.arcs()) as u32, vertex / self.arcs());
        let base = self.network.graph.offsets()[self.network.to(arc) as usize] as usize;
        let vls = self.lanes.vls;
        let outs = if self.lanes.constant() { vl..vl + 1 } else { 0..vls };
        for out in outs {
            let lane = if self.lanes.constant() { vl } else { vl * vls + out };
            for next in self.dependencies.of(lane, arc) {
                visit(out * self.arcs() + base + next);
            }
        }
    }
}

/// The verdict on a channel dependency graph.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// A height for each channel, below that of every channel it waits for: the proof that there is no cycle.
    Heights(Vec<u32>),
    /// The channels along a cycle.
    Cycle(Vec<Vertex>),
}

/// Steps between heights of the first proof, so that channels that come later find room in between.
const STEP: u32 = 1 << 10;

/// Looks for a cycle.
pub(super) fn find(network: &Network<'_>, lanes: &Lanes<'_>, dependencies: &Dependencies) -> Order {
    let graph = ChannelGraph { network, lanes, dependencies };
    let (mut left, heights) = peel_forward(&graph);
    if left.iter().all(|l| !l) {
        return Order::Heights(heights);
    }
    peel_backward(&graph, &mut left);
    let cycle = shortest(&graph, &left);
    Order::Cycle(cycle.into_iter().map(|v| ((v % graph.arcs()) as u32, v / graph.arcs())).collect())
}

/// Which channels are left when those that nothing leads to are taken away again and again, and the heights of the others.
fn peel_forward(graph: &ChannelGraph<'_>) -> (Vec<bool>, Vec<u32>) {
    let mut incoming = vec![0_u32; graph.len()];
    for v in 0..graph.len() {
        graph.for_each_next(v, |next| incoming[next] += 1);
    }
    let mut ready: Vec<usize> = (0..graph.len()).filter(|v| incoming[*v] == 0).collect();
    let mut left = vec![true; graph.len()];
    let mut heights = vec![STEP; graph.len()];
    while let Some(v) = ready.pop() {
        left[v] = false;
        let above = heights[v].saturating_add(STEP);
        graph.for_each_next(v, |next| {
            heights[next] = heights[next].max(above);
            incoming[next] -= 1;
            if incoming[next] == 0 {
                ready.push(next);
            }
        });
    }
    (left, heights)
}

/// Takes away what leads to nothing that is left.
fn peel_backward(graph: &ChannelGraph<'_>, left: &mut [bool]) {
    let rest: Vec<usize> = (0..left.len()).filter(|v| left[*v]).collect();
    let mut outgoing = vec![0_u32; left.len()];
    let mut before: Vec<(usize, usize)> = Vec::new();
    for v in &rest {
        graph.for_each_next(*v, |next| {
            if left[next] {
                outgoing[*v] += 1;
                before.push((next, *v));
            }
        });
    }
    before.sort_unstable();
    let mut ready: Vec<usize> = rest.into_iter().filter(|v| outgoing[*v] == 0).collect();
    while let Some(v) = ready.pop() {
        left[v] = false;
        let first = before.partition_point(|(to, _)| *to < v);
        for (_, from) in before[first..].iter().take_while(|(to, _)| *to == v) {
            outgoing[*from] -= 1;
            if outgoing[*from] == 0 {
                ready.push(*from);
            }
        }
    }
}

fn shortest(graph: &ChannelGraph<'_>, left: &[bool]) -> Vec<usize> {
    const NOT_SEEN: usize = usize::MAX;
    let mut best: Vec<usize> = Vec::new();
    let mut parent = vec![NOT_SEEN; left.len()];
    let mut budget = BUDGET;
    for start in (0..left.len()).filter(|v| left[*v]) {
        if !best.is_empty() && (budget == 0 || best.len() == 2) {
            break;
        }
        let mut queue = vec![(start, 0_usize)];
        let mut head = 0;
        let mut found = None;
        while let Some(&(at, depth)) = queue.get(head) {
            head += 1;
            budget = budget.saturating_sub(1);
            if found.is_some() || (!best.is_empty() && (depth + 1 >= best.len() || budget == 0)) {
                break;
            }
            graph.for_each_next(at, |next| {
                if next == start {
                    found = found.or(Some(at));
                } else if left[next] && parent[next] == NOT_SEEN {
                    parent[next] = at;
                    queue.push((next, depth + 1));
                }
            });
        }
        if let Some(mut at) = found {
            let mut cycle = vec![at];
            while at != start {
                at = parent[at];
                cycle.push(at);
            }
            cycle.reverse();
            if best.is_empty() || cycle.len() < best.len() {
                best = cycle;
            }
        }
        for (v, _) in queue {
            parent[v] = NOT_SEEN;
        }
    }
    best
}
