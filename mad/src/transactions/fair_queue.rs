//! Requests that wait, by destination: destinations take turns, each within its share of the window.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
struct Destination {
    waiting: VecDeque<u32>,
    in_flight: usize,
    /// Whether it stands in the line of those that may send.
    in_line: bool,
}

/// Slots (indices of requests) that wait, and how many are in flight, per destination and in all.
#[derive(Debug)]
pub(super) struct FairQueue {
    destinations: FxHashMap<u64, Destination>,
    /// Destinations with something to send and room in their share, each once, next first.
    line: VecDeque<u64>,
    share: usize,
    queued: usize,
    in_flight: usize,
}

impl FairQueue {
    pub(super) fn new(share: usize) -> Self {
        Self { destinations: FxHashMap::default(), line: VecDeque::new(), share, queued: 0, in_flight: 0 }
    }

    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Destinations that have something to send and room for it.
    pub(super) fn destinations_in_line(&self) -> usize {
        self.line.len()
    }

    pub(super) fn push_back(&mut self, key: u64, slot: u32) {
        self.destinations.entry(key).or_default().waiting.push_back(slot);
        self.queued += 1;
        self.settle(key);
    }

    pub(super) fn push_front(&mut self, key: u64, slot: u32) {
        self.destinations.entry(key).or_default().waiting.push_front(slot);
        self.queued += 1;
        self.settle(key);
    }

    /// The next slot to send, now in flight.
    pub(super) fn pop(&mut self) -> Option<u32> {
        while let Some(key) = self.line.pop_front() {
            let Some(destination) = self.destinations.get_mut(&key) else { continue };
            destination.in_line = false;
            let slot = destination.waiting.pop_front();
            if slot.is_some() {
                destination.in_flight += 1;
                self.in_flight += 1;
                self.queued -= 1;
            }
            self.settle(key);
            if slot.is_some() {
                return slot;
            }
        }
        None
    }

    /// One of this destination's is no longer in flight.
    pub(super) fn release(&mut self, key: u64) {
        if let Some(destination) = self.destinations.get_mut(&key) {
            destination.in_flight -= 1;
            self.in_flight -= 1;
            self.settle(key);
        }
    }

    /// Takes out one that waits; nothing when it does not wait.
    pub(super) fn remove(&mut self, key: u64, slot: u32) {
        if let Some(destination) = self.destinations.get_mut(&key)
            && let Some(at) = destination.waiting.iter().position(|waiting| *waiting == slot)
        {
            destination.waiting.remove(at);
            self.queued -= 1;
            self.settle(key);
        }
    }

    /// Forgets all that wait.
    pub(super) fn clear_queued(&mut self) {
        self.line.clear();
        self.queued = 0;
        self.destinations.retain(|_, destination| {
            destination.waiting.clear();
            destination.in_line = false;
            destination.in_flight > 0
        });
    }

    /// Puts a destination in line if it may send, and forgets one that has nothing left. One that lost its last
    /// waiting slot while in line stays there until its turn.
    fn settle(&mut self, key: u64) {
        let Some(destination) = self.destinations.get_mut(&key) else { return };
        if destination.in_line {
            return;
        }
        if !destination.waiting.is_empty() {
            if destination.in_flight < self.share {
                destination.in_line = true;
                self.line.push_back(key);
            }
        } else if destination.in_flight == 0 {
            self.destinations.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_take_turns_within_their_share() {
        let mut queue = FairQueue::new(2);
        (0..4).for_each(|slot| queue.push_back(7, slot));
        (4..6).for_each(|slot| queue.push_back(8, slot));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [0, 4, 1, 5], "two each, by turns");
        assert_eq!((queue.queued(), queue.in_flight()), (2, 4));
        queue.release(8);
        assert_eq!(queue.pop(), None, "the other's room is no room for 7");
        queue.release(7);
        assert_eq!(queue.pop(), Some(2));
        queue.push_front(7, 9);
        queue.release(7);
        assert_eq!(queue.pop(), Some(9), "what is to be repeated goes first");
    }

    #[test]
    fn nothing_is_kept_of_an_idle_destination() {
        let mut queue = FairQueue::new(1);
        for key in 0..1000 {
            queue.push_back(key, 1);
            queue.push_back(key, 2);
            assert_eq!(queue.pop(), Some(1));
            queue.remove(key, 2);
            queue.release(key);
        }
        while queue.pop().is_some() {}
        assert!(queue.destinations.is_empty() && queue.line.is_empty());
    }
}
