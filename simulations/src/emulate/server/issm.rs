//! `issmN`: one holder at a time sets IsSM of the port; who comes next waits, as in the kernel, or is told to try again.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::super::backend::Endpoint;

/// Who holds the ports' issm devices, and who waits. Connections go by number.
#[derive(Debug, Default)]
pub(super) struct IsSmLocks {
    ports: FxHashMap<Endpoint, Port>,
}

#[derive(Debug)]
struct Port {
    holder: u64,
    waiting: VecDeque<u64>,
}

/// What became of an attempt to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Holds it now.
    Holds,
    /// Waits.
    Waits,
    /// Somebody else holds it, and the caller did not want to wait.
    Busy,
}

impl IsSmLocks {
    pub(super) fn take(&mut self, endpoint: Endpoint, connection: u64, wait: bool) -> Attempt {
        match self.ports.get_mut(&endpoint) {
            None => {
                self.ports.insert(endpoint, Port { holder: connection, waiting: VecDeque::new() });
                Attempt::Holds
            }
            Some(port) if wait => {
                port.waiting.push_back(connection);
                Attempt::Waits
            }
            Some(_) => Attempt::Busy,
        }
    }

    /// The connection is gone. Gives whether it was the holder, and who holds the device now.
    pub(super) fn release(&mut self, endpoint: Endpoint, connection: u64) -> (bool, Option<u64>) {
        let Some(port) = self.ports.get_mut(&endpoint) else { return (false, None) };
        if port.holder != connection {
            port.waiting.retain(|waiting| *waiting != connection);
            return (false, Some(port.holder));
        }
        if let Some(next) = port.waiting.pop_front() {
            port.holder = next;
            return (true, Some(next));
        }
        self.ports.remove(&endpoint);
        (true, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::backend::NodeId;
    use mad::types::PortNum;

    #[test]
    fn one_holds_and_the_others_follow_in_turn() {
        let port = Endpoint { node: NodeId(0), port: PortNum(1) };
        let mut locks = IsSmLocks::default();
        assert_eq!(locks.take(port, 1, true), Attempt::Holds);
        assert_eq!(locks.take(port, 2, true), Attempt::Waits);
        assert_eq!(locks.take(port, 3, true), Attempt::Waits);
        assert_eq!(locks.take(port, 4, false), Attempt::Busy);
        assert_eq!(locks.release(port, 2), (false, Some(1)), "who waits may give up");
        assert_eq!(locks.release(port, 1), (true, Some(3)));
        assert_eq!(locks.release(port, 3), (true, None));
        assert_eq!(locks.take(port, 4, false), Attempt::Holds);
    }
}
