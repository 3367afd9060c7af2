//! The torus as places: which switch lies where, the cables between neighbouring places, and where rings are broken.
//!
//! Places come from the wiring ([`super::directions`]) or from the operator's seeds ([`super::seeded`]). A place without a
//! switch is a switch that failed. Cost: linear in switches and links.

use crate::fabric::{SwitchGraph, SwitchIndex};

/// The most dimensions that service levels can mark.
pub(super) const MOST_DIMENSIONS: usize = 3;

/// Coordinates; those of dimensions that a torus does not have are 0.
pub(super) type Place = [u16; MOST_DIMENSIONS];

const NONE: SwitchIndex = SwitchIndex::MAX;

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Number of places, 1 or more.
    pub size: u16,
    /// Whether its rings close when nothing is broken.
    pub closed: bool,
}

/// Which half of the 2^LMC LIDs of a port a LID is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// The base LID's; that of ports with one LID.
    Lower,
    /// The other.
    Upper,
}

/// A torus or mesh.
#[derive(Debug)]
pub(super) struct Torus {
    axes: Vec<Axis>,
    /// For each switch its coordinates.
    place: Vec<Place>,
    /// For each (switch, axis, backward) the exit ports.
    cables: Vec<Vec<u8>>,
    /// For each (axis, number of a place) the last place before the break of its ring; `None` where it is closed.
    open: Vec<Vec<Option<u16>>>,
    /// The switch at each place, places counted in order of the dimensions.
    switch_at: Vec<SwitchIndex>,
}

fn sizes(axes: &[Axis]) -> String {
    axes.iter().map(|axis| axis.size.to_string()).collect::<Vec<_>>().join(" x ")
}

impl Torus {
    /// Lays the cables between the places that the switches have.
    ///
    /// # Errors
    /// Two switches at one place, a cable that joins no neighbours, a ring in several pieces; with the switch.
    pub(super) fn lay(graph: &SwitchGraph, axes: Vec<Axis>, place: Vec<Place>) -> Result<Self, String> {
        let total: usize = axes.iter().map(|axis| usize::from(axis.size)).product();
        if total > 2 * place.len().max(1) {
            return Err(format!("{} switches are no torus of {} switches", place.len(), sizes(&axes)));
        }
        let mut torus = Self {
            cables: vec![Vec::new(); place.len() * axes.len() * 2],
            open: vec![vec![None; total]; axes.len()],
            switch_at: vec![NONE; total],
            axes,
            place,
        };
        for s in 0..torus.place.len() as u32 {
            let number = torus.number(torus.place[s as usize]);
            let other = std::mem::replace(&mut torus.switch_at[number], s);
            if other != NONE {
                let (a, b) = (graph.describe(other), graph.describe(s));
                return Err(format!("switches {a} and {b} have the same place in the torus"));
            }
        }
        for s in 0..torus.place.len() as u32 {
            for arc in graph.arcs(s) {
                let Some((axis, forward)) = torus.direction(s, arc.to) else {
                    let (a, b) = (graph.describe(s), graph.describe(arc.to));
                    return Err(format!("switches {a} and {b} are linked and no neighbours in the torus"));
                };
                let slot = torus.slot(s, axis, forward);
                torus.cables[slot].push(arc.out_port);
            }
        }
        torus.find_breaks(graph)?;
        Ok(torus)
    }

    /// Which way the neighbour `to` lies from `s`; of two places of a ring the second lies forward of the first.
    fn direction(&self, s: SwitchIndex, to: SwitchIndex) -> Option<(usize, bool)> {
        let (here, there) = (self.place[s as usize], self.place[to as usize]);
        let mut differing = (0..self.axes.len()).filter(|axis| here[*axis] != there[*axis]);
        let axis = differing.next().filter(|_| differing.next().is_none())?;
        let Axis { size, closed } = self.axes[axis];
        let (here, there) = (here[axis], there[axis]);
        if here + 1 == there || there + 1 == here {
            return Some((axis, there > here));
        }
        let around = closed && here.abs_diff(there) == size - 1;
        around.then_some((axis, there < here))
    }

    /// Finds where each ring is broken: it must be in one piece.
    fn find_breaks(&mut self, graph: &SwitchGraph) -> Result<(), String> {
        for axis in 0..self.axes.len() {
            let Axis { size, .. } = self.axes[axis];
            for start in 0..self.switch_at.len() {
                let first = self.place_of(start);
                if first[axis] != 0 {
                    continue;
                }
                let at = |i: u16| {
                    let mut place = first;
                    place[axis] = i % size;
                    self.at(place)
                };
                // A switch whose forward cable is missing, or leads round between two places, ends a piece.
                let ends: Vec<u16> = (0..size)
                    .filter(|i| at(*i).is_some_and(|s| self.next(s, axis, true).is_none()))
                    .collect();
                if ends.len() > 1 {
                    let switch = at(ends[0]).map_or_else(String::new, |s| graph.describe(s));
                    return Err(format!("the ring of switch {switch} is broken in more than one place"));
                }
                for i in 0..size {
                    let mut place = first;
                    place[axis] = i;
                    let number = self.number(place);
                    self.open[axis][number] = ends.first().copied();
                }
            }
        }
        Ok(())
    }

    fn slot(&self, s: SwitchIndex, axis: usize, forward: bool) -> usize {
        (s as usize * self.axes.len() + axis) * 2 + usize::from(!forward)
    }

    /// Number of dimensions.
    pub(super) fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// Places without a switch.
    pub(super) fn missing(&self) -> impl Iterator<Item = Place> + '_ {
        let empty = self.switch_at.iter().enumerate().filter(|(_, s)| **s == NONE);
        empty.map(|(number, _)| self.place_of(number))
    }

    fn middle(&self) -> Place {
        std::array::from_fn(|axis| self.axes.get(axis).map_or(0, |axis| axis.size / 2))
    }

    /// Whether a switch lies at the middle place.
    pub(super) fn is_in_the_middle(&self, s: SwitchIndex) -> bool {
        self.place[s as usize] == self.middle()
    }

    /// Whether paths of an SL cross the dateline of a dimension.
    fn crosses(&self, axis: usize, sl: u8) -> bool {
        self.axes[axis].closed && self.axes[axis].size > 2 && sl >> axis & 1 == 1
    }

    /// Whether some ring of more than two switches closes.
    pub(super) fn has_closed_rings(&self) -> bool {
        let closed = |(open, axis): (&Vec<Option<u16>>, &Axis)| axis.size > 2 && open.contains(&None);
        self.open.iter().zip(&self.axes).any(closed)
    }

    /// The exit ports of `s` along a dimension.
    pub(super) fn cables(&self, s: SwitchIndex, axis: usize, forward: bool) -> &[u8] {
        &self.cables[self.slot(s, axis, forward)]
    }

    /// The switch next to `s`, where a cable leads to it.
    pub(super) fn next(&self, s: SwitchIndex, axis: usize, forward: bool) -> Option<SwitchIndex> {
        if self.cables(s, axis, forward).is_empty() {
            return None;
        }
        let mut place = self.place[s as usize];
        let size = self.axes[axis].size;
        place[axis] = if forward { (place[axis] + 1) % size } else { (place[axis] + size - 1) % size };
        self.at(place)
    }

    /// The dimension and direction of the next hop from `s` to `target`: dimension by dimension. Where the place at which a
    /// dimension would be left has no switch, the path goes on towards it as far as there are switches, then turns early
    /// into a later dimension. `None` when it is there, or nothing leads on. `half`: which of two equal ways round a ring.
    pub(super) fn step(&self, s: SwitchIndex, target: SwitchIndex, half: Half) -> Option<(usize, bool)> {
        let (here, there) = (self.place[s as usize], self.place[target as usize]);
        for axis in (0..self.axes.len()).filter(|axis| here[*axis] != there[*axis]) {
            let mut corner = here;
            corner[axis] = there[axis];
            let forward = if self.at(corner).is_some() {
                self.forward(axis, here, there[axis], half)
            } else {
                self.intended(axis, here[axis], there[axis], half)
            };
            if self.next(s, axis, forward).is_some() {
                return Some((axis, forward));
            }
        }
        None
    }

    /// The shorter way round; the only one where the ring is open between the two.
    fn forward(&self, axis: usize, here: Place, there: u16, half: Half) -> bool {
        let size = self.axes[axis].size;
        match self.open[axis][self.number(here)] {
            // The ring counted from behind its gap is a line.
            Some(last) => {
                let from_gap = |place: u16| (place + size - (last + 1) % size) % size;
                from_gap(there) > from_gap(here[axis])
            }
            None => self.intended(axis, here[axis], there, half),
        }
    }

    /// The way round of a ring without any break.
    fn intended(&self, axis: usize, here: u16, there: u16, half: Half) -> bool {
        let Axis { size, closed } = self.axes[axis];
        if !closed || size <= 2 {
            return there > here;
        }
        let ahead = (there + size - here) % size;
        // Ways of equal length are shared between even and odd places, and between the LIDs of a port.
        let first = here.is_multiple_of(2) == (half == Half::Lower);
        if 2 * ahead == size { first } else { 2 * ahead < size }
    }

    /// The next hop towards the middle place, dimension by dimension. In a ring that is whole it leads over no dateline; where the SL
    /// says that paths cross that, over all links but the one behind the middle, which these don't take. `None` when it is there, or
    /// nothing leads on.
    pub(super) fn inward(&self, s: SwitchIndex, sl: u8) -> Option<(usize, bool)> {
        let here = self.place[s as usize];
        let middle = self.middle();
        let axis = (0..self.axes.len()).find(|axis| here[*axis] != middle[*axis])?;
        let forward = match self.open[axis][self.number(here)] {
            Some(_) => self.forward(axis, here, middle[axis], Half::Lower),
            None => middle[axis] > here[axis] && !self.crosses(axis, sl),
        };
        self.next(s, axis, forward).map(|_| (axis, forward))
    }

    /// SL of the path: bit d when, with nothing broken, it crosses the link between the last and the first place of
    /// dimension d. What breaks does not change it, so clients need not ask again: a broken ring can't lock up by
    /// itself, whatever VLs its packets are on.
    pub(super) fn datelines(&self, s: SwitchIndex, target: SwitchIndex, half: Half) -> u8 {
        let (here, there) = (self.place[s as usize], self.place[target as usize]);
        let crosses = |axis: &usize| {
            let (here, there) = (here[*axis], there[*axis]);
            here != there && self.intended(*axis, here, there, half) != (there > here)
        };
        (0..self.axes.len()).filter(crosses).fold(0, |sl, axis| sl | 1 << axis)
    }

    fn number(&self, place: Place) -> usize {
        let axes = self.axes.iter().zip(place).rev();
        axes.fold(0, |number, (axis, place)| number * usize::from(axis.size) + usize::from(place))
    }

    fn place_of(&self, mut number: usize) -> Place {
        let mut place = [0; MOST_DIMENSIONS];
        for (axis, place) in self.axes.iter().zip(&mut place) {
            *place = (number % usize::from(axis.size)) as u16;
            number /= usize::from(axis.size);
        }
        place
    }

    fn at(&self, place: Place) -> Option<SwitchIndex> {
        Some(self.switch_at[self.number(place)]).filter(|s| *s != NONE)
    }
}
