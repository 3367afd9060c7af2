//! The program's end of a session: reads and writes by the rings that it shares with the emulator ([`crate::ring`]).
//!
//! It lies here and not in the preload library so that the emulator's tests can be programs too: that library's `open`
//! replaces the C library's in whatever links it.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags};

use crate::ring::{Ring, Rings, SLOTS};
use crate::socket::{read_memory_file, receive, send};
use crate::umad::MAD_LEN;
use crate::{Frame, FrameKind};

/// How long a read that may wait looks at the ring before it sleeps: waking up costs more than this.
const SPIN: Duration = Duration::from_micros(20);
/// How long a write waits before it looks again whether the emulator is still there.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Errors of the socket are those of a device that is gone.
pub const fn device_error(errno: Errno) -> Errno {
    match errno {
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Errno::IO,
        errno => errno,
    }
}

/// The kernel's device always takes a write; the socket of a descriptor that must not wait may be full for a moment.
///
/// # Errors
/// As sendmsg(2), `EIO` where the emulator is gone.
pub fn send_all(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>], file: Option<BorrowedFd<'_>>) -> Result<()> {
    loop {
        match send(fd, parts, file, SendFlags::empty()) {
            Err(Errno::AGAIN) => {
                rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None))?;
            }
            sent => return sent.map_err(device_error),
        }
    }
}

/// read(2) of a descriptor with rings. A message that comes in a file for which this process has no descriptor left is lost,
/// as one that a full queue does not take.
///
/// # Errors
/// As the kernel: `EINVAL` when the buffer holds less than header and first segment, `ENOSPC` (with those filled in,
/// and the message kept) when a longer message does not fit, `EAGAIN`, `EIO` when the device is gone.
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
    let taken = if front.in_socket {
        take_from_socket(fd, message)
    } else {
        ring.copy_front(message);
        Ok(Taken { token: false, whole: true })
    };
    let taken = taken.and_then(|taken| pop(fd, ring, taken.token).map(|()| taken.whole));
    match taken {
        Ok(true) => Some(Ok(front.length)),
        Ok(false) => None,
        Err(errno) => Some(Err(errno)),
    }
}

/// What was taken out of the socket.
struct Taken {
    /// The token, which lay before the packet.
    token: bool,
    /// Whether the packet could be read. It is out of the socket all the same.
    whole: bool,
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
        ring.miss_token();
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
fn take_from_socket(fd: BorrowedFd<'_>, message: &mut [u8]) -> Result<Taken> {
    let mut token = false;
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
        let whole = match Frame::decode(&prefix).ok_or(Errno::IO)?.kind {
            FrameKind::Token => {
                token = true;
                continue;
            }
            FrameKind::InFile => file.is_some_and(|file| read_memory_file(file.as_fd(), message).is_ok()),
            FrameKind::Whole | FrameKind::Bell => true,
        };
        return Ok(Taken { token, whole });
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
