//! One client's connection: reading its packets, sending it what its descriptor has received, and its end.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rsm_preload_protocol::socket::{memory_file, read_memory_file, receive, send};
use rsm_preload_protocol::umad::{HEADER_LEN, MAD_LEN};
use rsm_preload_protocol::{Frame, FrameKind, MAX_PACKET, Reply, Request};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::super::backend::Endpoint;
use super::super::umad::FileId;
use super::rings::{Shared, put};
use super::{BATCH, DESCRIPTOR_PAUSE, Server, fd};

/// The longest message that a client may write. Over RMPP's 32-bit lengths there is more, but not in memory.
const MAX_MESSAGE: u32 = 256 << 20;

/// A client's call to look at its rings.
const BELL: [u8; Frame::LEN] = Frame { kind: FrameKind::Bell, length: 0 }.encode();

/// What a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Has said nothing yet.
    New,
    /// An opened umad descriptor.
    Umad(FileId),
    /// An opened issm descriptor, or one whose opening waits.
    IsSm { endpoint: Endpoint, holds: bool },
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// The abstract name of the client's end, empty where it has none.
    pub(super) name: String,
    pub(super) role: Role,
    /// Where packets lie, when the client has asked for that.
    pub(super) shared: Option<Shared>,
    /// Socket or ring take nothing more at the moment.
    blocked: bool,
}

/// Why a client gets nothing more at the moment. None of these but the last is its fault: who is slow waits, and its queue
/// fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// Its ring is full, or enough lies beside it: it rings when it has taken something.
    Ring,
    /// Its socket is full: the kernel says when it is not.
    Socket,
    /// No descriptor or memory is left for what goes along: time may help.
    Descriptors,
    /// The client is gone.
    Gone(Errno),
}

impl From<Errno> for Hindrance {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::Socket,
            // The file that goes along needs a descriptor, and there is a limit of files under way.
            Errno::TOOMANYREFS | Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => {
                Self::Descriptors
            }
            errno => Self::Gone(errno),
        }
    }
}

/// Why a connection ends.
enum End {
    /// The client has closed it.
    Closed,
    /// The client does not speak our language.
    Rubbish,
}

impl Server {
    pub(super) fn add_connection(&mut self, socket: OwnedFd, name: String) {
        let number = self.next_connection;
        self.next_connection += 1;
        let data = epoll::EventData::new_u64(number);
        if let Err(errno) = epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN) {
            tracing::warn!("watching a client: {errno}");
            return;
        }
        self.connections
            .insert(number, Connection { socket, name, role: Role::New, shared: None, blocked: false });
    }

    /// A connection has something to say, or takes something again, or is gone.
    pub(super) fn serve(&mut self, number: u64, flags: epoll::EventFlags) {
        if flags.contains(epoll::EventFlags::OUT) {
            self.unblock(number);
        }
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            self.read_packets(number, BATCH);
        }
    }

    /// Takes up to `limit` packets from a connection.
    pub(super) fn read_packets(&mut self, number: u64, limit: usize) {
        for _ in 0..limit {
            match self.read_packet(number) {
                Ok(true) => {}
                Ok(false) => return,
                Err(end) => {
                    self.drain_ring(number);
                    if matches!(end, End::Rubbish) {
                        tracing::warn!("client {number} sends what is no message of ours: cut off");
                    }
                    self.disconnect(number);
                    return;
                }
            }
        }
    }

    /// Takes one packet; false when there is none at the moment.
    fn read_packet(&mut self, number: u64) -> Result<bool, End> {
        let Some(connection) = self.connections.get(&number) else { return Ok(false) };
        let role = connection.role;
        // Who asks something about a descriptor makes us read what that has written, while its own packet is in hand: a buffer
        // for each. Without bytes to read to, a packet would look like the end of its connection.
        let mut buffer = self.buffers.pop().unwrap_or_else(|| vec![0; MAX_PACKET]);
        let received = receive(fd(connection), &mut [IoSliceMut::new(&mut buffer)], RecvFlags::DONTWAIT);
        let result = match received {
            Ok((0, _)) => Err(End::Closed),
            Ok((length, file)) => {
                // What the client wrote before by its ring comes first.
                self.drain_ring(number);
                self.packet(number, role, &buffer[..length], file).map(|()| true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(_) => Err(End::Closed),
        };
        self.buffers.push(buffer);
        result
    }

    fn packet(&mut self, number: u64, role: Role, packet: &[u8], file: Option<OwnedFd>) -> Result<(), End> {
        match role {
            Role::New => {
                let request = Request::decode(packet).ok_or(End::Rubbish)?;
                self.request(number, &request);
                Ok(())
            }
            Role::Umad(_) if packet == BELL => {
                self.answer_bell(number);
                Ok(())
            }
            Role::Umad(id) => self.frame(id, packet, file),
            Role::IsSm { .. } => Err(End::Rubbish),
        }
    }

    /// A write on a umad descriptor. What is wrong with its content was told to the program by its own library as far as
    /// that could know it; the rest is dropped, as a network drops it.
    fn frame(&mut self, id: FileId, packet: &[u8], file: Option<OwnedFd>) -> Result<(), End> {
        let (prefix, bytes) = packet.split_first_chunk().ok_or(End::Rubbish)?;
        let frame = Frame::decode(prefix).ok_or(End::Rubbish)?;
        let now = self.now();
        let written = match (frame.kind, file) {
            (FrameKind::Whole, _) if frame.length as usize == bytes.len() => self.files.write(id, bytes, now),
            (FrameKind::InFile, Some(file)) if frame.length <= MAX_MESSAGE => {
                let mut message = vec![0; frame.length as usize];
                read_memory_file(file.as_fd(), &mut message).map_err(|_| End::Rubbish)?;
                self.files.write(id, &message, now)
            }
            // We have no descriptor left for it: lost.
            (FrameKind::InFile, None) => Err(Errno::MFILE),
            _ => return Err(End::Rubbish),
        };
        if let Err(errno) = written {
            tracing::debug!("a write is refused: {errno}");
        }
        Ok(())
    }

    /// Sends what descriptors have received.
    pub(super) fn flush_ready(&mut self) {
        for id in self.files.take_ready() {
            if let Some(number) = self.by_file.get(&id).copied() {
                self.flush(number, id);
            }
        }
    }

    pub(super) fn unblock(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let was_blocked = std::mem::take(&mut connection.blocked);
        let role = connection.role;
        if was_blocked {
            self.watch(number, epoll::EventFlags::IN);
        }
        if let Role::Umad(id) = role {
            self.flush(number, id);
        }
    }

    fn watch(&self, number: u64, flags: epoll::EventFlags) {
        let Some(connection) = self.connections.get(&number) else { return };
        let data = epoll::EventData::new_u64(number);
        if let Err(errno) = epoll::modify(&self.epoll, &connection.socket, data, flags) {
            tracing::warn!("watching client {number}: {errno}");
        }
    }

    /// Sends a descriptor's packets until its queue is empty or something hinders.
    fn flush(&mut self, number: u64, id: FileId) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.blocked {
            return;
        }
        let hindrance = loop {
            // Before a packet, and after the last one.
            let socket = connection.socket.as_fd();
            let paid = connection.shared.as_mut().map_or(Ok(()), |shared| shared.pay(socket));
            let Some(packet) = paid.map(|()| self.files.front(id)).transpose() else { return };
            match packet.and_then(|packet| put(connection, packet)) {
                Ok(()) => drop(self.files.pop(id)),
                Err(hindrance) => break hindrance,
            }
        };
        connection.blocked = true;
        match hindrance {
            Hindrance::Ring => {}
            Hindrance::Socket => self.watch(number, epoll::EventFlags::IN | epoll::EventFlags::OUT),
            Hindrance::Descriptors => {
                let again = self.now() + DESCRIPTOR_PAUSE;
                self.waiting.push(number);
                self.flush_again.get_or_insert(again);
            }
            Hindrance::Gone(errno) => {
                tracing::debug!("sending to client {number}: {errno}");
                self.disconnect(number);
            }
        }
    }

    /// Tries again to send to those for whom no descriptor was left.
    pub(super) fn flush_waiting(&mut self) {
        if self.flush_again.is_some_and(|at| at <= self.now()) {
            self.flush_again = None;
            for number in std::mem::take(&mut self.waiting) {
                self.unblock(number);
            }
        }
    }

    /// Answers a request. The answer always fits: it is the first packet that goes this way.
    pub(super) fn reply(&self, number: u64, reply: &Reply) {
        self.reply_with_file(number, reply, None);
    }

    /// Answers a request, and a file goes along.
    pub(super) fn reply_with_file(&self, number: u64, reply: &Reply, file: Option<BorrowedFd<'_>>) {
        let Some(connection) = self.connections.get(&number) else { return };
        let packet = reply.encode();
        if let Err(errno) = send(fd(connection), &[IoSlice::new(&packet)], file, SendFlags::DONTWAIT) {
            tracing::debug!("answering client {number}: {errno}");
        }
    }

    /// Ends a connection and everything that hangs on it.
    pub(super) fn disconnect(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let _ = epoll::delete(&self.epoll, &connection.socket);
        self.sessions.remove(&connection.name);
        match connection.role {
            Role::New => {}
            Role::Umad(id) => {
                self.by_file.remove(&id);
                self.files.close(id);
            }
            Role::IsSm { endpoint, .. } => self.release_is_sm(endpoint, number),
        }
    }
}

/// One packet; what is long, or longer than the socket takes at once, goes in a file beside its beginning.
pub(super) fn send_packet(socket: BorrowedFd<'_>, packet: &[u8]) -> Result<(), Hindrance> {
    if packet.len() <= MAX_PACKET {
        match send(socket, &[IoSlice::new(packet)], None, SendFlags::DONTWAIT) {
            Err(Errno::MSGSIZE) => {}
            sent => return Ok(sent?),
        }
    }
    let message = &packet[Frame::LEN..];
    let prefix = Frame { kind: FrameKind::InFile, length: message.len() as u32 }.encode();
    let file = memory_file(&[message])?;
    let parts = [IoSlice::new(&prefix), IoSlice::new(&message[..message.len().min(HEADER_LEN + MAD_LEN)])];
    Ok(send(socket, &parts, Some(file.as_fd()), SendFlags::DONTWAIT)?)
}
