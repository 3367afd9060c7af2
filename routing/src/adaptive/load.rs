//! The load as it was measured, and what it says of each (switch, LID): how much the switch sends to that LID.

use std::collections::BTreeMap;

use mad::types::{Guid, PortNum};

use crate::fabric::SwitchGraph;
use crate::study::traffic::Flow;

/// A measured load, in any unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Who sends how much to whom.
    Flows(Vec<Flow>),
    /// What left each switch by each port, by (NodeGUID, port): the increase of PortXmitData, say.
    Counters(BTreeMap<(Guid, PortNum), u64>),
}

/// Load by arc, and by (switch, host).
pub(super) struct Through {
    /// Number of hosts: the length of a row of `sent`.
    hosts: usize,
    /// What each switch sends to each host, own hosts' traffic included.
    sent: Vec<u64>,
    /// Load of each arc.
    pub arcs: Vec<u64>,
}

/// The next arc of every switch for every host, `u32::MAX` for none.
pub(super) struct Next {
    pub hosts: usize,
    pub arcs: Vec<u32>,
}

impl Next {
    pub(super) fn of(&self, s: u32, host: usize) -> u32 {
        self.arcs[s as usize * self.hosts + host]
    }
}

impl Through {
    /// `host_of` numbers the destinations that are hosts, `u32::MAX` for the others.
    pub(super) fn new(graph: &SwitchGraph, host_of: &[u32], next: &Next, load: &Load) -> Self {
        let cells = graph.switch_count() * next.hosts;
        let mut through =
            Self { hosts: next.hosts, sent: vec![0; cells], arcs: vec![0; graph.all_arcs().len()] };
        match load {
            Load::Flows(flows) => through.add_flows(graph, host_of, next, flows),
            Load::Counters(counters) => through.divide_counters(graph, host_of, next, counters),
        }
        through
    }

    pub(super) fn sent(&self, s: u32, host: usize) -> u64 {
        self.sent[s as usize * self.hosts + host]
    }

    /// Adds `amount` (or takes it away, for `less`) at `s` and on `arc`.
    pub(super) fn shift(&mut self, s: u32, host: usize, arc: u32, amount: u64, less: bool) {
        for cell in [&mut self.sent[s as usize * self.hosts + host], &mut self.arcs[arc as usize]] {
            *cell = if less { cell.saturating_sub(amount) } else { cell.saturating_add(amount) };
        }
    }

    fn add_flows(&mut self, graph: &SwitchGraph, host_of: &[u32], next: &Next, flows: &[Flow]) {
        let all = graph.destinations();
        for flow in flows {
            let Some(to) = all.get(flow.destination as usize) else { continue };
            let host = host_of[flow.destination as usize];
            let Some(from) = all.get(flow.source as usize).filter(|_| host != u32::MAX) else { continue };
            let mut at = from.switch;
            for _ in 0..graph.switch_count() {
                let arc = next.of(at, host as usize);
                if at == to.switch || arc == u32::MAX {
                    break;
                }
                self.shift(at, host as usize, arc, u64::from(flow.weight), false);
                at = graph.all_arcs()[arc as usize].to;
            }
        }
    }

    /// Counters say how much left by a port, not for whom: it is divided among the hosts that are reached by it, in
    /// proportion to the hosts whose routes to them lead over it.
    fn divide_counters(
        &mut self,
        graph: &SwitchGraph,
        host_of: &[u32],
        next: &Next,
        counters: &BTreeMap<(Guid, PortNum), u64>,
    ) {
        let hosts: Vec<u32> =
            (0..host_of.len() as u32).filter(|i| host_of[*i as usize] != u32::MAX).collect();
        let mut routes =
            Self { hosts: self.hosts, sent: vec![0; self.sent.len()], arcs: vec![0; self.arcs.len()] };
        // A flow from one host of each switch, with the weight of all of them.
        let mut senders: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for host in &hosts {
            senders.entry(graph.destinations()[*host as usize].switch).or_insert((*host, 0)).1 += 1;
        }
        for destination in &hosts {
            let flow = |(source, weight): &(u32, u32)| Flow {
                source: *source,
                destination: *destination,
                weight: *weight,
            };
            let flows: Vec<Flow> = senders.values().map(flow).collect();
            routes.add_flows(graph, host_of, next, &flows);
        }
        for s in 0..graph.switch_count() as u32 {
            for (number, arc) in (graph.offsets()[s as usize]..).zip(graph.arcs(s)) {
                let counted = counters.get(&(graph.guid(s), PortNum(arc.out_port)));
                self.arcs[number as usize] = counted.copied().unwrap_or(0);
            }
            for host in 0..self.hosts {
                let arc = next.of(s, host);
                if arc == u32::MAX {
                    continue;
                }
                let (part, whole) = (routes.sent(s, host), routes.arcs[arc as usize].max(1));
                let share = u128::from(self.arcs[arc as usize]) * u128::from(part) / u128::from(whole);
                self.sent[s as usize * self.hosts + host] = u64::try_from(share).unwrap_or(u64::MAX);
            }
        }
    }
}
