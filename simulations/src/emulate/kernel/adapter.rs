//! One open adapter: reads what the kernel sends, writes what the fabric brings.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use mad::transport::Datagram;
use mad::types::{PKey, PortNum};
use mad::wire::Mad;
use rustix::fs::OFlags;
use zerocopy::{FromBytes, IntoBytes};

use super::super::backend::{Backend, DataHeader, Endpoint, Key, NodeId, PortFacts};
use super::message::{Capabilities, Created, Header, Kind, MESSAGE_MAX, PORTS_MAX, PortState};
use super::translate::{self, Parcel};
use super::{DEVICE, KernelError};
use crate::world::Packet;

/// What the kernel's side of an adapter does.
#[derive(Debug)]
pub(in super::super) enum Event {
    /// The adapter is there, under this name, or the kernel could not make it.
    Created(Result<String, KernelError>),
    /// A MAD leaves by a port.
    Mad(Endpoint, Box<Datagram>),
    /// A data packet leaves.
    Data(Parcel),
    /// Capability bits of a port: set, cleared.
    Capabilities(Endpoint, u32, u32),
    /// The node's description is another.
    Description(String),
    /// A MAD for the node's own agents; the number goes back with the answer.
    Local(Endpoint, u32, Box<Mad>),
    /// A queue pair refused a packet.
    Refused(Endpoint, Box<Packet>, Key),
}

/// An open adapter.
#[derive(Debug)]
pub(in super::super) struct Adapter {
    file: File,
    node: NodeId,
    name: String,
    /// What the kernel was told last, by port.
    told: Vec<(PortState, u32)>,
    buffer: Vec<u8>,
}

impl Adapter {
    /// Opens the module and asks it for an adapter that is this node. It is there when [`Event::Created`] says so.
    pub(in super::super) fn open(node: NodeId, backend: &dyn Backend) -> Result<Self, KernelError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open(DEVICE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => KernelError::NoModule,
            _ => KernelError::Device(error),
        })?;
        Self::on(file, node, backend)
    }

    pub(super) fn on(file: File, node: NodeId, backend: &dyn Backend) -> Result<Self, KernelError> {
        let facts = backend.device(node);
        let ports: Vec<PortFacts> =
            facts.ports.iter().map(|port| backend.port(Endpoint { node, port: *port })).collect();
        let create = translate::create(&facts, &ports).filter(|_| facts.ports[0] != PortNum::MANAGEMENT);
        let create = create.ok_or_else(|| KernelError::Unfit {
            node: facts.description.clone(),
            kind: if facts.ports.first() == Some(&PortNum::MANAGEMENT) { "switch" } else { "node" },
            ports: ports.len(),
        })?;
        let mut adapter =
            Self { file, node, name: facts.description, told: Vec::new(), buffer: vec![0; MESSAGE_MAX] };
        let header = Header::new(Kind::Create, 0);
        adapter.write(header, create.as_bytes()).map_err(KernelError::Device)?;
        Ok(adapter)
    }

    /// The node that it is.
    pub(in super::super) const fn node(&self) -> NodeId {
        self.node
    }

    /// For poll.
    pub(in super::super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn write(&mut self, mut header: Header, payload: &[u8]) -> io::Result<()> {
        header.len = payload.len() as u32;
        let message = [header.as_bytes(), payload].concat();
        self.file.write(&message).map(|_| ())
    }

    /// The next thing that the kernel did; `None` when there is nothing at the moment.
    pub(in super::super) fn read(&mut self, backend: &dyn Backend) -> io::Result<Option<Event>> {
        loop {
            let len = match self.file.read(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if len == 0 {
                return Ok(None);
            }
            // The module speaks no other language; another version of it might.
            if let Some(event) = self.event(len, backend) {
                return Ok(Some(event));
            }
            tracing::warn!("{}: the kernel module sends what is no message of ours", self.name);
        }
    }

    fn event(&self, len: usize, backend: &dyn Backend) -> Option<Event> {
        let (header, payload) = Header::read_from_prefix(&self.buffer[..len]).ok()?;
        let endpoint = Endpoint { node: self.node, port: PortNum(header.port) };
        let kind = Kind::from_kernel(header.kind)?;
        let about_port = !matches!(kind, Kind::Created | Kind::Description);
        if header.len as usize != payload.len()
            || about_port && !(1..=PORTS_MAX).contains(&usize::from(header.port))
        {
            return None;
        }
        Some(match kind {
            Kind::Created => Event::Created(self.created(&Created::read_from_bytes(payload).ok()?)),
            Kind::Packet if translate::is_mad(&header) => {
                let datagram = translate::datagram(&header, payload, &backend.port(endpoint))?;
                Event::Mad(endpoint, Box::new(datagram))
            }
            Kind::Packet => Event::Data(Parcel {
                from: endpoint,
                header: DataHeader { dlid: header.dlid, p_key: PKey(header.p_key), bytes: payload.len() },
                message: self.buffer[..len].to_vec(),
            }),
            Kind::Capabilities => {
                let bits = Capabilities::read_from_bytes(payload).ok()?;
                Event::Capabilities(endpoint, bits.set, bits.clear)
            }
            Kind::Description => {
                let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
                Event::Description(String::from_utf8_lossy(&payload[..end]).trim_end().to_owned())
            }
            Kind::Local => {
                Event::Local(endpoint, header.source_qpn, Box::new(Mad::read_from_bytes(payload).ok()?))
            }
            Kind::BadPKey => Event::Refused(endpoint, Box::new(translate::refused(&header)), Key::P),
            Kind::BadQKey => Event::Refused(endpoint, Box::new(translate::refused(&header)), Key::Q),
            Kind::Create | Kind::Port => return None,
        })
    }

    fn created(&self, created: &Created) -> Result<String, KernelError> {
        if created.error != 0 {
            let source = io::Error::from_raw_os_error(created.error.saturating_neg());
            return Err(KernelError::Refused { node: self.name.clone(), source });
        }
        let end = created.name.iter().position(|byte| *byte == 0).unwrap_or(created.name.len());
        Ok(String::from_utf8_lossy(&created.name[..end]).into_owned())
    }

    /// Tells the kernel what has changed of its ports.
    pub(in super::super) fn refresh(&mut self, backend: &dyn Backend) -> io::Result<()> {
        for (index, port) in backend.device(self.node).ports.into_iter().enumerate() {
            let facts = backend.port(Endpoint { node: self.node, port });
            let mut state = translate::port_state(&facts);
            if self.told.get(index) == Some(&(state, facts.client_reregisters)) {
                continue;
            }
            let before = self.told.get(index).map_or(0, |(_, reregisters)| *reregisters);
            match self.told.get_mut(index) {
                Some(told) => *told = (state, facts.client_reregisters),
                None => self.told.push((state, facts.client_reregisters)),
            }
            state.reregister = u8::from(facts.client_reregisters != before);
            self.write(Header::new(Kind::Port, port.0), state.as_bytes())?;
        }
        Ok(())
    }

    /// A MAD has come to a port.
    pub(in super::super) fn arrive(
        &mut self,
        port: PortNum,
        datagram: &Datagram,
        backend: &dyn Backend,
    ) -> io::Result<()> {
        let facts = backend.port(Endpoint { node: self.node, port });
        self.file.write(&translate::packet(port.0, datagram, &facts)).map(|_| ())
    }

    /// A data packet has come to a port.
    pub(in super::super) fn receive(&mut self, port: PortNum, parcel: &Parcel) -> io::Result<()> {
        let mut message = parcel.message.clone();
        let header = std::mem::offset_of!(Header, port);
        message[header] = port.0;
        self.file.write(&message).map(|_| ())
    }

    /// What the node's own agents say to [`Event::Local`]; `None` when it is none of their business.
    pub(in super::super) fn answer(
        &mut self,
        port: PortNum,
        number: u32,
        answer: Option<&Mad>,
    ) -> io::Result<()> {
        let header = Header { source_qpn: number, ..Header::new(Kind::Local, port.0) };
        self.write(header, answer.map_or(&[], |mad| mad.as_bytes()))
    }
}
