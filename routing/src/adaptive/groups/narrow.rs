//! Leaves members out of groups until no circle of channels is left: the added condition for rules that do not keep to an
//! order of channels by themselves.
//!
//! The dependencies of the static entries are taken first. Then, leaf by leaf and the nearest switches first, a member is
//! kept when the dependencies that it brings close no cycle with those that are there: from every static way into its switch
//! to it, and from it to every exit of the switch behind. All others come from members farther away, which are tried later.
//! Cost: for each (switch, leaf, member) its neighbours, and the repairs of an order of the channels
//! ([`Acyclic`](crate::engines::Acyclic)).

use mad::types::Lid;

use super::Exits;
use crate::adaptive::ports::PortSet;
use crate::engines::{Acyclic, Insert};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

struct Channels<'a> {
    graph: &'a SwitchGraph,
    /// Arc by switch and port, `u32::MAX` for none.
    by_port: Vec<[u32; 256]>,
    dependencies: Acyclic,
}

/// Narrows `exits`; the number of members left out, or a switch on a cycle of the static entries.
pub(super) fn narrow(graph: &SwitchGraph, routes: &Routes, exits: &mut Exits) -> Result<usize, SwitchIndex> {
    let by_port = (0..graph.switch_count() as u32).map(|s| graph.arcs_by_port(s)).collect();
    let dependencies = Acyclic::new(graph.all_arcs().len());
    let mut channels = Channels { graph, by_port, dependencies };
    let fixed: Vec<Vec<PortSet>> =
        exits.leaves.iter().map(|leaf| channels.static_exits(routes, *leaf)).collect();
    for ports in &fixed {
        channels.add_static(ports)?;
    }
    let mut left_out = 0;
    for (leaf, mut kept) in fixed.into_iter().enumerate() {
        for s in channels.nearest_first(exits.leaves[leaf]) {
            let wanted = *exits.of(s, leaf);
            for port in wanted.iter().filter(|port| !kept[s as usize].contains(*port)).collect::<Vec<_>>() {
                if channels.try_member(s, port, &kept) {
                    kept[s as usize].insert(port);
                } else {
                    left_out += 1;
                }
            }
            let row = &mut exits.sets[s as usize * exits.leaves.len() + leaf];
            *row = wanted.iter().filter(|port| kept[s as usize].contains(*port)).collect();
        }
    }
    Ok(left_out)
}

impl Channels<'_> {
    /// The static exits of every switch towards a leaf, of all LIDs of its hosts.
    fn static_exits(&self, routes: &Routes, leaf: SwitchIndex) -> Vec<PortSet> {
        let hosts = self.graph.destinations().iter().filter(|d| d.host && d.switch == leaf);
        let lids: Vec<Lid> = hosts.flat_map(|d| d.lids()).filter_map(Lid::new).collect();
        let linked = |s: SwitchIndex, port: &u8| self.by_port[s as usize][usize::from(*port)] != u32::MAX;
        (0..self.graph.switch_count() as u32)
            .map(|s| {
                let ports = lids.iter().map(|lid| routes.lfts.port(s, *lid));
                ports.filter(|port| s != leaf && linked(s, port)).collect()
            })
            .collect()
    }

    fn add_static(&mut self, ports: &[PortSet]) -> Result<(), SwitchIndex> {
        for s in 0..self.graph.switch_count() as u32 {
            for port in ports[s as usize].iter() {
                let arc = self.by_port[s as usize][usize::from(port)];
                let to = self.graph.all_arcs()[arc as usize].to;
                for next in ports[to as usize].iter() {
                    let next = self.by_port[to as usize][usize::from(next)];
                    if self.dependencies.insert(arc, next) == Insert::Refused {
                        return Err(to);
                    }
                }
            }
        }
        Ok(())
    }

    /// Switches by their distance from a leaf.
    fn nearest_first(&self, leaf: SwitchIndex) -> Vec<SwitchIndex> {
        let mut seen = vec![false; self.graph.switch_count()];
        seen[leaf as usize] = true;
        let mut order = vec![leaf];
        let mut head = 0;
        while let Some(&at) = order.get(head) {
            head += 1;
            for arc in self.graph.arcs(at) {
                if !std::mem::replace(&mut seen[arc.to as usize], true) {
                    order.push(arc.to);
                }
            }
        }
        order
    }

    /// Adds what the exit `port` of `s` brings; nothing is left behind when a part of it is refused.
    fn try_member(&mut self, s: SwitchIndex, port: u8, kept: &[PortSet]) -> bool {
        let member = self.by_port[s as usize][usize::from(port)];
        let to = self.graph.all_arcs()[member as usize].to;
        let behind =
            kept[to as usize].iter().map(|next| (member, self.by_port[to as usize][usize::from(next)]));
        let back = self.graph.arcs(s).iter().map(|arc| (arc.to, arc.in_port));
        let into = back.filter(|(from, port)| kept[*from as usize].contains(*port));
        let before = into.map(|(from, port)| (self.by_port[from as usize][usize::from(port)], member));
        let wanted: Vec<(u32, u32)> = behind.chain(before).collect();
        let mut added: Vec<(u32, u32)> = Vec::with_capacity(wanted.len());
        for (x, y) in wanted {
            match self.dependencies.insert(x, y) {
                Insert::Known => {}
                Insert::Added => added.push((x, y)),
                Insert::Refused => {
                    added.into_iter().for_each(|(x, y)| self.dependencies.remove(x, y));
                    return false;
                }
            }
        }
        true
    }
}
