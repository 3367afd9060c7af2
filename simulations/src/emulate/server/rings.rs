//! Clients whose packets lie in shared memory ([`rsm_preload_protocol::ring`]): no system call while both sides are awake.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rsm_preload_protocol::ring::{Ring, Rings, SLOT_BYTES, SLOTS};
use rsm_preload_protocol::socket::send;
use rsm_preload_protocol::{Frame, FrameKind};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::connection::{Connection, Role};
use super::{BATCH, Server, fd};

/// Packets that may lie in a client's socket besides its token. They are far from filling it, so the token always fits.
const MAX_IN_SOCKET: u32 = 16;

/// A client's rings.
#[derive(Debug)]
pub(super) struct Shared {
    rings: Rings,
    /// For the client, and for a program that inherits the descriptor through exec.
    pub(super) file: OwnedFd,
    /// Packets sent by the socket since the ring was last seen empty.
    in_socket: u32,
}

impl Shared {
    pub(super) fn new() -> Result<Self, Errno> {
        let (rings, file) = Rings::create()?;
        Ok(Self { rings, file, in_socket: 0 })
    }

    fn written(&self) -> Ring<'_> {
        self.rings.to_emulator()
    }
}

impl Server {
    /// Takes what lies in the rings of all clients, [`BATCH`] packets of each; whether there was anything.
    pub(super) fn serve_rings(&mut self) -> bool {
        let mut any = false;
        for index in (0..self.ringed.len()).rev() {
            let number = self.ringed[index];
            if !self.connections.contains_key(&number) {
                self.ringed.swap_remove(index);
            } else if self.read_ring(number, BATCH) {
                any = true;
            }
        }
        any
    }

    /// Takes what lies in a client's ring.
    pub(super) fn drain_ring(&mut self, number: u64) {
        self.read_ring(number, SLOTS as usize);
    }

    /// Takes up to `limit` packets from a client's ring; whether there was one.
    pub(super) fn read_ring(&mut self, number: u64, limit: usize) -> bool {
        let Some(Connection { role: Role::Umad(id), shared: Some(shared), .. }) =
            self.connections.get(&number)
        else {
            return false;
        };
        let (id, ring) = (*id, shared.written());
        if ring.is_broken() {
            tracing::warn!("client {number} spoils the memory that it shares with us: cut off");
            self.disconnect(number);
            return false;
        }
        let mut taken = 0;
        let now = self.now();
        while taken < limit
            && let Some(front) = ring.front()
        {
            let mut bytes = [0; SLOT_BYTES];
            let bytes = &mut bytes[..front.length.min(SLOT_BYTES)];
            ring.copy_front(bytes);
            ring.pop();
            taken += 1;
            if let Err(errno) = self.files.write(id, bytes, now) {
                tracing::debug!("a write is refused: {errno}");
            }
        }
        taken > 0
    }

    /// Before the thread sleeps: asks all clients to wake it. False, and nothing asked, when something lies there already.
    pub(super) fn prepare_to_sleep(&self) -> bool {
        let rings = || self.connections.values().filter_map(|connection| connection.shared.as_ref());
        rings().for_each(|shared| {
            shared.written().set_flag(true);
        });
        let nothing = rings().all(|shared| shared.written().is_empty());
        if !nothing {
            self.wake_up();
        }
        nothing
    }

    /// After the thread slept: clients need not wake it.
    pub(super) fn wake_up(&self) {
        for shared in self.connections.values().filter_map(|connection| connection.shared.as_ref()) {
            if shared.written().flag() {
                shared.written().set_flag(false);
            }
        }
    }

    /// A client has rung: it may have taken a token that is still needed, or made room.
    pub(super) fn answer_bell(&mut self, number: u64) {
        let Some(connection) = self.connections.get(&number) else { return };
        let Some(shared) = &connection.shared else { return };
        let ring = shared.rings.to_program();
        if !ring.is_empty()
            && let Err(errno) = announce(connection, ring)
        {
            tracing::debug!("sending to client {number}: {errno}");
            return self.disconnect(number);
        }
        self.unblock(number);
    }
}

/// Puts the token into the client's socket where it is not there.
fn announce(connection: &Connection, ring: Ring<'_>) -> Result<(), Errno> {
    if ring.set_flag(true) {
        return Ok(());
    }
    let token = Frame { kind: FrameKind::Token, length: 0 }.encode();
    let sent = send(fd(connection), &[IoSlice::new(&token)], None, SendFlags::DONTWAIT);
    // It always fits; if ever not, the client cannot be told any more.
    sent.map_err(|errno| if errno == Errno::AGAIN { Errno::IO } else { errno })
}

/// Puts a packet (frame prefix, umad header, message) into the client's ring, and into its socket too when it is longer than a
/// slot; `AGAIN` when there is no room.
pub(super) fn put(
    connection: &mut Connection,
    packet: &[u8],
    by_socket: impl Fn(&Connection, &[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let Some(shared) = &mut connection.shared else { return by_socket(connection, packet) };
    let ring = shared.rings.to_program();
    let message = &packet[Frame::LEN..];
    let long = message.len() > SLOT_BYTES;
    if ring.is_empty() {
        shared.in_socket = 0;
    }
    let has_room = || ring.has_room() && !(long && shared.in_socket >= MAX_IN_SOCKET);
    if !has_room() {
        ring.want_room(true);
        if !has_room() {
            return Err(Errno::AGAIN);
        }
        ring.want_room(false);
    }
    if long {
        shared.in_socket += 1;
        by_socket(connection, packet)?;
    }
    let Some(shared) = &connection.shared else { return Ok(()) };
    let ring = shared.rings.to_program();
    ring.push(message, long);
    announce(connection, ring)
}
