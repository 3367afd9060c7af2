//! The adapters of the kernel that [`super::Server`] serves beside its clients.

use std::io;

use crossbeam_channel::Sender;
use mad::transport::Datagram;
use rustix::event::epoll;

use super::super::backend::{Endpoint, NodeId};
use super::super::kernel::{Adapter, Event, KernelError, Parcel};
use super::super::sysfs;
use super::{BATCH, Server};

/// Adapters are numbered from here on among the descriptors that are waited for; connections stay below.
pub(super) const FIRST: u64 = 1 << 62;

/// Somebody waits for adapters to be there.
pub(super) struct Attaching {
    answer: Sender<Result<Vec<String>, KernelError>>,
    /// Names by adapter, as far as the kernel has given them.
    names: Vec<Option<String>>,
    /// The first of them among all adapters.
    first: usize,
}

impl Server {
    /// Makes adapters of the kernel of these nodes (descriptions or GUIDs with commas between); their names go to `answer`.
    pub(super) fn attach_kernel(&mut self, nodes: &str, answer: Sender<Result<Vec<String>, KernelError>>) {
        let first = self.adapters.len();
        match self.open_adapters(nodes) {
            Ok(()) => {
                let names = vec![None; self.adapters.len() - first];
                self.attaching.push(Attaching { answer, names, first });
            }
            Err(error) => {
                self.adapters.truncate(first);
                // Who asked may have given up.
                let _ = answer.send(Err(error));
            }
        }
    }

    fn open_adapters(&mut self, nodes: &str) -> Result<(), KernelError> {
        for node in sysfs::resolve(nodes, &*self.backend).map_err(KernelError::NoNode)? {
            if self.adapter_of(node).is_some() {
                return Err(KernelError::Taken(self.backend.device(node).description));
            }
            let adapter = Adapter::open(node, &*self.backend)?;
            for port in self.backend.device(node).ports {
                self.backend.attach(Endpoint { node, port });
            }
            let data = epoll::EventData::new_u64(FIRST + self.adapters.len() as u64);
            epoll::add(&self.epoll, adapter.descriptor(), data, epoll::EventFlags::IN)
                .map_err(|errno| KernelError::Device(errno.into()))?;
            self.adapters.push(adapter);
        }
        Ok(())
    }

    fn adapter_of(&self, node: NodeId) -> Option<usize> {
        self.adapters.iter().position(|adapter| adapter.node() == node)
    }

    /// Whether a node is an adapter of the kernel.
    pub(super) fn is_of_kernel(&self, node: NodeId) -> bool {
        self.adapter_of(node).is_some()
    }

    /// The kernel has something to say.
    pub(super) fn serve_kernel(&mut self, index: usize) {
        for _ in 0..BATCH {
            let Some(adapter) = self.adapters.get_mut(index) else { return };
            match adapter.read(&*self.backend) {
                Ok(Some(event)) => self.kernel_event(index, event),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("reading what the kernel sends: {error}");
                    return;
                }
            }
        }
    }

    fn kernel_event(&mut self, index: usize, event: Event) {
        let now = self.now();
        self.ports_changed |= !matches!(event, Event::Data(_));
        match event {
            Event::Created(result) => self.created(index, result),
            Event::Mad(endpoint, datagram) => self.backend.inject(endpoint, &datagram, now),
            Event::Data(parcel) => self.carry(&parcel),
            Event::Capabilities(endpoint, set, clear) => {
                self.backend.set_capabilities(endpoint, set, clear, now);
            }
            Event::Description(text) => {
                let node = self.adapters[index].node();
                self.backend.describe(node, &text, now);
            }
            Event::Local(endpoint, number, mad) => {
                let answer = self.backend.ask_agents(endpoint, &mad, now);
                report(self.adapters[index].answer(endpoint.port, number, answer.as_ref()));
            }
            Event::Refused(endpoint, packet, key) => self.backend.refused(endpoint, &packet, key, now),
        }
    }

    fn created(&mut self, index: usize, result: Result<String, KernelError>) {
        let among = |one: &Attaching| index >= one.first && index - one.first < one.names.len();
        let Some(which) = self.attaching.iter().position(among) else { return };
        match result {
            Ok(name) => {
                let one = &mut self.attaching[which];
                one.names[index - one.first] = Some(name);
                if one.names.iter().all(Option::is_some) {
                    let one = self.attaching.swap_remove(which);
                    let _ = one.answer.send(Ok(one.names.into_iter().flatten().collect()));
                }
            }
            Err(error) => {
                let _ = self.attaching.swap_remove(which).answer.send(Err(error));
            }
        }
    }

    /// Lets a data packet go its way through the fabric, to adapters of the kernel; elsewhere nobody takes it.
    fn carry(&mut self, parcel: &Parcel) {
        let now = self.now();
        for endpoint in self.backend.carry(parcel.from, &parcel.header, now) {
            if let Some(index) = self.adapter_of(endpoint.node) {
                report(self.adapters[index].receive(endpoint.port, parcel));
            }
        }
    }

    /// A MAD that has come to a port; false where no adapter of the kernel is.
    pub(super) fn arrive_at_kernel(&mut self, endpoint: Endpoint, datagram: &Datagram) -> bool {
        let Some(index) = self.adapter_of(endpoint.node) else { return false };
        // What a port has become goes before what comes to it.
        self.ports_changed = true;
        report(self.adapters[index].refresh(&*self.backend));
        report(self.adapters[index].arrive(endpoint.port, datagram, &*self.backend));
        true
    }

    /// Tells the kernel what has become of its ports.
    pub(super) fn refresh_kernel(&mut self) {
        if !std::mem::take(&mut self.ports_changed) {
            return;
        }
        for adapter in &mut self.adapters {
            report(adapter.refresh(&*self.backend));
        }
    }
}

/// A message that the kernel does not take is lost, like a packet on a bad wire.
fn report(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::warn!("telling the kernel: {error}");
    }
}
