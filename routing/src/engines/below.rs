//! Choices among several lower switches.
//!
//! In a tree as it is in books one way leads down to each leaf. Where several lower switches share a leaf (a director of whose
//! line cards four serve the leaves of a pod, say), the routes to the hosts of a leaf that come to an upper switch were
//! chosen by the digit of its level: by Π all of them would go to one lower switch, and those to other leaves of
//! the pod with them. How the hosts part is the digit by which those below choose among these switches on the way up: the
//! divider of the level two below. That is even unless the switches of one director take turns with those of others whose number has
//! a factor in common with theirs. Cost: linear in the links.

use crate::fabric::{SwitchGraph, SwitchIndex};

/// What a switch knows of those below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Below {
    /// The largest divider two levels below, 1 where there is none.
    divider: u32,
    /// The ports that lead down, one bit each.
    ports: [u64; 4],
}

impl Below {
    /// For all switches, at `level` above the hosts.
    pub(super) fn all(graph: &SwitchGraph, level: &[u16], divider: &[u32]) -> Vec<Self> {
        let switches = || 0..level.len() as SwitchIndex;
        let is_lower = |s: SwitchIndex, to: SwitchIndex| level[to as usize] < level[s as usize];
        let below = |of: &[u32]| -> Vec<u32> {
            let largest = |s: SwitchIndex| {
                let lower = graph.arcs(s).iter().filter(|arc| is_lower(s, arc.to));
                lower.map(|arc| of[arc.to as usize]).max().unwrap_or(1)
            };
            switches().map(largest).collect()
        };
        let two_below = below(&below(divider));
        let of = |s: SwitchIndex| {
            let mut ports = [0; 4];
            let lower = graph.arcs(s).iter().filter(|arc| is_lower(s, arc.to));
            lower.for_each(|arc| ports[usize::from(arc.out_port) / 64] |= 1 << (arc.out_port % 64));
            Self { divider: two_below[s as usize], ports }
        };
        switches().map(of).collect()
    }

    /// What ranks are divided by where `choices`, ports of switch `s`, lead to several switches, all of them below.
    pub(super) fn divider(&self, graph: &SwitchGraph, s: SwitchIndex, choices: &[u8]) -> Option<u32> {
        let leads_down = |port: &u8| self.ports[usize::from(*port) / 64] >> (port % 64) & 1 == 1;
        if !choices.iter().all(leads_down) {
            return None;
        }
        let end = |port: &u8| graph.arcs(s).iter().find(|arc| arc.out_port == *port).map(|arc| arc.to);
        let mut to = choices.iter().map(end);
        let first = to.next()?;
        to.any(|to| to != first).then_some(self.divider)
    }
}

#[cfg(test)]
mod tests {
    use crate::engines::testing::{after_each_lost_cable, check_all};
    use crate::engines::{MinHop, RoutingEngine, RoutingInput, UpDown, by_name};
    use crate::fabric::{Fabric, SwitchGraph, testing};

    /// Four pods of four leaves, each leaf with as many hosts as there are line cards with links to all leaves of its pod; of these
    /// cards two are in each director, which has four spines. The cards of a director follow one another or take turns.
    fn directors(count: usize, turns: bool) -> Fabric {
        let mut builder = testing::Builder::new(16);
        let spines: Vec<Vec<_>> = (0..count).map(|_| (0..4).map(|_| builder.switch()).collect()).collect();
        for _ in 0..4 {
            let cards: Vec<_> = (0..2 * count).map(|_| builder.switch()).collect();
            for (i, card) in cards.iter().enumerate() {
                let director = if turns { i % count } else { i / 2 };
                spines[director].iter().for_each(|spine| builder.link(*card, *spine));
            }
            for _ in 0..4 {
                let leaf = builder.switch();
                for card in &cards {
                    builder.link(leaf, *card);
                    builder.host(leaf);
                }
            }
        }
        builder.finish(0)
    }

    #[test]
    fn several_line_cards_share_the_routes_to_a_leaf() {
        for (count, turns) in [(2, false), (3, false), (3, true)] {
            let graph = SwitchGraph::new(&directors(count, turns));
            let engines: [&dyn RoutingEngine; 2] = [&MinHop, &UpDown];
            for engine in engines {
                let balance = check_all(engine, &graph, &RoutingInput::default()).balance;
                println!("{}, {count} directors, turns {turns}: {balance:?}", engine.name());
                // Over no cable more than the routes of all hosts to one.
                let most = 16 * 2 * count as u32;
                assert!(balance.max <= most, "{}, {count}, turns {turns}: {balance:?}", engine.name());
            }
        }
    }

    #[test]
    fn tables_after_a_lost_cable_are_those_from_nothing() {
        let fabric = directors(3, true);
        for engine in ["minhop", "updn"] {
            after_each_lost_cable(engine, &fabric, |link, less, again| {
                let anew = by_name(engine).unwrap().route(less, &RoutingInput::default()).unwrap();
                assert!(again == anew, "{engine}, without {link:?}");
            });
        }
    }
}
