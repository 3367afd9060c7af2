//! Walks single flows through the tables, and numbers all links that they use: arcs between switches first, then for
//! every end port the link to its switch, then the link from it.

use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::LftMatrix;

const NOWHERE: u32 = u32::MAX;

/// A routed fabric.
pub(super) struct Network<'a> {
    pub graph: &'a SwitchGraph,
    tables: &'a LftMatrix,
    /// Arc by switch and port.
    exits: Vec<u32>,
    ports: usize,
    /// Indices of the destinations that are hosts, neighbours in the tree beside one another.
    pub hosts: Vec<u32>,
}

impl<'a> Network<'a> {
    pub(super) fn new(graph: &'a SwitchGraph, tables: &'a LftMatrix) -> Self {
        let count = graph.switch_count();
        let most = (0..count as u32).map(|s| usize::from(graph.num_ports(s))).max().unwrap_or(0);
        let ports = (most + 1).next_power_of_two();
        let mut exits = vec![NOWHERE; count * ports];
        for s in 0..count as u32 {
            let first = graph.offsets()[s as usize];
            for (place, arc) in (first..).zip(graph.arcs(s)) {
                exits[s as usize * ports + usize::from(arc.out_port)] = place;
            }
        }
        Self { graph, tables, exits, ports, hosts: crate::engines::hosts_in_tree_order(graph) }
    }

    pub(super) fn arcs(&self) -> usize {
        self.graph.all_arcs().len()
    }

    /// Number of links of all kinds.
    pub(super) fn links(&self) -> usize {
        self.arcs() + 2 * self.graph.destinations().len()
    }

    /// The link from an end port to its switch.
    pub(super) fn injection(&self, destination: u32) -> u32 {
        (self.arcs() + destination as usize) as u32
    }

    /// The link from its switch to an end port.
    pub(super) fn delivery(&self, destination: u32) -> u32 {
        (self.arcs() + self.graph.destinations().len() + destination as usize) as u32
    }

    /// Appends the arcs from switch `from` to end port `to`; false, and nothing appended, when they do not lead there.
    pub(super) fn walk(&self, from: SwitchIndex, to: &Destination, path: &mut Vec<u32>) -> bool {
        let begin = path.len();
        let mut at = from;
        for _ in 0..=self.graph.switch_count() {
            if at as usize >= self.tables.switch_count() {
                break;
            }
            let port = self.tables.port(at, to.lid);
            if at == to.switch && port == to.port {
                return true;
            }
            let exit = (usize::from(port) < self.ports)
                .then(|| self.exits[at as usize * self.ports + usize::from(port)])
                .filter(|exit| *exit != NOWHERE);
            let Some(exit) = exit else { break };
            path.push(exit);
            at = self.graph.all_arcs()[exit as usize].to;
        }
        path.truncate(begin);
        false
    }
}
