//! First packets of connections: opening devices, sysfs, ioctls, console commands from programs.

use std::fmt::Write as _;
use std::os::fd::AsFd;

use rsm_preload_protocol::umad::{RegisterAgent, RegisterAgent2};
use rsm_preload_protocol::{DeviceKind, MAX_PACKET, Operation, Reply, Request};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use zerocopy::{FromBytes, IntoBytes};

use super::super::backend::Endpoint;
use super::super::sysfs::{self, Device, Tree};
use super::super::umad::{FileId, Registration, Services};
use super::Server;
use super::connection::Role;
use super::issm::Attempt;
use super::rings::Shared;

/// The trees' directory in the emulator's.
pub(super) const TREES: &str = "nodes";

impl Server {
    /// Answers the first packet of a connection. All but opened descriptors end with their answer.
    pub(super) fn request(&mut self, number: u64, request: &Request<'_>) {
        let reply = match *request {
            Request::Open { kind, number: device, nonblocking, node } => {
                return self.open(number, kind, device, nonblocking, node);
            }
            Request::Refresh { node } => match self.tree(node) {
                Ok(index) => Reply::ok(self.trees[index].root().as_os_str().as_encoded_bytes()),
                Err(errno) => Reply::error(errno.raw_os_error()),
            },
            Request::Operation { operation: Operation::Rings, session, .. } => {
                return self.give_rings(number, session);
            }
            Request::Operation { operation, session, payload } => self
                .operation(operation, session, payload)
                .inspect_err(|(errno, _)| tracing::debug!("{operation:?} by {session} is refused: {errno}"))
                .map_or_else(|(errno, payload)| Reply { errno: errno.raw_os_error(), payload }, Reply::ok),
            Request::Console { line } => {
                self.ports_changed = true;
                let (errno, mut text) = match self.console(line) {
                    Ok(text) => (0, text.into_bytes()),
                    Err(text) => (Errno::INVAL.raw_os_error(), text.into_bytes()),
                };
                text.truncate(MAX_PACKET - 4);
                Reply { errno, payload: text }
            }
        };
        self.reply(number, &reply);
        self.disconnect(number);
    }

    /// The tree of these nodes, up to date, by its index.
    fn tree(&mut self, node: &str) -> Result<usize, Errno> {
        let nodes = sysfs::resolve(node, &*self.backend).map_err(|name| {
            tracing::warn!("a program asks for `{name}`: there is no such node");
            Errno::NODEV
        })?;
        let index = self.trees.iter().position(|tree| tree.nodes() == nodes).unwrap_or_else(|| {
            let root = self.directory.join(TREES).join(self.trees.len().to_string());
            self.trees.push(Tree::new(root, nodes, self.presentation, &*self.backend));
            self.trees.len() - 1
        });
        // What has been asked for before has happened now.
        let now = self.now();
        self.run_fabric(now);
        self.trees[index].refresh(&*self.backend).map_err(|error| {
            tracing::warn!("writing the sysfs tree: {error}");
            Errno::from_io_error(&error).unwrap_or(Errno::IO)
        })?;
        Ok(index)
    }

    fn open(&mut self, number: u64, kind: DeviceKind, device: u32, nonblocking: bool, node: &str) {
        let device = self.tree(node).and_then(|index| self.trees[index].device(device).ok_or(Errno::NXIO));
        let opened = device.and_then(|Device { endpoint, services, .. }| match kind {
            DeviceKind::Umad => self.open_umad(number, endpoint, services).map(|()| Some(endpoint)),
            DeviceKind::Issm if services == Services::General => Err(Errno::NXIO),
            DeviceKind::Issm => {
                self.open_is_sm(number, endpoint, !nonblocking).map(|holds| holds.then_some(endpoint))
            }
        });
        match opened {
            Ok(Some(endpoint)) => self.reply(number, &Reply::ok([endpoint.port.0])),
            Ok(None) => {}
            Err(errno) => {
                self.reply(number, &Reply::error(errno.raw_os_error()));
                self.disconnect(number);
            }
        }
    }

    fn open_umad(&mut self, number: u64, endpoint: Endpoint, services: Services) -> Result<(), Errno> {
        if self.is_of_kernel(endpoint.node) {
            // The kernel's own programs sit there.
            return Err(Errno::BUSY);
        }
        let connection = self.connections.get_mut(&number).ok_or(Errno::BADF)?;
        if connection.name.is_empty() || self.sessions.contains_key(&connection.name) {
            return Err(Errno::INVAL);
        }
        let id = self.files.open_for(endpoint, services);
        self.backend.attach(endpoint);
        connection.role = Role::Umad(id);
        self.by_file.insert(id, number);
        self.sessions.insert(connection.name.clone(), number);
        Ok(())
    }

    /// False when it waits for the holder to close.
    fn open_is_sm(&mut self, number: u64, endpoint: Endpoint, wait: bool) -> Result<bool, Errno> {
        let connection = self.connections.get_mut(&number).ok_or(Errno::BADF)?;
        let attempt = self.is_sm.take(endpoint, number, wait);
        if attempt == Attempt::Busy {
            return Err(Errno::AGAIN);
        }
        let holds = attempt == Attempt::Holds;
        connection.role = Role::IsSm { endpoint, holds };
        if holds {
            let now = self.now();
            self.backend.set_is_sm(endpoint, true, now);
        }
        Ok(holds)
    }

    /// An issm connection is gone: IsSM goes with its holder, or passes on to who waits.
    pub(super) fn release_is_sm(&mut self, endpoint: Endpoint, number: u64) {
        let (held, next) = self.is_sm.release(endpoint, number);
        if !held {
            return;
        }
        let now = self.now();
        self.backend.set_is_sm(endpoint, false, now);
        if let Some(next) = next {
            if let Some(connection) = self.connections.get_mut(&next) {
                connection.role = Role::IsSm { endpoint, holds: true };
            }
            self.backend.set_is_sm(endpoint, true, now);
            self.reply(next, &Reply::ok([endpoint.port.0]));
        }
    }

    /// The rings of an opened descriptor, made when they are first asked for.
    fn give_rings(&mut self, asking: u64, session: &str) {
        let made = self.sessions.get(session).copied().ok_or(Errno::BADF).and_then(|number| {
            let connection = self.connections.get_mut(&number).ok_or(Errno::BADF)?;
            if connection.shared.is_none() {
                connection.shared = Some(Shared::new()?);
                self.ringed.push(number);
            }
            Ok(number)
        });
        match made {
            Ok(number) => {
                let file = self.connections.get(&number).and_then(|connection| connection.shared.as_ref());
                self.reply_with_file(asking, &Reply::ok([]), file.map(|shared| shared.file.as_fd()));
            }
            Err(errno) => self.reply(asking, &Reply::error(errno.raw_os_error())),
        }
        self.disconnect(asking);
    }

    /// An ioctl or a write with an answer, on somebody's opened descriptor.
    fn operation(
        &mut self,
        operation: Operation,
        session: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, (Errno, Vec<u8>)> {
        let plain = |errno| (errno, Vec::new());
        let number = *self.sessions.get(session).ok_or_else(|| plain(Errno::BADF))?;
        // What was written before comes first.
        self.drain_ring(number);
        self.read_packets(number, usize::MAX);
        let Some(Role::Umad(id)) = self.connections.get(&number).map(|connection| connection.role) else {
            return Err(plain(Errno::BADF));
        };
        match operation {
            Operation::EnablePkey => self.files.enable_pkey(id).map(|()| Vec::new()).map_err(plain),
            Operation::RegisterAgent => self.register(id, payload).map_err(plain),
            Operation::RegisterAgent2 => self.register2(id, payload),
            Operation::UnregisterAgent => {
                let number = payload.try_into().map(u32::from_ne_bytes).map_err(|_| plain(Errno::INVAL))?;
                self.files.unregister(id, number).map(|()| Vec::new()).map_err(plain)
            }
            Operation::Write => {
                let now = self.now();
                self.files.write(id, payload, now).map(|()| Vec::new()).map_err(plain)
            }
            Operation::State => Ok(vec![u8::from(self.files.has_pkey_index(id))]),
            // Answered by `give_rings`: a file goes along.
            Operation::Rings => Err(plain(Errno::INVAL)),
        }
    }

    fn register(&mut self, id: FileId, payload: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut request = RegisterAgent::read_from_bytes(payload).map_err(|_| Errno::INVAL)?;
        let number = self.files.register(id, Registration::from_v1(&request), false)?;
        request.id.set(number);
        Ok(request.as_bytes().to_vec())
    }

    /// The refused structure comes back too: its flags say what would be possible.
    fn register2(&mut self, id: FileId, payload: &[u8]) -> Result<Vec<u8>, (Errno, Vec<u8>)> {
        let mut request = RegisterAgent2::read_from_bytes(payload).map_err(|_| (Errno::INVAL, Vec::new()))?;
        let registered =
            Registration::from_v2(&mut request).and_then(|asked| self.files.register(id, asked, true));
        match registered {
            Ok(number) => {
                request.id.set(number);
                Ok(request.as_bytes().to_vec())
            }
            Err(errno) => Err((errno, request.as_bytes().to_vec())),
        }
    }

    /// The console's list of clients.
    pub(super) fn attached(&self) -> String {
        let mut numbers: Vec<_> = self.connections.keys().copied().collect();
        numbers.sort_unstable();
        let mut text = String::new();
        for number in numbers {
            let connection = &self.connections[&number];
            let (what, endpoint) = match connection.role {
                Role::New => continue,
                Role::Umad(id) => ("umad", self.files.endpoint(id)),
                Role::IsSm { endpoint, holds: true } => ("issm", Some(endpoint)),
                Role::IsSm { endpoint, holds: false } => ("issm (waits)", Some(endpoint)),
            };
            let Some(endpoint) = endpoint else { continue };
            let process = socket_peercred(&connection.socket).map_or(0, |c| c.pid.as_raw_nonzero().get());
            let node = self.backend.device(endpoint.node).description;
            let _ =
                write!(text, "client {number}: process {process}, {what} on \"{node}\"[{}]", endpoint.port);
            if let Role::Umad(id) = connection.role {
                let (agents, queued, lost) = self.files.statistics(id);
                let _ = write!(text, ", {agents} agents, {queued} queued, {lost} lost");
            }
            text.push('\n');
        }
        text
    }
}
