//! A directed graph that stays free of cycles: an edge that would close one is refused.
//!
//! Keeps a topological order and repairs only the part between the two ends of a new edge (Pearce, Kelly, "A dynamic
//! topological sort algorithm for directed acyclic graphs", JEA 11, 2007). Removing an edge leaves the order valid.

/// The graph.
#[derive(Clone, Debug)]
pub(crate) struct Acyclic {
    place: Vec<u32>,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    mark: Vec<u32>,
    stamp: u32,
    stack: Vec<u32>,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    places: Vec<u32>,
}

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    /// It was there.
    Known,
    /// It is there now.
    Added,
    /// It would close a cycle; nothing changed.
    Refused,
}

impl Acyclic {
    /// `count` vertices, no edge.
    pub(crate) fn new(count: usize) -> Self {
        Self::with_order((0..count as u32).collect())
    }

    /// One vertex for each place, all different: an order in which most edges will point forwards. Each that
    /// does costs nothing.
    pub(crate) fn with_order(place: Vec<u32>) -> Self {
        let count = place.len();
        Self {
            place,
            out: vec![Vec::new(); count],
            into: vec![Vec::new(); count],
            mark: vec![0; count],
            stamp: 0,
            stack: Vec::new(),
            ahead: Vec::new(),
            behind: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Adds the edge from `x` to `y` if it closes no cycle.
    pub(crate) fn insert(&mut self, x: u32, y: u32) -> Insert {
        if self.out[x as usize].contains(&y) {
            return Insert::Known;
        }
        if self.insert_new(x, y) { Insert::Added } else { Insert::Refused }
    }

    /// Adds edges if they all together close no cycle. False, and nothing changed but the order, if they do.
    pub(crate) fn insert_all(&mut self, edges: &[(u32, u32)]) -> bool {
        let mut added = Vec::new();
        for (x, y) in edges {
            match self.insert(*x, *y) {
                Insert::Known => {}
                Insert::Added => added.push((*x, *y)),
                Insert::Refused => {
                    added.into_iter().for_each(|(x, y)| self.remove(x, y));
                    return false;
                }
            }
        }
        true
    }

    /// Adds an edge that is known not to be there, from `x` to `y`, if it closes no cycle. False, and nothing changed, if so.
    pub(crate) fn insert_new(&mut self, x: u32, y: u32) -> bool {
        if x == y || (self.place[x as usize] > self.place[y as usize] && !self.repair(x, y)) {
            return false;
        }
        self.out[x as usize].push(y);
        self.into[y as usize].push(x);
        true
    }

    /// Whether an edge would agree with the order as it is, so that adding it costs nothing.
    pub(crate) fn is_forward(&self, x: u32, y: u32) -> bool {
        self.place[x as usize] < self.place[y as usize]
    }

    /// Where the edges from `x` lead.
    pub(crate) fn following(&self, x: u32) -> &[u32] {
        &self.out[x as usize]
    }

    /// The places in an order that is forwards along all edges.
    pub(crate) fn into_places(self) -> Vec<u32> {
        self.place
    }

    /// Takes an edge away.
    pub(crate) fn remove(&mut self, x: u32, y: u32) {
        self.out[x as usize].retain(|to| *to != y);
        self.into[y as usize].retain(|from| *from != x);
    }

    /// Moves what `y` leads to behind what leads to `x`. False when `y` leads to `x`.
    fn repair(&mut self, x: u32, y: u32) -> bool {
        let (low, high) = (self.place[y as usize], self.place[x as usize]);
        self.stamp += 1;
        self.ahead.clear();
        self.stack.push(y);
        self.mark[y as usize] = self.stamp;
        while let Some(v) = self.stack.pop() {
            if v == x {
                self.stack.clear();
                return false;
            }
            self.ahead.push(v);
            for next in &self.out[v as usize] {
                if self.place[*next as usize] <= high && self.mark[*next as usize] != self.stamp {
                    self.mark[*next as usize] = self.stamp;
                    self.stack.push(*next);
                }
            }
        }
        self.behind.clear();
        self.stack.push(x);
        self.mark[x as usize] = self.stamp;
        while let Some(v) = self.stack.pop() {
            self.behind.push(v);
            for before in &self.into[v as usize] {
                if self.place[*before as usize] >= low && self.mark[*before as usize] != self.stamp {
                    self.mark[*before as usize] = self.stamp;
                    self.stack.push(*before);
                }
            }
        }
        let place = &mut self.place;
        self.behind.sort_unstable_by_key(|v| place[*v as usize]);
        self.ahead.sort_unstable_by_key(|v| place[*v as usize]);
        self.places.clear();
        self.places.extend(self.behind.iter().chain(&self.ahead).map(|v| place[*v as usize]));
        self.places.sort_unstable();
        for (v, to) in self.behind.iter().chain(&self.ahead).zip(&self.places) {
            place[*v as usize] = *to;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// Against a search from scratch after every edge.
    #[test]
    fn edges_are_refused_exactly_when_they_close_a_cycle() {
        let mut random = rand_pcg::Pcg64Mcg::new(7);
        for _ in 0..50 {
            let mut ours = Acyclic::new(12);
            let mut graph = petgraph::graphmap::DiGraphMap::<u32, ()>::new();
            for _ in 0..60 {
                let (x, y) = (random.random_range(0..12), random.random_range(0..12));
                if random.random_range(0..5) == 0 {
                    ours.remove(x, y);
                    graph.remove_edge(x, y);
                    continue;
                }
                let known = graph.contains_edge(x, y);
                graph.add_edge(x, y, ());
                let closes = petgraph::algo::is_cyclic_directed(&graph);
                let expected = if known {
                    Insert::Known
                } else if closes {
                    Insert::Refused
                } else {
                    Insert::Added
                };
                assert_eq!(ours.insert(x, y), expected);
                if closes && !known {
                    graph.remove_edge(x, y);
                }
            }
        }
    }
}
