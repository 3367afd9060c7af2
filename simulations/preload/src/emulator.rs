//! The way to the emulator: where it is, what it is asked.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use rsm_preload_protocol::ring::Rings;
use rsm_preload_protocol::socket::{ask, ask_for_file, connect_to};
use rsm_preload_protocol::{DeviceKind, ENV_EMULATE, ENV_NODE, Operation, Reply, Request, SOCKET_NAME};
use rustix::io::Errno;
use rustix::net::SocketFlags;

/// From the environment.
#[derive(Debug)]
pub struct Emulator {
    socket: PathBuf,
    node: String,
}

/// A descriptor that was opened, and its session's name.
#[derive(Debug)]
pub struct Opened {
    /// The socket that stands for the device.
    pub socket: OwnedFd,
    /// What [`Emulator::operation`] needs; empty for an issm.
    pub session: String,
    /// The port's number.
    pub port: u8,
}

impl Emulator {
    /// The emulator of this process; `None` when the environment names none.
    pub fn get() -> Option<&'static Self> {
        static EMULATOR: OnceLock<Option<Emulator>> = OnceLock::new();
        EMULATOR.get_or_init(Self::from_environment).as_ref()
    }

    fn from_environment() -> Option<Self> {
        let given = PathBuf::from(std::env::var_os(ENV_EMULATE).filter(|value| !value.is_empty())?);
        let node = std::env::var(ENV_NODE).unwrap_or_default();
        let socket = if rustix_is_directory(&given) { given.join(SOCKET_NAME) } else { given };
        Some(Self { socket, node })
    }

    fn request(&self, request: &Request<'_>) -> Result<Reply, Errno> {
        let (socket, _) = connect_to(&self.socket, false, SocketFlags::CLOEXEC)?;
        ask(socket.as_fd(), request)
    }

    /// Brings the sysfs tree up to date and gives its root.
    ///
    /// # Errors
    /// The emulator is gone, or knows no such node.
    pub fn tree(&self) -> Result<PathBuf, Errno> {
        let reply = self.request(&Request::Refresh { node: &self.node })?;
        checked(reply).map(|payload| PathBuf::from(std::ffi::OsString::from_vec(payload)))
    }

    /// Opens a device.
    ///
    /// # Errors
    /// As the kernel's open; `ENXIO` when the emulator is gone.
    pub fn open(
        &self,
        kind: DeviceKind,
        number: u32,
        close_on_exec: bool,
        nonblocking: bool,
    ) -> Result<Opened, Errno> {
        let flags = if close_on_exec { SocketFlags::CLOEXEC } else { SocketFlags::empty() };
        let (socket, session) =
            connect_to(&self.socket, kind == DeviceKind::Umad, flags).map_err(|_| Errno::NXIO)?;
        let request = Request::Open { kind, number, nonblocking, node: &self.node };
        let payload = checked(ask(socket.as_fd(), &request)?)?;
        if nonblocking {
            rustix::io::ioctl_fionbio(&socket, true)?;
        }
        Ok(Opened { socket, session, port: payload.first().copied().unwrap_or_default() })
    }

    /// The rings of an opened descriptor; `None` where there are none: packets go by the socket then.
    pub fn rings(&self, session: &str) -> Option<Rings> {
        let (socket, _) = connect_to(&self.socket, false, SocketFlags::CLOEXEC).ok()?;
        let request = Request::Operation { operation: Operation::Rings, session, payload: &[] };
        let (reply, file) = ask_for_file(socket.as_fd(), &request).ok()?;
        if reply.errno != 0 {
            return None;
        }
        Rings::open(&file?).ok()
    }

    /// Something about an opened descriptor. The payload comes back with errors too.
    ///
    /// # Errors
    /// As the kernel's ioctl and write; `EIO` when the emulator is gone.
    pub fn operation(
        &self,
        operation: Operation,
        session: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, (Errno, Vec<u8>)> {
        let reply = self
            .request(&Request::Operation { operation, session, payload })
            .map_err(|_| (Errno::IO, Vec::new()))?;
        match reply.errno {
            0 => Ok(reply.payload),
            errno => Err((Errno::from_raw_os_error(errno), reply.payload)),
        }
    }
}

fn checked(reply: Reply) -> Result<Vec<u8>, Errno> {
    match reply.errno {
        0 => Ok(reply.payload),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

/// By a raw call: std's would come back to our own wrappers.
fn rustix_is_directory(path: &std::path::Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    })
}
