//! A simulated fabric in the same process and in real time: [`PortTransport`] is a [`Transport`] onto one of its ports, and
//! [`MemoryFabric`] the hand that pulls cables and counts datagrams meanwhile.
//!
//! Sending walks the datagram and computes the answer at once, in the sender's thread; the answer waits at the port (for
//! the latencies of the world's configuration, none by default). What the fabric does later by itself, such as repeating
//! a trap, is done by whoever waits in `receive`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mad::transport::{Datagram, Received, Transport, TransportError};
use mad::types::{PortNum, Timestamp};
use mad::wire::Mad;
use mad::wire::smp::Notice;
use routing::fabric::Fabric;

use crate::world::{Agent, AgentId, AgentOutput, Config, End, Stats, World};

/// What all handles share.
struct Shared {
    world: Mutex<World>,
    arrived: Condvar,
    start: Instant,
}

impl Shared {
    /// The world, brought up to the present.
    fn world(&self) -> MutexGuard<'_, World> {
        // A thread that panicked while it held the lock has failed its test already; others may look on.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.run_until(self.now());
        world
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }
}

/// The control handle. Cheap to clone.
#[derive(Clone)]
pub struct MemoryFabric(Arc<Shared>);

impl MemoryFabric {
    /// Brings a fabric to life, without latency unless `config` says otherwise.
    pub fn new(fabric: &Fabric, config: Config) -> Self {
        let world = Mutex::new(World::new(fabric, config));
        Self(Arc::new(Shared { world, arrived: Condvar::new(), start: Instant::now() }))
    }

    /// A transport on a port of the node with this description or GUID; on port 0 of a switch. `None` when there is no such
    /// node or end port. Several transports can be on one port: requests go to the first.
    pub fn attach(&self, node: &str, port: u8) -> Option<PortTransport> {
        let mut world = self.0.world();
        let end = End { node: world.find_name(node)?, port: PortNum(port) };
        let agent = world.attach(end, Box::new(Inbox::default()))?;
        drop(world);
        Some(PortTransport { shared: Arc::clone(&self.0), agent })
    }

    /// Does something to the world: faults, checks, whatever has no method here.
    pub fn with<T>(&self, action: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.0.world();
        let result = action(&mut world);
        let now = world.now();
        world.run_until(now);
        drop(world);
        self.0.arrived.notify_all();
        result
    }

    /// Pulls the cable of a port; false when the node has no such port or no cable is there.
    pub fn unlink(&self, node: &str, port: u8) -> bool {
        self.with(|world| world.find_name(node).is_some_and(|n| world.unlink(End::new(n, port)).is_some()))
    }

    /// Plugs the cable of a port in again.
    pub fn relink(&self, node: &str, port: u8) -> bool {
        self.with(|world| world.find_name(node).is_some_and(|n| world.relink(End::new(n, port))))
    }

    /// Share of packets lost on each link, 0 to 1.
    pub fn set_loss(&self, share: f64) {
        self.with(|world| world.config_mut().loss = share);
    }

    /// Sends a trap from an end port of a node; false when there is no such node.
    pub fn raise_trap(&self, node: &str, port: u8, trap: Notice) -> bool {
        self.with(|world| {
            let found = world.find_name(node);
            found.is_some_and(|n| {
                world.raise_trap(End::new(n, port), trap);
                true
            })
        })
    }

    /// The counters as they are now.
    pub fn stats(&self) -> Stats {
        self.with(|world| world.stats().clone())
    }

    /// Sets the counters to zero.
    pub fn reset_stats(&self) {
        self.with(World::reset_stats);
    }
}

/// Keeps what arrived until the transport takes it.
#[derive(Default)]
struct Inbox {
    arrived: VecDeque<Datagram>,
    woken: bool,
}

impl Agent for Inbox {
    fn accepts(&self, _mad: &Mad) -> bool {
        true
    }

    fn receive(&mut self, datagram: Datagram, _now: Timestamp) {
        self.arrived.push_back(datagram);
    }

    fn poll(&mut self, _now: Timestamp) -> Option<AgentOutput> {
        None
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

/// A transport on a port of the fabric. Detached when dropped.
pub struct PortTransport {
    shared: Arc<Shared>,
    agent: AgentId,
}

impl PortTransport {
    /// Sets or clears the IsSM bit of the port, as opening and closing the kernel's issm device does.
    pub fn set_is_sm(&self, is_sm: bool) {
        self.shared.world().set_is_sm(self.agent, is_sm);
        self.finish();
    }

    /// Lets everything happen that is due, and wakes whoever waits for it.
    fn finish(&self) {
        drop(self.shared.world());
        self.shared.arrived.notify_all();
    }
}

impl Transport for PortTransport {
    fn send(&self, datagram: &Datagram, _timeout: Option<Duration>) -> Result<(), TransportError> {
        self.shared.world().send(self.agent, datagram);
        self.finish();
        Ok(())
    }

    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError> {
        let end = Instant::now() + timeout;
        let mut world = self.shared.world();
        loop {
            let inbox = world.agent_mut::<Inbox>(self.agent).ok_or(TransportError::Closed)?;
            if let Some(datagram) = inbox.arrived.pop_front() {
                return Ok(Some(Received::Datagram(datagram)));
            }
            let now = Instant::now();
            if std::mem::take(&mut inbox.woken) || now >= end {
                return Ok(None);
            }
            let mut wait = end - now;
            if let Some(due) = world.next_event() {
                wait = wait.min(due - self.shared.now()).max(Duration::from_micros(1));
            }
            let (guard, _) =
                self.shared.arrived.wait_timeout(world, wait).unwrap_or_else(PoisonError::into_inner);
            world = guard;
            world.run_until(self.shared.now());
        }
    }

    fn wake(&self) {
        if let Some(inbox) = self.shared.world().agent_mut::<Inbox>(self.agent) {
            inbox.woken = true;
        }
        self.shared.arrived.notify_all();
    }
}

impl Drop for PortTransport {
    fn drop(&mut self) {
        self.shared.world().detach(self.agent);
        self.shared.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use mad::transport::Address;
    use mad::types::DirectedPath;
    use mad::wire::smp::{NodeInfo, Smp};
    use mad::wire::{Attribute, Method};

    use super::*;
    use crate::generate::{Options, Topology, generate};

    fn fabric() -> MemoryFabric {
        let fabric = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
        MemoryFabric::new(&fabric, Config::instant())
    }

    fn node_info(path: &[u8], tid: u64) -> Datagram {
        let mut smp = Smp::directed(Method::GET, NodeInfo::ID, 0, &DirectedPath::new(path).unwrap());
        smp.header.transaction_id.set(tid);
        Datagram { address: Address::DIRECTED, mad: smp.into_mad() }
    }

    fn answer(port: &PortTransport) -> Option<NodeInfo> {
        match port.receive(Duration::ZERO).unwrap()? {
            Received::Datagram(datagram) => NodeInfo::decode(&Smp::from_mad(datagram.mad).data),
            Received::Returned { .. } => None,
        }
    }

    #[test]
    fn requests_are_answered_in_the_senders_thread_and_counted() {
        let fabric = fabric();
        let port = fabric.attach("H0", 1).unwrap();
        port.send(&node_info(&[1, 3], 7), None).unwrap();
        let info = answer(&port).unwrap();
        assert_eq!((info.node_guid(), info.local_port_num().0), (crate::generate::switch_guid(2), 1));
        assert!(answer(&port).is_none());
        assert_eq!(fabric.stats().sent_smps(Method::GET, NodeInfo::ID), 1);
        assert_eq!(fabric.stats().sets(), 0);
        assert!(fabric.attach("H9", 1).is_none());
        assert!(fabric.attach("H0", 2).is_none());
    }

    #[test]
    fn pulled_cables_and_loss_leave_requests_unanswered() {
        let fabric = fabric();
        let port = fabric.attach("H0", 1).unwrap();
        assert!(fabric.unlink("S1_0", 3));
        port.send(&node_info(&[1, 3], 1), None).unwrap();
        assert!(answer(&port).is_none());
        assert!(fabric.relink("S1_0", 3));
        fabric.set_loss(1.0);
        port.send(&node_info(&[1, 3], 2), None).unwrap();
        assert!(answer(&port).is_none());
        fabric.set_loss(0.0);
        port.send(&node_info(&[1, 3], 3), None).unwrap();
        assert!(answer(&port).is_some());
    }

    #[test]
    fn a_waiting_receiver_is_woken_and_latency_is_waited_for() {
        let tree = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
        let config = Config { response_time: Duration::from_millis(5), ..Config::default() };
        let fabric = MemoryFabric::new(&tree, config);
        let port = Arc::new(fabric.attach("H0", 1).unwrap());
        port.send(&node_info(&[1], 1), None).unwrap();
        assert!(matches!(port.receive(Duration::from_secs(60)).unwrap(), Some(Received::Datagram(_))));
        let waiter = Arc::clone(&port);
        let thread = std::thread::spawn(move || waiter.receive(Duration::from_secs(60)));
        port.wake();
        assert_eq!(thread.join().unwrap().unwrap(), None);
    }
}
