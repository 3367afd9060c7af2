//! Sending and receiving the packets, memory files included. All calls are raw system calls: the preload library's own
//! wrappers never see them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FileType, MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{Errno, Result, pread, retry_on_intr, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recvmsg,
    sendmsg, socket_with,
};

use crate::{MAX_PACKET, Reply, Request, SESSION_PREFIX};

/// Sends one packet, with a file when one is given. Never raises `SIGPIPE`.
///
/// # Errors
/// As sendmsg(2).
pub fn send(
    socket: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    file: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.map(|file| [file]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    retry_on_intr(|| sendmsg(socket, parts, &mut control, flags | SendFlags::NOSIGNAL)).map(drop)
}

/// Receives one packet into the parts and gives its length (0: the other end is closed), and the file that came with
/// it. `EINTR` is handed on.
///
/// # Errors
/// As recvmsg(2).
pub fn receive(
    socket: BorrowedFd<'_>,
    parts: &mut [IoSliceMut<'_>],
    flags: RecvFlags,
) -> Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, parts, &mut control, flags | RecvFlags::CMSG_CLOEXEC)?;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    Ok((received.bytes, file))
}

/// A memory file that holds the parts and cannot be changed any more.
///
/// # Errors
/// No descriptor or no memory is left.
pub fn memory_file(parts: &[&[u8]]) -> Result<OwnedFd> {
    let file = memfd_create("rsm-mad", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let written = retry_on_intr(|| write(&file, rest))?;
            rest = &rest[written..];
        }
    }
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file)
}

/// Reads a memory file of somebody who need not be trusted.
///
/// # Errors
/// `EINVAL` for a file that is no sealed memory file of that length: any other could make the reader wait.
pub fn read_memory_file(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<()> {
    let stat = fstat(file)?;
    let sealed = fcntl_get_seals(file)?.contains(SealFlags::WRITE | SealFlags::SHRINK);
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !sealed || !regular || stat.st_size != buffer.len() as i64 {
        return Err(Errno::INVAL);
    }
    let mut offset = 0;
    while offset < buffer.len() {
        match retry_on_intr(|| pread(file, &mut buffer[offset..], offset as u64))? {
            0 => return Err(Errno::INVAL),
            count => offset += count,
        }
    }
    Ok(())
}

/// Connects to the emulator; for a session with a name of its own in the abstract namespace, which is given back.
///
/// # Errors
/// As socket(2), bind(2) and connect(2).
pub fn connect_to(path: &Path, session: bool, flags: SocketFlags) -> Result<(OwnedFd, String)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let flags = flags.difference(SocketFlags::NONBLOCK);
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let mut name = String::new();
    if session {
        let process = rustix::process::getpid().as_raw_nonzero();
        let address = loop {
            name = format!("{SESSION_PREFIX}{process}.{}", COUNT.fetch_add(1, Ordering::Relaxed));
            let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
            match bind(&socket, &address) {
                // After exec the count begins again while inherited descriptors keep their names.
                Err(Errno::ADDRINUSE) => {}
                bound => break bound,
            }
        };
        address?;
    }
    retry_on_intr(|| connect(&socket, &SocketAddrUnix::new(path)?))?;
    Ok((socket, name))
}

/// Sends a request on a fresh connection and waits for the answer.
///
/// # Errors
/// As send(2) and recv(2); `EPIPE` when the emulator closed the connection or answered nonsense.
pub fn ask(socket: BorrowedFd<'_>, request: &Request<'_>) -> Result<Reply> {
    ask_for_file(socket, request).map(|(reply, _)| reply)
}

/// As [`ask`], with the file that comes with the answer.
///
/// # Errors
/// As [`ask`].
pub fn ask_for_file(socket: BorrowedFd<'_>, request: &Request<'_>) -> Result<(Reply, Option<OwnedFd>)> {
    send(socket, &[IoSlice::new(&request.encode())], None, SendFlags::empty())?;
    let mut buffer = vec![0; MAX_PACKET];
    let (length, file) =
        retry_on_intr(|| receive(socket.as_fd(), &mut [IoSliceMut::new(&mut buffer)], RecvFlags::empty()))?;
    Ok((Reply::decode(&buffer[..length]).ok_or(Errno::PIPE)?, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::socketpair;

    #[test]
    fn a_packet_and_its_file_arrive_together() {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let file = memory_file(&[b"hello ", b"world"]).unwrap();
        send(
            a.as_fd(),
            &[IoSlice::new(b"pre"), IoSlice::new(b"fix")],
            Some(file.as_fd()),
            SendFlags::empty(),
        )
        .unwrap();
        let (mut first, mut second) = ([0; 4], [0; 8]);
        let parts = &mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let (length, file) = receive(b.as_fd(), parts, RecvFlags::empty()).unwrap();
        assert_eq!((length, &first, &second[..2]), (6, b"pref", &b"ix"[..]));
        let file = file.unwrap();
        let mut text = [0; 11];
        read_memory_file(file.as_fd(), &mut text).unwrap();
        assert_eq!(&text, b"hello world");
        let mut wrong = [0; 10];
        assert_eq!(read_memory_file(file.as_fd(), &mut wrong), Err(Errno::INVAL));
        drop(a);
        assert_eq!(receive(b.as_fd(), &mut [IoSliceMut::new(&mut text)], RecvFlags::empty()).unwrap().0, 0);
    }

    #[test]
    fn files_that_could_make_a_reader_wait_are_refused() {
        let (a, _b) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        assert!(read_memory_file(a.as_fd(), &mut [0; 1]).is_err(), "a socket");
        let open = memfd_create("open", MemfdFlags::ALLOW_SEALING).unwrap();
        write(&open, b"x").unwrap();
        assert_eq!(read_memory_file(open.as_fd(), &mut [0; 1]), Err(Errno::INVAL), "its owner can cut it");
    }
}
