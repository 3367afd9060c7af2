//! Finds the places of a torus from a seed: one switch and its neighbours by direction, as torus-2QoS.conf names them. The
//! ports of cables don't matter.
//!
//! A switch next to a placed one gets a place as soon as only one is left for it: a free place beside all of its placed
//! neighbours, and not in the direction in which lies a neighbour with which it closes a loop of four switches (such loops
//! span two dimensions). A ring of four is such a loop itself; there both directions have to be in the seed. Cost: for
//! each place some neighbours of neighbours, more than once where places become known late.

use super::config::{TorusConfig, TorusSeed};
use super::coordinates::{Axis, MOST_DIMENSIONS, Place};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Dimensions, and the place of every switch, by the first seed that is there.
///
/// # Errors
/// No seed can be used (why, for each), or a switch gets no place.
pub(super) fn places(graph: &SwitchGraph, config: &TorusConfig) -> Result<(Vec<Axis>, Vec<Place>), String> {
    let dimensions =
        config.dimensions.iter().map(|d| Axis { size: d.radix, closed: d.closed && d.radix > 2 });
    let axes: Vec<Axis> = dimensions.collect();
    let mut reasons = Vec::new();
    for (number, seed) in (1..).zip(&config.seeds) {
        let mut grid = Grid::new(graph, &axes, seed.dateline);
        match grid.begin(seed) {
            Ok(()) => return grid.grow().map(|places| (axes, places)),
            Err(reason) => reasons.push(format!("seed {number}: {reason}")),
        }
    }
    Err(if reasons.is_empty() { "no seed is configured".into() } else { reasons.join("; ") })
}

struct Grid<'g> {
    graph: &'g SwitchGraph,
    axes: &'g [Axis],
    dateline: [i32; 3],
    place: Vec<Option<Place>>,
    taken: Vec<bool>,
    /// Placed switches, some of whose neighbours may have no place.
    queue: Vec<SwitchIndex>,
}

impl<'g> Grid<'g> {
    fn new(graph: &'g SwitchGraph, axes: &'g [Axis], dateline: [i32; 3]) -> Self {
        let total = axes.iter().map(|axis| usize::from(axis.size)).product();
        Self {
            graph,
            axes,
            dateline,
            place: vec![None; graph.switch_count()],
            taken: vec![false; total],
            queue: Vec::new(),
        }
    }

    /// Places the switches of a seed.
    fn begin(&mut self, seed: &TorusSeed) -> Result<(), String> {
        let find = |guid| self.graph.find(guid).ok_or_else(|| format!("switch {guid} is not there"));
        let origin = find(seed.origin)?;
        let mut place = [0; MOST_DIMENSIONS];
        for (axis, place) in place.iter_mut().enumerate() {
            let Axis { size, closed } = self.axes[axis];
            let shifted = -i64::from(self.dateline[axis]);
            let inside = (0..i64::from(size)).contains(&shifted);
            if !closed && size > 2 && !inside {
                return Err(format!(
                    "its dateline puts {} out of dimension {}, which is open and has {size} places",
                    self.graph.describe(origin),
                    ["x", "y", "z"][axis]
                ));
            }
            *place = shifted.rem_euclid(i64::from(size)) as u16;
        }
        let mut seeded = vec![(origin, place)];
        for (axis, guids) in seed.neighbours.iter().enumerate() {
            let Axis { size, closed } = self.axes[axis];
            let given = guids.iter().flatten().count();
            let letter = ["x", "y", "z"][axis];
            if size > 1 && given == 0 {
                return Err(format!("it names no neighbour along {letter}"));
            }
            if size == 4 && closed && given < 2 {
                return Err(format!("{letter} is a ring of four: it must name both neighbours along it"));
            }
            for (guid, forward) in guids.iter().zip([true, false]) {
                let Some(guid) = guid else { continue };
                let to = find(*guid)?;
                if !self.graph.arcs(origin).iter().any(|arc| arc.to == to) {
                    let (a, b) = (self.graph.describe(origin), self.graph.describe(to));
                    return Err(format!("no cable joins switches {a} and {b}"));
                }
                let there = self.beside(place, axis, forward);
                seeded.push((
                    to,
                    there.ok_or_else(|| {
                        format!("switch {} lies beyond the end of {letter}", self.graph.describe(to))
                    })?,
                ));
            }
        }
        for (s, place) in seeded {
            if !self.put(s, place) {
                return Err(format!("switch {} is named for two places", self.graph.describe(s)));
            }
        }
        Ok(())
    }

    /// Places all others.
    fn grow(mut self) -> Result<Vec<Place>, String> {
        let mut waiting: Vec<SwitchIndex> = Vec::new();
        loop {
            let mut found = false;
            while let Some(s) = self.queue.pop() {
                let unplaced = self.graph.arcs(s).iter().map(|arc| arc.to);
                waiting.extend(unplaced.filter(|to| self.place[*to as usize].is_none()));
            }
            waiting.sort_unstable();
            waiting.dedup();
            for s in &waiting {
                if let Some(place) = self.only_place(*s) {
                    found |= self.put(*s, place);
                }
            }
            waiting.retain(|s| self.place[*s as usize].is_none());
            if !found {
                break;
            }
        }
        let without: Vec<SwitchIndex> =
            (0..).zip(&self.place).filter_map(|(s, place)| place.is_none().then_some(s)).collect();
        match without.first() {
            None => Ok(self.place.into_iter().flatten().collect()),
            Some(s) => {
                let sizes: Vec<String> = self.axes.iter().map(|axis| axis.size.to_string()).collect();
                let (name, sizes) = (self.graph.describe(*s), sizes.join(" x "));
                Err(format!("{} switches get no place in a torus of {sizes}, as {name}", without.len()))
            }
        }
    }

    /// Puts a switch on a place. False when the switch or the place has another.
    fn put(&mut self, s: SwitchIndex, place: Place) -> bool {
        let number = self.number(place);
        if self.taken[number] || self.place[s as usize].is_some() {
            return self.place[s as usize] == Some(place);
        }
        self.taken[number] = true;
        self.place[s as usize] = Some(place);
        self.queue.push(s);
        true
    }

    /// The place of a switch, when only one is possible.
    fn only_place(&self, s: SwitchIndex) -> Option<Place> {
        let mut placed: Vec<(SwitchIndex, Place)> = Vec::new();
        for arc in self.graph.arcs(s) {
            if let Some(place) =
                self.place[arc.to as usize].filter(|_| placed.last().is_none_or(|l| l.0 != arc.to))
            {
                placed.push((arc.to, place));
            }
        }
        let mut possible: Option<Vec<Place>> = None;
        for (next, at) in &placed {
            let from_here = self.possible(s, *next, *at, &placed);
            possible = Some(match possible {
                None => from_here,
                Some(mut before) => {
                    before.retain(|place| from_here.contains(place));
                    before
                }
            });
        }
        possible.filter(|places| places.len() == 1)?.pop()
    }

    /// The free places beside `next`, which lies at `at`, that `s` could have.
    fn possible(
        &self,
        s: SwitchIndex,
        next: SwitchIndex,
        at: Place,
        placed: &[(SwitchIndex, Place)],
    ) -> Vec<Place> {
        let mut possible = Vec::new();
        for axis in 0..self.axes.len() {
            let Axis { size, closed } = self.axes[axis];
            let sides: Vec<Place> =
                [true, false].into_iter().filter_map(|f| self.beside(at, axis, f)).collect();
            let free = |place: &&Place| !self.taken[self.number(**place)];
            let fits = |place: &&Place| placed.iter().all(|(_, other)| self.are_beside(**place, *other));
            // A loop of four over a neighbour along this axis leads out of the axis.
            let along = |to: SwitchIndex| self.place[to as usize].is_some_and(|p| sides.contains(&p));
            let ring_of_four = size == 4 && closed;
            if !ring_of_four && self.closes_loop(s, next, &along) {
                continue;
            }
            for place in sides.iter().filter(free).filter(fits) {
                if !possible.contains(place) {
                    possible.push(*place);
                }
            }
        }
        possible
    }

    /// Whether `s` and a neighbour of `next` that is `along` have another neighbour in common.
    fn closes_loop(&self, s: SwitchIndex, next: SwitchIndex, along: &dyn Fn(SwitchIndex) -> bool) -> bool {
        let of = |at: SwitchIndex| self.graph.arcs(at).iter().map(|arc| arc.to);
        let linked = |a: SwitchIndex, b: SwitchIndex| of(a).any(|to| to == b);
        of(next).filter(|to| *to != s && along(*to)).any(|to| {
            !linked(to, s) && of(to).any(|corner| corner != next && corner != s && linked(corner, s))
        })
    }

    /// The place next to another; `None` beyond the end of an open dimension.
    fn beside(&self, mut place: Place, axis: usize, forward: bool) -> Option<Place> {
        let Axis { size, closed } = self.axes[axis];
        let end = if forward { size - 1 } else { 0 };
        if size == 1 || (place[axis] == end && !closed && size > 2) {
            return None;
        }
        place[axis] = (place[axis] + if forward { 1 } else { size - 1 }) % size;
        Some(place)
    }

    fn are_beside(&self, a: Place, b: Place) -> bool {
        let beside = |axis| [true, false].into_iter().any(|f| self.beside(a, axis, f) == Some(b));
        (0..self.axes.len()).any(beside)
    }

    fn number(&self, place: Place) -> usize {
        let axes = self.axes.iter().zip(place).rev();
        axes.fold(0, |number, (axis, place)| number * usize::from(axis.size) + usize::from(place))
    }
}
