//! Small fabrics for tests of this crate: all links up, LIDs given in order (hosts first, then switches).

use mad::types::{Guid, Lid, NodeType, PortNum, PortState};

use super::{Fabric, Link, Node, NodeId, PortRef};

/// Builds a fabric link by link, taking the next free port of each switch.
pub(crate) struct Builder {
    /// What was built so far.
    pub fabric: Fabric,
    ports: u8,
    switches: u64,
    hosts: u64,
}

impl Builder {
    /// Switches will have `ports` ports.
    pub(crate) fn new(ports: u8) -> Self {
        Self { fabric: Fabric::new(), ports, switches: 0, hosts: 0 }
    }

    /// Adds a switch.
    pub(crate) fn switch(&mut self) -> NodeId {
        self.switches += 1;
        let guid = Guid(0x0002_c902_0000_0000 + self.switches);
        let node = Node::new(NodeType::Switch, guid, format!("S{}", self.switches), self.ports);
        self.fabric.add_node(node).expect("GUIDs are counted up")
    }

    /// Connects two nodes by their next free ports.
    pub(crate) fn link(&mut self, a: NodeId, b: NodeId) {
        let [a, b] = [a, b].map(|node| {
            let port = self
                .fabric
                .node(node)
                .numbered_ports()
                .map(|(n, _)| n)
                .find(|n| n.0 > 0 && self.fabric.peer(PortRef { node, port: *n }).is_none());
            PortRef { node, port: port.expect("a free port") }
        });
        self.link_ports(a, b);
    }

    /// Connects every two groups of switches by `times` links; the switches of a group take turns.
    pub(crate) fn join_groups(&mut self, groups: &[Vec<NodeId>], times: usize) {
        let mut used = vec![0; groups.len()];
        for _ in 0..times {
            for i in 0..groups.len() {
                for j in i + 1..groups.len() {
                    self.link(groups[i][used[i] % groups[i].len()], groups[j][used[j] % groups[j].len()]);
                    used[i] += 1;
                    used[j] += 1;
                }
            }
        }
    }

    /// Connects two ports.
    pub(crate) fn link_ports(&mut self, a: PortRef, b: PortRef) {
        self.fabric.connect(a, b).expect("free ports");
        for end in [a, b] {
            self.fabric.node_mut(end.node).port_mut(end.port).expect("connected").state = PortState::Active;
        }
    }

    /// Adds a host with one port on `switch`.
    pub(crate) fn host(&mut self, switch: NodeId) -> NodeId {
        self.hosts += 1;
        let guid = Guid(0x0002_c901_0000_0000 + 2 * self.hosts);
        let node = Node::new(NodeType::Ca, guid, format!("H{}", self.hosts), 1);
        let id = self.fabric.add_node(node).expect("GUIDs are counted up");
        self.link(id, switch);
        id
    }

    /// Adds a host with two ports.
    pub(crate) fn two_port_host(&mut self, first: NodeId, second: NodeId) -> NodeId {
        self.hosts += 2;
        let guid = Guid(0x0002_c901_0000_0000 + 2 * self.hosts);
        let node = Node::new(NodeType::Ca, guid, format!("H{}", self.hosts), 2);
        let id = self.fabric.add_node(node).expect("GUIDs are counted up");
        self.link(id, first);
        self.link(id, second);
        id
    }

    /// Gives LIDs, 2^lmc to each host port, and returns the fabric.
    pub(crate) fn finish(mut self, lmc: u8) -> Fabric {
        let mut next = 1_u16 << lmc;
        for switches in [false, true] {
            let ids: Vec<NodeId> =
                self.fabric.nodes().filter(|(_, n)| n.is_switch() == switches).map(|(id, _)| id).collect();
            for id in ids {
                let port = PortNum(u8::from(!switches));
                let port = self.fabric.node_mut(id).port_mut(port).expect("every node has it");
                port.lid = Lid::new(next);
                port.lmc = if switches { 0 } else { lmc };
                next += 1 << port.lmc;
            }
        }
        self.fabric
    }
}

/// An extended generalised fat tree: a node of level i has `m[i - 1]` children and a node of level i - 1 `w[i - 1]`
/// parents; `w[0]` must be 1.
pub(crate) fn fat_tree(m: &[usize], w: &[usize], lmc: u8) -> Fabric {
    let height = m.len();
    let mut builder = Builder::new(64);
    let size = |level: usize| -> usize { w[..level].iter().chain(&m[level..]).product() };
    let levels: Vec<Vec<NodeId>> =
        (1..=height).map(|level| (0..size(level)).map(|_| builder.switch()).collect()).collect();
    for leaf in &levels[0] {
        for _ in 0..m[0] {
            builder.host(*leaf);
        }
    }
    // Label digits of a node at level l: parent choices below position l, child positions from l on, least first.
    let digits = |level: usize, mut number: usize| -> Vec<usize> {
        (0..height)
            .map(|i| {
                let base = if i < level { w[i] } else { m[i] };
                let digit = number % base;
                number /= base;
                digit
            })
            .collect()
    };
    for level in 1..height {
        for (number, node) in levels[level - 1].iter().enumerate() {
            let mut label = digits(level, number);
            for up in 0..w[level] {
                label[level] = up;
                let mut parent = 0;
                for i in (0..height).rev() {
                    parent = parent * (if i < level + 1 { w[i] } else { m[i] }) + label[i];
                }
                builder.link(*node, levels[level][parent]);
            }
        }
    }
    builder.finish(lmc)
}

/// Four leaves with four hosts each under eight spines, and one with five hosts that has two cables to the first spine only.
pub(crate) fn tree_with_a_small_leaf(lmc: u8) -> Fabric {
    let mut builder = Builder::new(16);
    let spines: Vec<NodeId> = (0..8).map(|_| builder.switch()).collect();
    for _ in 0..4 {
        let leaf = builder.switch();
        for _ in 0..4 {
            builder.host(leaf);
        }
        spines.iter().for_each(|spine| builder.link(leaf, *spine));
    }
    let small = builder.switch();
    for _ in 0..5 {
        builder.host(small);
    }
    (0..2).for_each(|_| builder.link(small, spines[0]));
    builder.finish(lmc)
}

/// A tree of three levels with two leaves unlike the others. Three pods of four leaves with four hosts each and four spines; spine i
/// of each pod hangs on the four tops of plane i. The first odd leaf has two cables to the first spine of the first pod only; the second one has four to
/// a spine of its own, which hangs on two tops of the second plane. Both have four hosts.
pub(crate) fn tall_tree_with_small_leaves(lmc: u8) -> Fabric {
    let mut builder = Builder::new(16);
    let tops: Vec<Vec<NodeId>> = (0..4).map(|_| (0..4).map(|_| builder.switch()).collect()).collect();
    let leaf = |builder: &mut Builder| {
        let leaf = builder.switch();
        for _ in 0..4 {
            builder.host(leaf);
        }
        leaf
    };
    let mut first_spine = None;
    for _ in 0..3 {
        let spines: Vec<NodeId> = (0..4).map(|_| builder.switch()).collect();
        for (spine, plane) in spines.iter().zip(&tops) {
            plane.iter().for_each(|top| builder.link(*spine, *top));
        }
        for _ in 0..4 {
            let leaf = leaf(&mut builder);
            spines.iter().for_each(|spine| builder.link(leaf, *spine));
        }
        first_spine.get_or_insert(spines[0]);
    }
    let (below_first, below_own, own_spine) = (leaf(&mut builder), leaf(&mut builder), builder.switch());
    (0..2).for_each(|_| builder.link(below_first, first_spine.expect("there are pods")));
    (0..4).for_each(|_| builder.link(below_own, own_spine));
    tops[1][..2].iter().for_each(|top| builder.link(own_spine, *top));
    builder.finish(lmc)
}

/// A torus with `hosts` on every switch; a dimension of two has single links.
pub(crate) fn torus(dims: &[usize], hosts: usize, lmc: u8) -> Fabric {
    let count: usize = dims.iter().product();
    let mut builder = Builder::new((2 * dims.len() + hosts) as u8);
    let switches: Vec<NodeId> = (0..count).map(|_| builder.switch()).collect();
    let mut step = 1;
    for (axis, size) in dims.iter().enumerate() {
        for s in 0..count {
            let place = s / step % size;
            if *size == 1 || (*size == 2 && place == 1) {
                continue;
            }
            let next = s - place * step + (place + 1) % size * step;
            let end = |s: usize, port| PortRef { node: switches[s], port: PortNum(port) };
            let back = if *size == 2 { 2 * axis + 1 } else { 2 * axis + 2 };
            builder.link_ports(end(s, 2 * axis as u8 + 1), end(next, back as u8));
        }
        step *= size;
    }
    for s in &switches {
        for _ in 0..hosts {
            builder.host(*s);
        }
    }
    builder.finish(lmc)
}

/// Chance from the seed that SEED names, else from `default`; says which, so that a failure can be played again.
pub(crate) fn seeded(default: u128) -> rand_pcg::Pcg64Mcg {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    println!("SEED={seed}");
    rand_pcg::Pcg64Mcg::new(seed)
}

/// The links between two switches.
pub(crate) fn between_switches(fabric: &Fabric) -> Vec<Link> {
    let is_switch = |end: PortRef| fabric.node(end.node).is_switch();
    fabric.links().filter(|l| is_switch(l.a) && is_switch(l.b)).copied().collect()
}

/// A fabric less some links.
pub(crate) fn without<'l>(whole: &Fabric, links: impl IntoIterator<Item = &'l Link>) -> Fabric {
    let mut less = whole.clone();
    for link in links {
        less.disconnect(link.a);
    }
    less
}

/// Switches joined at random, each to about `degree` others, in one piece (a ring holds them), `hosts` on each.
pub(crate) fn random(
    switches: usize,
    degree: usize,
    hosts: usize,
    random: &mut rand_pcg::Pcg64Mcg,
) -> Fabric {
    use rand::RngExt;
    let mut builder = Builder::new((degree + 2 + hosts) as u8);
    let nodes: Vec<NodeId> = (0..switches).map(|_| builder.switch()).collect();
    for i in 0..switches {
        builder.link(nodes[i], nodes[(i + 1) % switches]);
    }
    let mut used = vec![2; switches];
    for _ in 0..switches * (degree - 2) {
        let (a, b) = (random.random_range(0..switches), random.random_range(0..switches));
        if a != b && used[a] < degree && used[b] < degree {
            used[a] += 1;
            used[b] += 1;
            builder.link(nodes[a], nodes[b]);
        }
    }
    for node in nodes {
        for _ in 0..hosts {
            builder.host(node);
        }
    }
    builder.finish(0)
}

/// A dragonfly+: `groups` groups of leaves with two hosts each and of spines, one link between any two groups.
pub(crate) fn dragonfly_plus(groups: usize, leaves: usize, spines: usize) -> Fabric {
    let mut builder = Builder::new(8);
    let mut tops = Vec::new();
    for _ in 0..groups {
        let group: Vec<NodeId> = (0..spines).map(|_| builder.switch()).collect();
        for _ in 0..leaves {
            let leaf = builder.switch();
            builder.host(leaf);
            builder.host(leaf);
            group.iter().for_each(|spine| builder.link(leaf, *spine));
        }
        tops.push(group);
    }
    builder.join_groups(&tops, 1);
    builder.finish(0)
}
