//! The event queue: by time, and among events of one time in the order in which they were put in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mad::types::Timestamp;

use super::{AgentId, End, Packet, PortEvent, World};

/// Something to be done to the world at a given time.
pub type Action = Box<dyn FnOnce(&mut World) + Send>;

/// What can happen.
pub(super) enum Event {
    /// A packet reaches a port.
    Arrive { at: End, packet: Box<Packet> },
    /// An agent's deadline.
    Wake(AgentId),
    /// Something became of an agent's port.
    Port(AgentId, PortEvent),
    /// A trap has not been repressed in time.
    RepeatTrap { id: u32 },
    /// A link has trained.
    Train(End),
    /// A scheduled action.
    Action(Action),
}

/// The queue. Events lie in slots that are used again; the heap moves small keys only.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Timestamp, u64, u32)>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    sequence: u64,
}

impl Queue {
    /// Puts an event in.
    pub(super) fn push(&mut self, when: Timestamp, event: Event) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(event);
        self.heap.push(Reverse((when, self.sequence, slot)));
        self.sequence += 1;
    }

    /// When the first event is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((when, ..))| *when)
    }

    /// Takes the first event.
    pub(super) fn pop(&mut self) -> Option<(Timestamp, Event)> {
        let Reverse((when, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        Some((when, event))
    }
}
