//! Clients whose packets lie in shared memory ([`rsm_preload_protocol::ring`]): no system call while both sides are awake.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rsm_preload_protocol::ring::{Ring, Rings, SLOT_BYTES, SLOTS};
use rsm_preload_protocol::socket::send;
use rsm_preload_protocol::{Frame, FrameKind};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::connection::{Connection, Hindrance, Role, send_packet};
use super::{BATCH, Server};

/// Packets that may lie in a client's socket besides its token: the files that go along take memory and descriptors for as long
/// as the client does not read.
const MAX_IN_SOCKET: u32 = 16;

/// A client's rings.
#[derive(Debug)]
pub(super) struct Shared {
    rings: Rings,
    /// For the client, and for a program that inherits the descriptor through exec.
    pub(super) file: OwnedFd,
    /// Packets sent by the socket since the ring was last seen empty.
    in_socket: u32,
    /// Tokens that the client counts on and that did not fit into its socket. Nothing else goes there before them.
    owed: u32,
}

impl Shared {
    pub(super) fn new() -> Result<Self, Errno> {
        let (rings, file) = Rings::create()?;
        Ok(Self { rings, file, in_socket: 0, owed: 0 })
    }

    fn written(&self) -> Ring<'_> {
        self.rings.to_emulator()
    }

    /// Whether another packet may go to the client.
    fn has_room(&mut self, long: bool) -> bool {
        let ring = self.rings.to_program();
        if ring.is_empty() {
            self.in_socket = 0;
        }
        ring.has_room() && !(long && self.in_socket >= MAX_IN_SOCKET)
    }

    /// Says that the ring is not empty, where that is not said yet.
    fn announce(&mut self) {
        self.owed += u32::from(!self.rings.to_program().set_flag(true));
    }

    /// Sends the tokens that are owed.
    pub(super) fn pay(&mut self, socket: BorrowedFd<'_>) -> Result<(), Hindrance> {
        let token = Frame { kind: FrameKind::Token, length: 0 }.encode();
        while self.owed > 0 {
            send(socket, &[IoSlice::new(&token)], None, SendFlags::DONTWAIT)?;
            self.owed -= 1;
        }
        Ok(())
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

    /// A client has rung: it has taken a token that is still needed, or made room, or written.
    pub(super) fn answer_bell(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let Some(shared) = &mut connection.shared else { return };
        let ring = shared.rings.to_program();
        if !ring.is_empty() && ring.replace_token() {
            shared.owed += 1;
        }
        self.unblock(number);
    }
}

/// Puts a packet (frame prefix, umad header, message) into the client's ring, and into its socket too when it is longer than a
/// slot. What then is owed to the client is for [`Shared::pay`].
pub(super) fn put(connection: &mut Connection, packet: &[u8]) -> Result<(), Hindrance> {
    let socket = connection.socket.as_fd();
    let Some(shared) = &mut connection.shared else { return send_packet(socket, packet) };
    let message = &packet[Frame::LEN..];
    let long = message.len() > SLOT_BYTES;
    if !shared.has_room(long) {
        shared.rings.to_program().want_room(true);
        // What the client took before it could see this came without a bell.
        if !shared.has_room(long) {
            return Err(Hindrance::Ring);
        }
        shared.rings.to_program().want_room(false);
    }
    if long {
        send_packet(socket, packet)?;
        shared.in_socket += 1;
    }
    shared.rings.to_program().push(message, long);
    shared.announce();
    Ok(())
}
