//! What the kernel's umad device does in read, write and ioctl, as far as it concerns this side: sizes, header lengths,
//! error numbers; everything else is asked of the emulator.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use rsm_preload_protocol::program::{self, device_error, send_all};
use rsm_preload_protocol::ring::SLOT_BYTES;
use rsm_preload_protocol::socket::{memory_file, read_memory_file, receive};
use rsm_preload_protocol::umad::{
    ENABLE_PKEY, HEADER_LEN, MAD_LEN, MAX_AGENTS, OLD_HEADER_LEN, REGISTER_AGENT, REGISTER_AGENT2,
    RMPP_HEADER_LEN, RegisterAgent, RegisterAgent2, UNREGISTER_AGENT, USER_RMPP,
};
use rsm_preload_protocol::{Frame, FrameKind, MAX_PACKET, Operation};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::descriptors::Session;
use crate::emulator::Emulator;

type Result<T> = std::result::Result<T, Errno>;

impl Session {
    fn header_len(&self) -> usize {
        if self.pkey_index.load(Ordering::Relaxed) { HEADER_LEN } else { OLD_HEADER_LEN }
    }

    /// Whether a message longer than a datagram can come here.
    fn may_get_long_messages(&self) -> bool {
        self.port.is_none() || self.kernel_rmpp.load(Ordering::Relaxed) != 0
    }
}

/// read(2) on a umad descriptor.
///
/// # Errors
/// As the kernel: `EINVAL` when the buffer holds less than header and first segment, `ENOSPC` (with those filled in,
/// and the message kept) when a longer message does not fit, `EAGAIN`, `EIO` when the device is gone.
pub fn read(fd: BorrowedFd<'_>, session: &Session, buffer: &mut [u8]) -> Result<usize> {
    let header_len = session.header_len();
    if session.name.is_empty() || buffer.len() < header_len {
        return Err(Errno::INVAL);
    }
    if let Some(rings) = &session.rings {
        return program::read(fd, rings, buffer, header_len);
    }
    if buffer.len() >= header_len + MAD_LEN && !session.may_get_long_messages() {
        return take(fd, buffer, RecvFlags::empty());
    }
    loop {
        let guard = Reading::lock(session);
        match peek(fd, buffer, header_len) {
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
            Ok(()) => return take(fd, buffer, RecvFlags::DONTWAIT),
        }
        drop(guard);
        if rustix::fs::fcntl_getfl(fd)?.contains(OFlags::NONBLOCK) {
            return Err(Errno::AGAIN);
        }
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
    }
}

/// Whether the next message fits; where it doesn't, its beginning is in the buffer as the error says.
fn peek(fd: BorrowedFd<'_>, buffer: &mut [u8], header_len: usize) -> Result<()> {
    let mut prefix = [0; Frame::LEN];
    let mut head = [0; HEADER_LEN + MAD_LEN];
    let parts = &mut [IoSliceMut::new(&mut prefix), IoSliceMut::new(&mut head)];
    let (length, _) = receive(fd, parts, RecvFlags::PEEK | RecvFlags::DONTWAIT).map_err(device_error)?;
    if length < Frame::LEN {
        return Err(Errno::IO);
    }
    let total = Frame::decode(&prefix).ok_or(Errno::IO)?.length as usize;
    let first = header_len + MAD_LEN;
    if buffer.len() < total.min(first) {
        return Err(Errno::INVAL);
    }
    if buffer.len() < total {
        buffer[..first].copy_from_slice(&head[..first]);
        return Err(Errno::NOSPC);
    }
    Ok(())
}

/// Takes the next message.
fn take(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: RecvFlags) -> Result<usize> {
    let mut prefix = [0; Frame::LEN];
    let parts = &mut [IoSliceMut::new(&mut prefix), IoSliceMut::new(buffer)];
    let (length, file) = receive(fd, parts, flags).map_err(device_error)?;
    if length < Frame::LEN {
        return Err(Errno::IO);
    }
    let frame = Frame::decode(&prefix).ok_or(Errno::IO)?;
    let total = frame.length as usize;
    let message = buffer.get_mut(..total).ok_or(Errno::NOSPC)?;
    if frame.kind == FrameKind::InFile {
        read_memory_file(file.ok_or(Errno::IO)?.as_fd(), message)?;
    }
    Ok(total)
}

/// The right to look at the next message and take it.
struct Reading<'a>(&'a Session);

impl<'a> Reading<'a> {
    /// The holder does two calls that don't wait, so this is short.
    fn lock(session: &'a Session) -> Self {
        while session.reading.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        Self(session)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reading.store(false, Ordering::Release);
    }
}

/// write(2) on a umad descriptor. What may fail for a reason that only the emulator knows waits for its answer.
///
/// # Errors
/// As the kernel: `EINVAL`, `EIO`.
pub fn write(fd: BorrowedFd<'_>, session: &Session, bytes: &[u8]) -> Result<usize> {
    let header_len = session.header_len();
    if session.name.is_empty() || bytes.len() < header_len + RMPP_HEADER_LEN {
        return Err(Errno::INVAL);
    }
    let agent = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if agent as usize >= MAX_AGENTS {
        return Err(Errno::INVAL);
    }
    let bit = 1 << agent;
    let message = &bytes[header_len..];
    if message.len() > MAD_LEN
        && session.kernel_rmpp.load(Ordering::Relaxed) & bit == 0
        && is_known(session, bit)
    {
        return Err(Errno::INVAL);
    }
    if bytes.len() + Frame::LEN > MAX_PACKET {
        return write_long(fd, bytes);
    }
    if !is_known(session, bit) || needs_answer(session, agent, bytes, message) {
        let emulator = Emulator::get().ok_or(Errno::IO)?;
        return emulator
            .operation(Operation::Write, &session.name, bytes)
            .map(|_| bytes.len())
            .map_err(|(errno, _)| errno);
    }
    if let Some(rings) = session.rings.as_ref().filter(|_| bytes.len() <= SLOT_BYTES) {
        return program::write(fd, rings, bytes);
    }
    let prefix = Frame { kind: FrameKind::Whole, length: bytes.len() as u32 }.encode();
    send_all(fd, &[IoSlice::new(&prefix), IoSlice::new(bytes)], None)?;
    Ok(bytes.len())
}

fn is_known(session: &Session, bit: u32) -> bool {
    session.agents.load(Ordering::Relaxed) & bit != 0
}

/// Whether the emulator could refuse this message of a known agent: then its answer is worth waiting for.
fn needs_answer(session: &Session, agent: u32, bytes: &[u8], message: &[u8]) -> bool {
    const DIRECTED: u8 = 0x81;
    const SUBN_ADM: u8 = 0x03;
    // A message has at least an RMPP header: 36 bytes.
    let (class, method, hop_pointer, hop_count) = (message[1], message[3], message[6], message[7]);
    let short = message.len() < MAD_LEN;
    let rmpp = session.rmpp.load(Ordering::Relaxed) & 1 << agent != 0
        && (class != SUBN_ADM || message.len() > MAD_LEN);
    let strange_route = class == DIRECTED
        && !short
        && (hop_count > 63
            || (hop_count > 0
                && hop_pointer == 0
                && message[32..34] == [0xff; 2]
                && session.port.is_some_and(|port| port != message[129])));
    let has_timeout = bytes[8..12] != [0; 4];
    let tid = u64::from(u32::from_be_bytes([message[12], message[13], message[14], message[15]]));
    let key = tid | u64::from(class) << 32 | u64::from(method >> 7) << 40 | u64::from(agent) << 41 | 1 << 63;
    let repeated = has_timeout && session.written.note(key);
    short || rmpp || strange_route || repeated
}

/// A message that no packet holds goes in a file beside its beginning.
fn write_long(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    let length = u32::try_from(bytes.len()).map_err(|_| Errno::INVAL)?;
    let prefix = Frame { kind: FrameKind::InFile, length }.encode();
    let file = memory_file(&[bytes])?;
    send_all(fd, &[IoSlice::new(&prefix), IoSlice::new(&bytes[..HEADER_LEN + MAD_LEN])], Some(file.as_fd()))?;
    Ok(bytes.len())
}

/// The length of the structure that an ioctl's argument points to; `None` for an ioctl that umad does not have.
pub fn ioctl_len(request: u32) -> Option<usize> {
    match request {
        ENABLE_PKEY => Some(0),
        REGISTER_AGENT => Some(size_of::<RegisterAgent>()),
        REGISTER_AGENT2 => Some(size_of::<RegisterAgent2>()),
        UNREGISTER_AGENT => Some(4),
        _ => None,
    }
}

/// ioctl(2) on a umad descriptor; `argument` has the length that [`ioctl_len`] says and gets what comes back.
///
/// # Errors
/// As the kernel: `EINVAL`, `ENOMEM`, `ENOTTY` for ioctls that umad does not have.
pub fn ioctl(session: &Session, request: u32, argument: &mut [u8]) -> Result<()> {
    let operation = match request {
        ENABLE_PKEY => Operation::EnablePkey,
        REGISTER_AGENT => Operation::RegisterAgent,
        REGISTER_AGENT2 => Operation::RegisterAgent2,
        UNREGISTER_AGENT => Operation::UnregisterAgent,
        _ => return Err(Errno::NOTTY),
    };
    if session.name.is_empty() {
        return Err(Errno::NOTTY);
    }
    let emulator = Emulator::get().ok_or(Errno::IO)?;
    match emulator.operation(operation, &session.name, argument) {
        Ok(payload) => {
            if payload.len() == argument.len() {
                argument.copy_from_slice(&payload);
            }
            remember(session, request, argument);
            Ok(())
        }
        Err((errno, payload)) => {
            if payload.len() == argument.len() {
                argument.copy_from_slice(&payload);
            }
            Err(errno)
        }
    }
}

/// What an ioctl that went well changes on this side.
fn remember(session: &Session, request: u32, argument: &[u8]) {
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |four| u32::from_ne_bytes(*four)) & 31;
    let bit = 1 << number(argument);
    let (rmpp, kernel_rmpp) = match request {
        REGISTER_AGENT => (argument[26] != 0, argument[26] != 0),
        REGISTER_AGENT2 => (argument[36] != 0, argument[36] != 0 && number(&argument[12..]) & USER_RMPP == 0),
        _ => (false, false),
    };
    match request {
        ENABLE_PKEY => session.pkey_index.store(true, Ordering::Relaxed),
        UNREGISTER_AGENT => {
            session.agents.fetch_and(!bit, Ordering::Relaxed);
            session.rmpp.fetch_and(!bit, Ordering::Relaxed);
            session.kernel_rmpp.fetch_and(!bit, Ordering::Relaxed);
        }
        _ => {
            // The first registration by the second ioctl includes ENABLE_PKEY; after another it changes nothing.
            if request == REGISTER_AGENT2 && session.agents.load(Ordering::Relaxed) == 0 {
                let state = Emulator::get().map(|e| e.operation(Operation::State, &session.name, &[]));
                if let Some(Ok(state)) = state {
                    session.pkey_index.store(state == [1], Ordering::Relaxed);
                }
            }
            if rmpp {
                session.rmpp.fetch_or(bit, Ordering::Relaxed);
            }
            if kernel_rmpp {
                session.kernel_rmpp.fetch_or(bit, Ordering::Relaxed);
            }
            session.agents.fetch_or(bit, Ordering::Relaxed);
        }
    }
}
