//! Finds the coordinates of a torus from its wiring.
//!
//! A direction is a pair of ports: a cable from port p of one switch to port q of its neighbour, the same p and q all along
//! the dimension. Parallel cables are further pairs that join the same switches; they belong to the same direction.

use std::collections::BTreeMap;

use crate::fabric::{SwitchGraph, SwitchIndex};

/// The most dimensions that service levels can mark.
const MOST_DIMENSIONS: usize = 3;

/// A torus or mesh.
pub(super) struct Torus {
    /// Size of each dimension.
    size: Vec<u16>,
    /// For each switch its coordinates.
    place: Vec<[u16; MOST_DIMENSIONS]>,
    /// For each (switch, axis, backward) the exit ports.
    cables: Vec<Vec<u8>>,
    /// For each (axis, ring) the place behind which the ring is open; `None` where it is closed.
    open: Vec<Vec<Option<u16>>>,
    rings: Vec<Vec<u32>>,
    /// The switch at each place, places counted in order of the dimensions.
    switch_at: Vec<SwitchIndex>,
}

fn name(graph: &SwitchGraph, s: SwitchIndex) -> String {
    format!("\"{}\" ({})", graph.name(s), graph.guid(s))
}

impl Torus {
    /// Finds it.
    ///
    /// # Errors
    /// What does not fit, with the switch.
    pub(super) fn find(graph: &SwitchGraph) -> Result<Self, String> {
        let axes = directions(graph)?;
        let count = graph.switch_count();
        let mut torus = Self {
            size: vec![1; axes.len()],
            place: vec![[0; MOST_DIMENSIONS]; count],
            cables: vec![Vec::new(); count * axes.len() * 2],
            open: vec![Vec::new(); axes.len()],
            rings: vec![vec![u32::MAX; count]; axes.len()],
            switch_at: vec![0; count],
        };
        let mut next = vec![vec![u32::MAX; count]; axes.len()];
        for (axis, pairs) in axes.iter().enumerate() {
            for s in 0..count as u32 {
                for arc in graph.arcs(s).iter().filter(|a| pairs.contains(&(a.out_port, a.in_port))) {
                    let to = &mut next[axis][s as usize];
                    if *to != u32::MAX && *to != arc.to {
                        return Err(format!("switch {} has two neighbours in one direction", name(graph, s)));
                    }
                    *to = arc.to;
                    torus.cables[(s as usize * axes.len() + axis) * 2].push(arc.out_port);
                    torus.cables[(arc.to as usize * axes.len() + axis) * 2 + 1].push(arc.in_port);
                }
            }
        }
        torus.walk_rings(graph, &next)?;
        torus.spread_coordinates(graph, &next)?;
        for s in 0..count {
            let number = torus.number(torus.place[s]);
            torus.switch_at[number] = s as u32;
        }
        Ok(torus)
    }

    /// Follows every ring of every dimension: its size, and where it is open.
    fn walk_rings(&mut self, graph: &SwitchGraph, next: &[Vec<u32>]) -> Result<(), String> {
        for (axis, next) in next.iter().enumerate() {
            let mut previous = vec![u32::MAX; next.len()];
            for (s, to) in next.iter().enumerate().filter(|(_, to)| **to != u32::MAX) {
                if previous[*to as usize] != u32::MAX {
                    return Err(format!("switch {} has two neighbours in one direction", name(graph, *to)));
                }
                previous[*to as usize] = s as u32;
            }
            // Open rings begin where nothing leads to, closed ones anywhere.
            let starts = (0..next.len()).filter(|s| previous[*s] == u32::MAX).chain(0..next.len());
            for start in starts {
                if self.rings[axis][start] != u32::MAX {
                    continue;
                }
                let ring = self.open[axis].len() as u32;
                let (mut at, mut length) = (start, 0);
                while self.rings[axis][at] == u32::MAX {
                    self.rings[axis][at] = ring;
                    length += 1;
                    if next[at] == u32::MAX {
                        break;
                    }
                    at = next[at] as usize;
                }
                self.size[axis] = self.size[axis].max(length);
                let closed = next[at] != u32::MAX;
                self.open[axis].push((!closed).then_some(at as u16));
            }
        }
        Ok(())
    }

    /// Gives coordinates from switch 0 outwards, modulo the sizes; all ways must agree.
    fn spread_coordinates(&mut self, graph: &SwitchGraph, next: &[Vec<u32>]) -> Result<(), String> {
        let count = next.first().map_or(0, Vec::len);
        let total: usize = self.size.iter().map(|s| usize::from(*s)).product();
        if total != count {
            let size: Vec<String> = self.size.iter().map(ToString::to_string).collect();
            return Err(format!("{count} switches are no torus of {} switches", size.join(" x ")));
        }
        let mut previous = vec![vec![u32::MAX; count]; next.len()];
        for (previous, next) in previous.iter_mut().zip(next) {
            for (s, to) in next.iter().enumerate().filter(|(_, to)| **to != u32::MAX) {
                previous[*to as usize] = s as u32;
            }
        }
        let mut known = vec![false; count];
        known[0] = true;
        let mut queue = vec![0_u32];
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for (axis, next) in next.iter().enumerate() {
                let backward = previous[axis][at as usize];
                for (to, step) in [(next[at as usize], 1), (backward, self.size[axis] - 1)] {
                    if to == u32::MAX {
                        continue;
                    }
                    let mut place = self.place[at as usize];
                    place[axis] = (place[axis] + step) % self.size[axis];
                    if !known[to as usize] {
                        known[to as usize] = true;
                        self.place[to as usize] = place;
                        queue.push(to);
                    } else if self.place[to as usize] != place {
                        return Err(format!("switch {} has no single place in the torus", name(graph, to)));
                    }
                }
            }
        }
        if queue.len() != count {
            return Err(format!("{} switches can't be reached from the others", count - queue.len()));
        }
        let place = &self.place;
        for (axis, open) in self.open.iter_mut().enumerate() {
            for last in open.iter_mut().flatten() {
                *last = place[usize::from(*last)][axis];
            }
            // In a whole dimension each ring has all places.
            let full = usize::from(self.size[axis]);
            let mut members = vec![0; open.len()];
            self.rings[axis].iter().for_each(|ring| members[*ring as usize] += 1);
            if let Some(short) = members.iter().position(|count| *count != full) {
                let switch = self.rings[axis].iter().position(|ring| *ring as usize == short).unwrap_or(0);
                return Err(format!(
                    "the ring of switch {} is broken in more than one place",
                    name(graph, switch as u32)
                ));
            }
        }
        Ok(())
    }

    /// Number of dimensions.
    pub(super) fn dimensions(&self) -> usize {
        self.size.len()
    }

    /// Whether some ring of more than two switches closes.
    pub(super) fn has_closed_rings(&self) -> bool {
        self.open.iter().zip(&self.size).any(|(rings, size)| *size > 2 && rings.iter().any(Option::is_none))
    }

    /// The exit ports of `s` along a dimension.
    pub(super) fn cables(&self, s: SwitchIndex, axis: usize, forward: bool) -> &[u8] {
        &self.cables[(s as usize * self.size.len() + axis) * 2 + usize::from(!forward)]
    }

    /// The dimension and direction of the next hop from `s` to `target`; `None` when it is there.
    pub(super) fn step(&self, s: SwitchIndex, target: SwitchIndex) -> Option<(usize, bool)> {
        let (here, there) = (self.place[s as usize], self.place[target as usize]);
        let axis = (0..self.size.len()).find(|axis| here[*axis] != there[*axis])?;
        Some((axis, self.forward(axis, self.rings[axis][s as usize], here[axis], there[axis])))
    }

    /// The shorter way round; the only one where the ring is open between the two.
    fn forward(&self, axis: usize, ring: u32, here: u16, there: u16) -> bool {
        let size = self.size[axis];
        let ahead = (there + size - here) % size;
        match self.open[axis][ring as usize] {
            // The ring counted from behind its gap is a line.
            Some(last) => {
                let from_gap = |place: u16| (place + size - (last + 1) % size) % size;
                from_gap(there) > from_gap(here)
            }
            // Ways of equal length are shared between even and odd places.
            None if 2 * ahead == size => here.is_multiple_of(2),
            None => 2 * ahead < size,
        }
    }

    /// SL of the path: bit d when it crosses the link between the last and the first place of dimension d.
    pub(super) fn datelines(&self, s: SwitchIndex, target: SwitchIndex) -> u8 {
        let mut at = self.place[s as usize];
        let there = self.place[target as usize];
        let mut sl = 0;
        let mut ring_of = s;
        for axis in 0..self.size.len() {
            if at[axis] == there[axis] {
                continue;
            }
            let ring = self.rings[axis][ring_of as usize];
            let forward = self.forward(axis, ring, at[axis], there[axis]);
            let crosses = if forward { there[axis] < at[axis] } else { there[axis] > at[axis] };
            // Only a closed ring can lock up, and there the choice does not change on the way.
            if crosses && self.open[axis][ring as usize].is_none() {
                sl |= 1 << axis;
            }
            at[axis] = there[axis];
            ring_of = self.at(at);
        }
        sl
    }

    fn number(&self, place: [u16; MOST_DIMENSIONS]) -> usize {
        let axes = self.size.iter().zip(place).rev();
        axes.fold(0, |number, (size, place)| number * usize::from(*size) + usize::from(place))
    }

    fn at(&self, place: [u16; MOST_DIMENSIONS]) -> SwitchIndex {
        self.switch_at[self.number(place)]
    }
}

/// The port that a cable leaves and the one it enters.
type PortPair = (u8, u8);

/// The forward port pairs of each dimension, parallel cables joined.
fn directions(graph: &SwitchGraph) -> Result<Vec<Vec<PortPair>>, String> {
    let mut pairs: BTreeMap<PortPair, Vec<(SwitchIndex, SwitchIndex)>> = BTreeMap::new();
    for s in 0..graph.switch_count() as u32 {
        for arc in graph.arcs(s) {
            let forward = (arc.out_port, arc.in_port);
            // Both ends see the cable; the one with the smaller port in front counts, and between equal ports the first.
            if forward.0 < forward.1 || (forward.0 == forward.1 && s < arc.to) {
                pairs.entry(forward).or_default().push((s, arc.to));
            }
        }
    }
    let mut axes: Vec<Vec<PortPair>> = Vec::new();
    let mut joined: Vec<Vec<(SwitchIndex, SwitchIndex)>> = Vec::new();
    for (pair, links) in pairs {
        match joined.iter().position(|known| links.iter().any(|link| known.contains(link))) {
            Some(axis) => {
                axes[axis].push(pair);
                joined[axis].extend(links);
            }
            None => {
                axes.push(vec![pair]);
                joined.push(links);
            }
        }
    }
    if axes.is_empty() || axes.len() > MOST_DIMENSIONS {
        let count = axes.len();
        return Err(format!(
            "cables between switches use {count} pairs of ports, a torus of up to 3 dimensions 1 to 3"
        ));
    }
    Ok(axes)
}
