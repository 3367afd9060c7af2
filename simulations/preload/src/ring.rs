//! Reads and writes by the rings that a session shares with the emulator ([`rsm_preload_protocol::ring`]).

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rsm_preload_protocol::ring::{Ring, Rings, SLOTS};
use rsm_preload_protocol::socket::{read_memory_file, receive};
use rsm_preload_protocol::umad::MAD_LEN;
use rsm_preload_protocol::{Frame, FrameKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use rustix::net::RecvFlags;

use crate::device::{device_error, send_all};

/// How long a read that may wait looks at the ring before it sleeps: waking up costs more than this.
const SPIN: Duration = Duration::from_micros(20);
/// How long a write waits before it looks again whether the emulator is still there.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// read(2) of a descriptor with rings.
///
/// # Errors
/// As [`crate::device::read`].
pub fn read(fd: BorrowedFd<'_>, rings: &Rings, buffer: &mut [u8], header_len: usize) -> Result<usize> {
    loop {
        if let Some(read) = try_read(fd, rings, buffer, header_len) {
            return read;
        }
        match peek(fd)? {
            Some(0) => return Err(Errno::IO),
            // What lies in the socket is in the ring in a moment: a descriptor that is readable has something to read.
            Some(_) => {
                std::thread::yield_now();
                continue;
            }
            None => {}
        }
        if rustix::fs::fcntl_getfl(fd)?.contains(OFlags::NONBLOCK) {
            return Err(Errno::AGAIN);
        }
        if !appears(rings.to_program()) {
            poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
        }
    }
}

/// Looks at the ring for a while; whether there is something.
fn appears(ring: Ring<'_>) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if ring.flag() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return false;
        }
    }
}

/// Takes the next packet, when there is one.
fn try_read(
    fd: BorrowedFd<'_>,
    rings: &Rings,
    buffer: &mut [u8],
    header_len: usize,
) -> Option<Result<usize>> {
    let ring = rings.to_program();
    if !ring.flag() {
        return None;
    }
    let _guard = ring.lock();
    // A packet without the flag has not been announced yet: it comes with the token.
    let front = ring.front().filter(|_| ring.flag())?;
    let first = header_len + MAD_LEN;
    if buffer.len() < front.length.min(first) {
        return Some(Err(Errno::INVAL));
    }
    let Some(message) = buffer.get_mut(..front.length) else {
        ring.copy_front(&mut buffer[..first]);
        return Some(Err(Errno::NOSPC));
    };
    let mut token = false;
    let taken = if front.in_socket {
        take_from_socket(fd, message, &mut token)
    } else {
        ring.copy_front(message);
        Ok(())
    };
    let taken = taken.and_then(|()| pop(fd, ring, token));
    Some(taken.map(|()| front.length))
}

/// Takes the packet out of the ring, and out of the socket the token that belongs to it where it was the last.
/// `taken` says that the token is out of the socket already.
fn pop(fd: BorrowedFd<'_>, ring: Ring<'_>, taken: bool) -> Result<()> {
    let mut token_is_missing = taken;
    if ring.len() == 1 && ring.set_flag(false) {
        if ring.len() > 1 && ring.raise_flag() {
            // More came before the flag was down: the token stays for that.
        } else {
            // Empty, or what came has brought a token of its own.
            if !taken {
                take_token(fd)?;
            }
            token_is_missing = false;
        }
    }
    ring.pop();
    if token_is_missing {
        ring.set_flag(false);
    }
    if token_is_missing || (ring.wants_room() && ring.len() <= SLOTS / 2 && ring.want_room(false)) {
        ring_bell(fd)?;
    }
    Ok(())
}

fn ring_bell(fd: BorrowedFd<'_>) -> Result<()> {
    let bell = Frame { kind: FrameKind::Bell, length: 0 }.encode();
    send_all(fd, &[IoSlice::new(&bell)], None)
}

/// The token is in the socket, or about to be.
fn take_token(fd: BorrowedFd<'_>) -> Result<()> {
    let mut token = [0; Frame::LEN];
    loop {
        match receive(fd, &mut [IoSliceMut::new(&mut token)], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Errno::IO),
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
            Err(errno) => return Err(device_error(errno)),
        }
    }
}

/// Takes the packet that the socket holds; a token that lies before it is taken too.
fn take_from_socket(fd: BorrowedFd<'_>, message: &mut [u8], token: &mut bool) -> Result<()> {
    loop {
        let mut prefix = [0; Frame::LEN];
        let parts = &mut [IoSliceMut::new(&mut prefix), IoSliceMut::new(message)];
        let file = match receive(fd, parts, RecvFlags::DONTWAIT) {
            Ok((length, file)) if length >= Frame::LEN => file,
            Ok(_) => return Err(Errno::IO),
            Err(Errno::AGAIN | Errno::INTR) => {
                std::thread::yield_now();
                continue;
            }
            Err(errno) => return Err(device_error(errno)),
        };
        match Frame::decode(&prefix).ok_or(Errno::IO)?.kind {
            FrameKind::Token => *token = true,
            FrameKind::InFile => return read_memory_file(file.ok_or(Errno::IO)?.as_fd(), message),
            _ => return Ok(()),
        }
    }
}

/// The length of what lies in the socket, 0 when the emulator is gone; `None` when nothing does.
fn peek(fd: BorrowedFd<'_>) -> Result<Option<usize>> {
    let mut byte = [0];
    match receive(fd, &mut [IoSliceMut::new(&mut byte)], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((length, _)) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(device_error(errno)),
    }
}

/// write(2) of a packet that fits a slot. A full ring is waited for, as the kernel's device takes every write.
///
/// # Errors
/// `EIO` when the emulator is gone.
pub fn write(fd: BorrowedFd<'_>, rings: &Rings, bytes: &[u8]) -> Result<usize> {
    let ring = rings.to_emulator();
    loop {
        let pushed = {
            let _guard = ring.lock();
            ring.push(bytes, false)
        };
        if ring.flag() && ring.set_flag(false) {
            ring_bell(fd)?;
        }
        if pushed {
            return Ok(bytes.len());
        }
        let mut descriptor = [PollFd::new(&fd, PollFlags::empty())];
        if poll(&mut descriptor, Some(&PAUSE)).is_ok_and(|count| count > 0) {
            return Err(Errno::IO);
        }
    }
}
