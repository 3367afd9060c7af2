//! The places of a switch's up-links in the tree as it was meant, so that a lost link moves only the routes that used it.
//!
//! Between two neighbouring levels the switches fall into groups that hang together (the leaves and middle switches of a
//! pod, say). In a group of a regular tree every lower switch has links to all upper ones; the upper ones in order of GUID,
//! times the parallel links, are the slots. A choice modulo the number of slots stays what it is when a link is gone: only
//! the LIDs of its slot go elsewhere ("sticky modulo"). Nothing has to be remembered for that: the neighbours still show
//! the slot. Cost: linear in the links.

use crate::fabric::{SwitchGraph, SwitchIndex};

/// Of the slots of a switch this share must be linked; else the fabric is not regular there and has no slots.
const LINKED_QUARTERS: usize = 3;

/// The slots of each switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    offsets: Vec<u32>,
    /// Exit port of each slot, [`NO_PORT`](crate::routes::NO_PORT) where no link is.
    ports: Vec<u8>,
    /// For each switch, its place among the lower ones of its group.
    numbers: Vec<u32>,
    /// Slots with a link and all, of irregular switches too.
    linked: (u32, u32),
}

impl Slots {
    /// For switches at `level` above the hosts.
    pub(crate) fn new(graph: &SwitchGraph, level: &[u16]) -> Self {
        let count = graph.switch_count();
        let groups = Groups::new(graph, level);
        let mut slots =
            Self { offsets: vec![0], ports: Vec::new(), numbers: groups.numbers(), linked: (0, 0) };
        for s in 0..count as u32 {
            let group = groups.lower[s as usize];
            if group != u32::MAX {
                let width = groups.upper_count[group as usize] as usize;
                let total = width * groups.parallel[group as usize] as usize;
                let first = slots.ports.len();
                slots.ports.resize(first + total, crate::routes::NO_PORT);
                let mut linked = 0;
                for (run, arc) in
                    runs(graph, s).filter(|(_, a)| level[a.to as usize] == level[s as usize] + 1)
                {
                    slots.ports[first + run * width + groups.place[arc.to as usize] as usize] = arc.out_port;
                    linked += 1;
                }
                slots.linked = (slots.linked.0 + linked as u32, slots.linked.1 + total as u32);
                if linked * 4 < total * LINKED_QUARTERS {
                    slots.ports.truncate(first);
                }
            }
            slots.offsets.push(slots.ports.len() as u32);
        }
        slots
    }

    /// How many places of up-links in a regular tree have a link, and how many there are.
    pub(crate) fn linked(&self) -> (u32, u32) {
        self.linked
    }

    /// The place of a switch among those that share its slots.
    pub(crate) fn number(&self, s: SwitchIndex) -> u32 {
        self.numbers[s as usize]
    }

    /// The exit ports of a switch's slots; empty where it has none.
    pub(crate) fn of(&self, s: SwitchIndex) -> &[u8] {
        &self.ports[self.offsets[s as usize] as usize..self.offsets[s as usize + 1] as usize]
    }
}

/// The arcs of a switch, each with its number among those to the same neighbour.
fn runs(graph: &SwitchGraph, s: SwitchIndex) -> impl Iterator<Item = (usize, &crate::fabric::Arc)> {
    let mut last = u32::MAX;
    let mut run = 0;
    graph.arcs(s).iter().map(move |arc| {
        run = if arc.to == last { run + 1 } else { 0 };
        last = arc.to;
        (run, arc)
    })
}

struct Groups {
    /// For each switch, the group in which it is a lower one.
    lower: Vec<u32>,
    /// For each switch, its place among the upper ones of its group.
    place: Vec<u32>,
    upper_count: Vec<u32>,
    parallel: Vec<u32>,
}

impl Groups {
    /// For each switch, its place among the lower ones of its group, 0 without one.
    fn numbers(&self) -> Vec<u32> {
        let mut next = vec![0; self.upper_count.len()];
        let number = |group: &u32| {
            let Some(next) = next.get_mut(*group as usize) else { return 0 };
            *next += 1;
            *next - 1
        };
        self.lower.iter().map(number).collect()
    }

    fn new(graph: &SwitchGraph, level: &[u16]) -> Self {
        let count = graph.switch_count();
        let mut groups = Self {
            lower: vec![u32::MAX; count],
            place: vec![0; count],
            upper_count: Vec::new(),
            parallel: Vec::new(),
        };
        let mut seen_above = vec![false; count];
        for start in 0..count as u32 {
            let has_up = |s: u32| graph.arcs(s).iter().any(|a| level[a.to as usize] == level[s as usize] + 1);
            if level[start as usize] == u16::MAX || groups.lower[start as usize] != u32::MAX || !has_up(start)
            {
                continue;
            }
            groups.grow(graph, level, start, &mut seen_above);
        }
        groups
    }

    fn grow(&mut self, graph: &SwitchGraph, level: &[u16], start: SwitchIndex, seen_above: &mut [bool]) {
        let group = self.upper_count.len() as u32;
        let height = level[start as usize];
        self.lower[start as usize] = group;
        let (mut queue, mut upper, mut parallel) = (vec![start], Vec::new(), 1);
        while let Some(s) = queue.pop() {
            for (run, arc) in runs(graph, s).filter(|(_, a)| level[a.to as usize] == height + 1) {
                parallel = parallel.max(run as u32 + 1);
                if std::mem::replace(&mut seen_above[arc.to as usize], true) {
                    continue;
                }
                upper.push(arc.to);
                for down in graph.arcs(arc.to).iter().filter(|a| level[a.to as usize] == height) {
                    if self.lower[down.to as usize] == u32::MAX {
                        self.lower[down.to as usize] = group;
                        queue.push(down.to);
                    }
                }
            }
        }
        upper.sort_unstable();
        for (place, s) in upper.iter().enumerate() {
            self.place[*s as usize] = place as u32;
        }
        self.upper_count.push(upper.len() as u32);
        self.parallel.push(parallel);
    }
}
