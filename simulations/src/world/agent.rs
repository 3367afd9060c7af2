//! Programs attached to ports: subnet managers, SA clients, the outside world.
//!
//! An agent gets what is addressed to its port: answers to what it asked itself, known by the upper half of the transaction
//! ID, which the world writes as the kernel does; and requests that it accepts, the first agent first.

use std::any::Any;
use std::collections::VecDeque;
use std::time::Duration;

use mad::transport::{Address, Datagram, GlobalRoute};
use mad::types::{Gid, Guid, MulticastLid, PortNum, Timestamp};
use mad::wire::smp::PortInfo;
use mad::wire::{Mad, Method};

use super::queue::Event;
use super::{Drop, End, Packet, Registration, World};
use crate::device::DevicePort;

/// Datagrams that a frozen agent finds when it wakes; what comes beyond is lost, as in a kernel's queue.
const BACKLOG: usize = 4096;

/// When an agent is asked again whose deadline has passed already.
const IDLE_WAKE: Duration = Duration::from_micros(100);

/// A sans-IO machine on a port.
pub trait Agent: Any + Send {
    /// Whether the agent takes a request that nobody asked for by name; answers to its own requests reach it anyway.
    fn accepts(&self, mad: &Mad) -> bool {
        let _ = mad;
        true
    }

    /// Whether the agent stands for all programs of its port, as a kernel's MAD layer does: it gets everything that comes
    /// for the port, and transaction IDs are left as it writes them.
    fn owns_port(&self) -> bool {
        false
    }

    /// Whether the agent is the subnet's master, as far as it knows.
    fn is_master(&self) -> bool {
        false
    }

    /// Whether the agent has done what it had to do for now.
    fn is_settled(&self) -> bool {
        true
    }

    /// Whether the agent, as the subnet's master, knows of a registration.
    fn holds(&self, registration: &Registration) -> bool {
        let _ = registration;
        false
    }

    /// Whether the agent wants to be told what becomes of its port ([`Agent::port_event`]).
    fn listens(&self) -> bool {
        false
    }

    /// What a driver tells the programs on a port; the port as it is now. The first one comes when the agent is attached.
    fn port_event(&mut self, port: &DevicePort, event: PortEvent, now: Timestamp) {
        let _ = (port, event, now);
    }

    /// Reads a new configuration, as a daemon on SIGHUP.
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed then.
    fn configure(&mut self, text: &str, now: Timestamp) -> Result<(), String> {
        let _ = (text, now);
        Err("this agent has no configuration".into())
    }

    /// A datagram came in; its address is that of the sender.
    fn receive(&mut self, datagram: Datagram, now: Timestamp);

    /// What the agent wants done now; asked until it says `None`.
    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput>;

    /// When the agent wants to be polled though nothing came in.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What can become of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// Its state, its LID, its subnet manager or its keys may have changed.
    Changed,
    /// The subnet manager asked for everything to be registered anew (ClientReregister).
    Reregister,
}

/// What an agent wants.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every output is a datagram; a box would cost an allocation each"
)]
pub enum AgentOutput {
    /// Send a datagram.
    Send(Datagram),
    /// Set or clear the port's IsSM bit.
    IsSm(bool),
}

/// Identifies an attached agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(u32);

/// An agent and its place.
pub(super) struct Attachment {
    end: End,
    agent: Option<Box<dyn Agent>>,
    is_sm: bool,
    owns_port: bool,
    listens: bool,
    frozen: bool,
    backlog: VecDeque<Datagram>,
    wake_at: Option<Timestamp>,
}

impl World {
    /// Attaches an agent to an end port (port 0 of a switch) and polls it at once. `None` when there is no such end port.
    pub fn attach(&mut self, end: End, agent: Box<dyn Agent>) -> Option<AgentId> {
        let device = self.devices.get(end.node as usize)?;
        if !device.end_ports().contains(&end.port.0) {
            return None;
        }
        let id = AgentId(self.agents.len() as u32);
        let (owns_port, listens) = (agent.owns_port(), agent.listens());
        let attachment = Attachment {
            end,
            agent: Some(agent),
            is_sm: false,
            owns_port,
            listens,
            frozen: false,
            backlog: VecDeque::new(),
            wake_at: None,
        };
        self.agents.push(attachment);
        self.agents_of.entry(end.node).or_default().push(id);
        if listens {
            self.tell_agent(id, PortEvent::Changed);
        } else {
            self.pump(id);
        }
        Some(id)
    }

    /// Takes an agent away, as when its process dies: IsSM goes, what comes for it is lost.
    pub fn detach(&mut self, id: AgentId) -> Option<Box<dyn Agent>> {
        self.set_is_sm(id, false);
        let slot = self.agents.get_mut(id.0 as usize)?;
        slot.backlog.clear();
        slot.agent.take()
    }

    /// Stops an agent (datagrams wait for it) or lets it go on.
    pub fn freeze(&mut self, id: AgentId, frozen: bool) {
        let Some(slot) = self.agents.get_mut(id.0 as usize) else { return };
        slot.frozen = frozen;
        if frozen {
            return;
        }
        let backlog = std::mem::take(&mut slot.backlog);
        if let Some(agent) = &mut slot.agent {
            backlog.into_iter().for_each(|datagram| agent.receive(datagram, self.now));
        }
        self.pump(id);
    }

    /// The agent as the type that it is; `None` when it is another or gone.
    pub fn agent<T: Agent>(&self, id: AgentId) -> Option<&T> {
        let agent: &dyn Any = self.agents.get(id.0 as usize)?.agent.as_deref()?;
        agent.downcast_ref()
    }

    /// The agent, to be given something to do; [`World::pump`] afterwards.
    pub fn agent_mut<T: Agent>(&mut self, id: AgentId) -> Option<&mut T> {
        let agent: &mut dyn Any = self.agents.get_mut(id.0 as usize)?.agent.as_deref_mut()?;
        agent.downcast_mut()
    }

    /// The agent as any agent; `None` when it is gone.
    pub fn any_agent(&self, id: AgentId) -> Option<&dyn Agent> {
        self.agents.get(id.0 as usize)?.agent.as_deref()
    }

    /// The agent as any agent, to be given something to do; [`World::pump`] afterwards.
    pub fn any_agent_mut(&mut self, id: AgentId) -> Option<&mut dyn Agent> {
        self.agents.get_mut(id.0 as usize)?.agent.as_deref_mut()
    }

    /// Where an agent is attached.
    pub fn agent_end(&self, id: AgentId) -> Option<End> {
        self.agents.get(id.0 as usize).map(|slot| slot.end)
    }

    /// Carries out what an agent wants, and notes when it wants to be asked again.
    pub fn pump(&mut self, id: AgentId) {
        let Some(slot) = self.agents.get_mut(id.0 as usize).filter(|slot| !slot.frozen) else { return };
        let Some(mut agent) = slot.agent.take() else { return };
        while let Some(output) = agent.poll(self.now) {
            match output {
                AgentOutput::Send(datagram) => self.send(id, &datagram),
                AgentOutput::IsSm(is_sm) => self.set_is_sm(id, is_sm),
            }
        }
        let deadline = agent.deadline();
        let slot = &mut self.agents[id.0 as usize];
        slot.agent = Some(agent);
        if let Some(deadline) = deadline {
            // A deadline that has passed although the agent was asked must not stop the clock.
            let when = if deadline > self.now {
                deadline
            } else {
                self.stats.idle_wakes += 1;
                self.now + IDLE_WAKE
            };
            if slot.wake_at.is_none_or(|at| when < at) {
                slot.wake_at = Some(when);
                self.queue.push(when, Event::Wake(id));
            }
        }
    }

    pub(super) fn wake(&mut self, id: AgentId) {
        // An agent whose deadline moved up was given an earlier wake-up; the later one then comes for nothing.
        if self.agents[id.0 as usize].wake_at == Some(self.now) {
            self.agents[id.0 as usize].wake_at = None;
            self.pump(id);
        }
    }

    /// Has the agents of an end port that listen told of something, after what happens at this moment.
    pub(super) fn tell_agents(&mut self, end: End, event: PortEvent) {
        let listens = |id: &AgentId| {
            let slot = &self.agents[id.0 as usize];
            slot.end == end && slot.listens && slot.agent.is_some()
        };
        for id in self.agents_of(end.node).filter(listens).collect::<Vec<_>>() {
            self.queue.push(self.now, Event::Port(id, event));
        }
    }

    /// Tells an agent of its port, and lets it act.
    pub(super) fn tell_agent(&mut self, id: AgentId, event: PortEvent) {
        let slot = &mut self.agents[id.0 as usize];
        let port = &self.devices[slot.end.node as usize].ports[slot.end.port.index()];
        if let Some(agent) = &mut slot.agent {
            agent.port_event(port, event, self.now);
        }
        self.pump(id);
    }

    /// The agents that are or were attached to a device, in the order in which they came.
    fn agents_of(&self, node: u32) -> impl Iterator<Item = AgentId> + use<'_> {
        self.agents_of.get(&node).into_iter().flatten().copied()
    }

    /// Sets or clears the IsSM bit of an agent's port; the bit stays while any agent of the port wants it. A change is told
    /// by trap 144.
    pub fn set_is_sm(&mut self, id: AgentId, is_sm: bool) {
        let Some(slot) = self.agents.get_mut(id.0 as usize) else { return };
        slot.is_sm = is_sm;
        let end = slot.end;
        let wants = |id: AgentId| self.agents[id.0 as usize].end == end && self.agents[id.0 as usize].is_sm;
        let any = self.agents_of(end.node).any(wants);
        let Some(port) = self.devices[end.node as usize].port_mut(end.port) else { return };
        let old = port.info.capability_mask.get();
        let new = if any { old | PortInfo::CAP_IS_SM } else { old & !PortInfo::CAP_IS_SM };
        if new != old {
            port.info.capability_mask.set(new);
            self.raise_capability_trap(end, 0);
        }
    }

    /// Sets the IsSM bits of a device anew from what its agents want.
    pub(super) fn restore_is_sm(&mut self, node: u32) {
        for id in self.agents_of.get(&node).into_iter().flatten() {
            let slot = &self.agents[id.0 as usize];
            if slot.is_sm
                && let Some(port) = self.devices[node as usize].port_mut(slot.end.port)
            {
                port.info.capability_mask.set(port.info.capability_mask.get() | PortInfo::CAP_IS_SM);
            }
        }
    }

    /// Sends a datagram from an agent's port, as [`AgentOutput::Send`] does.
    pub fn send(&mut self, id: AgentId, datagram: &Datagram) {
        let Some(slot) = self.agents.get(id.0 as usize) else { return };
        let end = slot.end;
        let mut mad = datagram.mad;
        if !slot.owns_port && !mad.header.method().is_response() {
            let low = mad.header.transaction_id.get() & 0xffff_ffff;
            mad.header.transaction_id.set(u64::from(id.0 + 1) << 32 | low);
        }
        self.stats.count_sent(&mad.header);
        let packet = self.packet(end, &datagram.address, mad);
        self.emit(end, packet, Duration::ZERO);
    }

    /// A datagram as the port puts it on the wire.
    pub(super) fn packet(&self, end: End, to: &Address, mad: Mad) -> Packet {
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        let own = port.info.base_lid.get();
        let grh = to.grh.map(|grh| {
            let guid = match grh.gid_index {
                0 => port.guid,
                index => port.alias_guids.get(usize::from(index)).copied().unwrap_or(0),
            };
            GlobalRoute { gid: Gid::new(port.info.gid_prefix.get(), Guid(guid)), gid_index: 0, ..grh }
        });
        let directed = to.lid == mad::types::Lid::PERMISSIVE;
        Packet {
            mad,
            slid: if directed { to.lid } else { own | u16::from(to.path_bits) },
            dlid: to.lid,
            sl: to.sl,
            p_key: port.p_key(to.pkey_index),
            source_qpn: to.qpn,
            dest_qpn: to.qpn,
            qkey: to.qkey,
            grh,
        }
    }

    /// The agent at the packet's destination that asked for it: by the upper half of the transaction ID.
    pub(super) fn asked_by(&self, at: End, packet: &Packet) -> Option<AgentId> {
        let header = &packet.mad.header;
        if !header.method().is_response() {
            return None;
        }
        let index = (header.transaction_id.get() >> 32).checked_sub(1)?;
        let slot = self.agents.get(usize::try_from(index).ok()?)?;
        let end = End { node: at.node, port: self.devices[at.node as usize].end_port(at.port) };
        (slot.end == end && slot.agent.is_some()).then_some(AgentId(index as u32))
    }

    /// Hands a packet to the agent that it is for.
    pub(super) fn deliver(&mut self, at: End, packet: Packet, p_key_index: u16) {
        let end = End { node: at.node, port: self.devices[at.node as usize].end_port(at.port) };
        let is_answer =
            packet.mad.header.method().is_response() && packet.mad.header.method() != Method::TRAP_REPRESS;
        let taker = self.asked_by(at, &packet).or_else(|| {
            let accepts = |id: &AgentId| {
                let slot = &self.agents[id.0 as usize];
                let wanted = slot.owns_port || !is_answer;
                wanted
                    && slot.end == end
                    && slot.agent.as_ref().is_some_and(|agent| agent.accepts(&packet.mad))
            };
            self.agents_of(end.node).find(accepts)
        });
        let Some(id) = taker else { return self.stats.drop(Drop::NoAgent) };
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        let multicast = MulticastLid::new(packet.dlid).is_some();
        let path_bits = if multicast { 0 } else { packet.dlid & ((1 << port.info.lmc()) - 1) };
        let datagram = packet.received(p_key_index, path_bits as u8);
        let slot = &mut self.agents[id.0 as usize];
        if slot.frozen {
            if slot.backlog.len() < BACKLOG {
                slot.backlog.push_back(datagram);
            } else {
                self.stats.drop(Drop::Backlog);
            }
            return;
        }
        if let Some(agent) = &mut slot.agent {
            agent.receive(datagram, self.now);
        }
        self.pump(id);
    }
}

impl End {
    /// A port of a device.
    pub const fn new(node: u32, port: u8) -> Self {
        Self { node, port: PortNum(port) }
    }
}
