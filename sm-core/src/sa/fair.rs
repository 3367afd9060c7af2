//! A bounded queue that is fair between requesters: each has its own line, the lines are served in turn, and when all
//! is full it is the longest line that loses its newest entry. So a host that floods waits for itself, not the others
//! for it (B47).
//!
//! Cost: O(1) for each entry; a pass over the lines (at most one for each waiting requester) when the queue is full and
//! a requester without a waiting entry comes.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The queue. `K` names a requester, `T` is what waits.
#[derive(Debug)]
pub(super) struct FairQueue<K, T> {
    lines: HashMap<K, VecDeque<T>>,
    turns: VecDeque<K>,
    len: usize,
    capacity: usize,
    line_capacity: usize,
}

impl<K: Copy + Eq + Hash + Ord, T> FairQueue<K, T> {
    /// A queue for `capacity` entries in all, of which one requester may hold `line_capacity`. Both count as at least 1.
    pub(super) fn new(capacity: usize, line_capacity: usize) -> Self {
        Self {
            lines: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
            capacity: capacity.max(1),
            line_capacity: line_capacity.max(1),
        }
    }

    /// Entries that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Entries of one requester.
    pub(super) fn line(&self, key: &K) -> impl Iterator<Item = &T> {
        self.lines.get(key).into_iter().flatten()
    }

    /// Queues `entry`. Returns the entry that lost its place, if one had to: this one, or the newest of the longest line.
    pub(super) fn push(&mut self, key: K, entry: T) -> Option<T> {
        let waiting = self.lines.get(&key).map_or(0, VecDeque::len);
        if waiting >= self.line_capacity {
            return Some(entry);
        }
        let mut evicted = None;
        if self.len >= self.capacity {
            let longest =
                self.lines.iter().max_by_key(|(key, line)| (line.len(), **key)).map(|(key, _)| *key);
            match longest.filter(|longest| self.lines[longest].len() > waiting + 1) {
                Some(longest) => evicted = self.drop_newest(longest),
                None => return Some(entry),
            }
        }
        let line = self.lines.entry(key).or_default();
        if line.is_empty() {
            self.turns.push_back(key);
        }
        line.push_back(entry);
        self.len += 1;
        evicted
    }

    /// The next entry: the oldest of the line whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let key = self.turns.pop_front()?;
        let line = self.lines.get_mut(&key)?;
        let entry = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        self.len -= usize::from(entry.is_some());
        entry
    }

    /// Takes the newest entry of a line that holds at least two, so that the line keeps its turn.
    fn drop_newest(&mut self, key: K) -> Option<T> {
        let entry = self.lines.get_mut(&key)?.pop_back();
        self.len -= usize::from(entry.is_some());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B47: a flood of one requester neither delays the others by more than one entry nor takes their places.
    #[test]
    fn b47_a_flood_waits_for_itself() {
        let mut queue = FairQueue::new(8, 8);
        for n in 0..8 {
            assert_eq!(queue.push(1, (1, n)), None);
        }
        assert_eq!(queue.push(2, (2, 0)), Some((1, 7)), "the flood loses its newest");
        assert_eq!(queue.push(1, (1, 8)), Some((1, 8)), "and gets no new place");
        assert_eq!(queue.push(3, (3, 0)), Some((1, 6)));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order[..3], [(1, 0), (2, 0), (3, 0)]);
        assert_eq!(order.len(), 8);
        assert_eq!((queue.len(), queue.lines.len(), queue.turns.len()), (0, 0, 0), "nothing stays behind");
    }

    #[test]
    fn a_line_has_its_own_bound() {
        let mut queue = FairQueue::new(100, 2);
        assert_eq!((queue.push(1, 'a'), queue.push(1, 'b'), queue.push(1, 'c')), (None, None, Some('c')));
        assert_eq!(queue.line(&1).count(), 2);
    }
}
