//! The kernel's management datagrams: `/dev/infiniband/umadN` and `issmN` (Linux
//! `Documentation/infiniband/user_mad.rst`).
//!
//! - [`devices`] lists what the host has, [`select`] picks a port and says what it passed over,
//!   [`UmadTransport::open`] registers for classes, [`IsSm`] sets the port's IsSM bit.
//! - The kernel holds a request for the time it is told and gives it back with `ETIMEDOUT`; it owns the upper
//!   32 bits of a request's transaction ID, and takes no second request with an ID that it holds.
//! - ibsim's preload library can stand in for the kernel ([`UmadTransport::is_simulator`]). It keeps no time,
//!   takes `poll` for a single file only, hangs with more than about 300 requests in flight, and keeps the
//!   shorter header. All calls go through libc for its sake.
#![allow(unsafe_code)]

mod abi;
mod agents;
mod devices;
mod issm;
mod select;
mod sys;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Datagram, Received, Transport, TransportError};
use crate::types::PortNum;
use crate::wire::vendor::mirror;
use crate::wire::{Method, MgmtClass};
pub use agents::{AgentSpec, Registration};
pub use devices::{Device, DevicePort, LinkLayer, devices, devices_under};
pub use issm::IsSm;
pub use select::{Obstacle, PortSelector, SelectError, Selected, Skipped, select};
use sys::{Fd, Ready};

/// How long a wake-up may take where `poll` can't wait for it.
const SIMULATOR_SLICE: Duration = Duration::from_millis(10);

/// What to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The classes.
    pub agents: Vec<AgentSpec>,
    /// By which call.
    pub registration: Registration,
}

impl OpenOptions {
    /// All that a subnet manager with subnet administration serves, and what it asks besides.
    pub fn subnet_manager() -> Self {
        let smp = [Method::GET, Method::SET, Method::TRAP, Method::TRAP_REPRESS];
        let sa = [
            Method::GET,
            Method::SET,
            Method::REPORT,
            Method::GET_TABLE,
            Method::GET_TRACE_TABLE,
            Method::GET_MULTI,
            Method::DELETE,
        ];
        let mut options = Self::client();
        options.agents[0] = AgentSpec::server(MgmtClass::SUBN_DR, &smp);
        options.agents[1] = AgentSpec::server(MgmtClass::SUBN_LID, &smp);
        options.agents[2] = AgentSpec::server(MgmtClass::SUBN_ADM, &sa);
        let mirror = AgentSpec::server(mirror::CLASS, &[Method::GET]);
        options.agents.push(AgentSpec { oui: mirror::OUI, required: false, ..mirror });
        options
    }

    /// A program that only asks and runs beside a subnet manager.
    pub fn client() -> Self {
        Self {
            agents: vec![
                AgentSpec::client(MgmtClass::SUBN_DR, true),
                AgentSpec::client(MgmtClass::SUBN_LID, true),
                AgentSpec::client(MgmtClass::SUBN_ADM, true),
                AgentSpec::client(MgmtClass::PERF, false),
                AgentSpec::client(MgmtClass(VENDOR_CLASS), false),
                AgentSpec::client(MgmtClass(CONGESTION_CLASS), false),
            ],
            registration: Registration::default(),
        }
    }
}

/// The vendors' class in which Mellanox devices answer diagnostics.
const VENDOR_CLASS: u8 = 0x0a;
/// Congestion control.
const CONGESTION_CLASS: u8 = 0x21;

/// Opening failed. Each reads as one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is not there although sysfs names it.
    #[error("{path} does not exist; is udev running, or /dev of this container complete?")]
    NoFile {
        /// The file.
        path: String,
    },
    /// No permission.
    #[error("no permission to open {path}; run as root, or give this user access to the file")]
    Permission {
        /// The file.
        path: String,
    },
    /// The port has no umad file.
    #[error("{device} port {port} has no umad device; load the module: modprobe ib_umad")]
    NoUmad {
        /// Device.
        device: String,
        /// Port.
        port: PortNum,
    },
    /// The port has no issm file.
    #[error("{device} port {port} has no issm device; load the module: modprobe ib_umad")]
    NoIsSm {
        /// Device.
        device: String,
        /// Port.
        port: PortNum,
    },
    /// Another program, most likely a subnet manager, has what we need.
    #[error(
        "another program already holds {what} of {device} port {port}; stop it (opensm?) or take another port"
    )]
    Held {
        /// Device.
        device: String,
        /// Port.
        port: PortNum,
        /// What it holds.
        what: String,
    },
    /// The port does not take the class.
    #[error(
        "{device} port {port} refuses management class 0x{class:02x}: {source}; is its link layer InfiniBand?"
    )]
    Refused {
        /// Device.
        device: String,
        /// Port.
        port: PortNum,
        /// Class.
        class: u8,
        /// The system's error.
        source: std::io::Error,
    },
    /// Anything else.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl OpenError {
    fn file(path: &str, source: std::io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Self::NoFile { path },
            Some(libc::EACCES | libc::EPERM) => Self::Permission { path },
            _ => Self::Io { path, source },
        }
    }
}

/// An open umad file.
#[derive(Debug)]
struct Handle {
    port: DevicePort,
    path: String,
    file: Fd,
    header_len: usize,
    simulator: bool,
}

impl Handle {
    fn open(port: &DevicePort) -> Result<Self, OpenError> {
        let path = port
            .umad
            .clone()
            .ok_or_else(|| OpenError::NoUmad { device: port.device.clone(), port: port.number })?;
        let file = Fd::open(&path, libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .map_err(|source| OpenError::file(&path, source))?;
        let simulator = !file.is_kernel_file();
        let enabled = file.ioctl_none(abi::ENABLE_PKEY).is_ok();
        let header_len = match sys::libibumad_header_len() {
            Some(length) if simulator && (length == abi::HEADER_LEN || length == abi::SHORT_HEADER_LEN) => {
                length
            }
            _ if enabled => abi::HEADER_LEN,
            _ => abi::SHORT_HEADER_LEN,
        };
        Ok(Self { port: port.clone(), path, file, header_len, simulator })
    }

    fn io(&self, what: &str, source: std::io::Error) -> TransportError {
        TransportError::Io { what: format!("{what} {} ({})", self.path, self.port), source }
    }

    /// One datagram, if one has come.
    fn read(&self) -> Result<Option<Received>, TransportError> {
        let mut buffer = [0; abi::HEADER_LEN + 2048];
        let count = match self.file.read(&mut buffer) {
            Ok(count) => count,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                    Some(libc::EIO | libc::ENODEV) => Err(TransportError::Closed),
                    _ => Err(self.io("read", error)),
                };
            }
        };
        let Some((header, datagram)) = abi::decode(&buffer[..count], self.header_len) else {
            tracing::debug!(count, path = %self.path, "short read dropped");
            return Ok(None);
        };
        Ok(Some(if header.status == 0 {
            Received::Datagram(datagram)
        } else {
            Received::Returned { request: datagram, errno: header.status as i32 }
        }))
    }
}

/// An agent: which handle, which number there.
#[derive(Clone, Copy, Debug)]
struct Agent {
    class: MgmtClass,
    handle: usize,
    id: u32,
}

/// The transport over one port's umad file, or over two where subnet management packets and general services have a
/// device each (B14).
#[derive(Debug)]
pub struct UmadTransport {
    handles: Vec<Handle>,
    agents: Vec<Agent>,
    wake_event: Fd,
    woken: AtomicBool,
    /// The handle to look at first, so that a busy one can't hide the other.
    turn: AtomicUsize,
    /// The last look found nothing in any handle.
    drained: AtomicBool,
}

impl UmadTransport {
    /// Opens the chosen port and registers the classes.
    ///
    /// # Errors
    /// The file can't be opened, or a required class is refused or held by another program.
    pub fn open(selected: &Selected, options: &OpenOptions) -> Result<Self, OpenError> {
        let wake_event = Fd::event().map_err(|source| OpenError::Io { path: "eventfd".into(), source })?;
        let mut transport = Self {
            handles: vec![Handle::open(&selected.port)?],
            agents: Vec::new(),
            wake_event,
            woken: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
            drained: AtomicBool::new(false),
        };
        for spec in &options.agents {
            transport.register(spec, options.registration, &selected.siblings)?;
        }
        Ok(transport)
    }

    /// Registers with the first handle that takes the class, opening siblings of the port as needed.
    fn register(
        &mut self,
        spec: &AgentSpec,
        registration: Registration,
        siblings: &[DevicePort],
    ) -> Result<(), OpenError> {
        let mut refusal = match self.register_open(spec, registration) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        for sibling in siblings {
            if self.handles.iter().any(|handle| handle.port == *sibling) {
                continue;
            }
            let Ok(handle) = Handle::open(sibling) else { continue };
            match agents::register(&handle.file, spec, registration) {
                Ok(id) => {
                    self.agents.push(Agent { class: spec.class, handle: self.handles.len(), id });
                    self.handles.push(handle);
                    return Ok(());
                }
                Err(agents::Refused::Held) => refusal = held(sibling, spec),
                Err(agents::Refused::Unsupported(_)) => {}
            }
        }
        if spec.required { Err(refusal) } else { Ok(()) }
    }

    fn register_open(&mut self, spec: &AgentSpec, registration: Registration) -> Result<(), OpenError> {
        let mut refusal = None;
        for (index, handle) in self.handles.iter().enumerate() {
            match agents::register(&handle.file, spec, registration) {
                Ok(id) => {
                    self.agents.push(Agent { class: spec.class, handle: index, id });
                    return Ok(());
                }
                Err(agents::Refused::Held) => return Err(held(&handle.port, spec)),
                Err(agents::Refused::Unsupported(source)) => {
                    refusal.get_or_insert_with(|| OpenError::Refused {
                        device: handle.port.device.clone(),
                        port: handle.port.number,
                        class: spec.class.0,
                        source,
                    });
                }
            }
        }
        Err(refusal.expect("there is at least one handle, and it refused"))
    }

    /// Whether a preload library stands in for the kernel. Then no more than 256 requests may be in flight.
    pub fn is_simulator(&self) -> bool {
        self.handles[0].simulator
    }

    /// The port that subnet management packets leave by (the only one, on all but adapters of several devices).
    pub fn smi_port(&self) -> &DevicePort {
        let smi = self.agents.iter().find(|agent| agent.class == MgmtClass::SUBN_DR);
        &self.handles[smi.map_or(0, |agent| agent.handle)].port
    }

    /// Bytes of the header that precedes each datagram at this file: 64, or 56 without P_Key index.
    pub fn header_len(&self) -> usize {
        self.handles[0].header_len
    }

    /// Waits for something to read: which handles can be, and whether the wait was ended by a wake-up.
    fn wait(&self, timeout: Duration) -> Result<([Ready; 4], bool), TransportError> {
        let first = &self.handles[0];
        if first.simulator {
            return self.wait_in_slices(timeout);
        }
        let mut files: Vec<&Fd> = self.handles.iter().map(|handle| &handle.file).collect();
        files.push(&self.wake_event);
        let ready = sys::poll(&files, timeout).map_err(|error| first.io("poll", error))?;
        let woken = ready[self.handles.len()].readable;
        if woken {
            // It only has to be drained; that there was something is what counts.
            let _ = self.wake_event.read(&mut [0; 8]);
        }
        Ok((ready, woken))
    }

    /// The simulator's `poll` sees one file and never the wake-up.
    fn wait_in_slices(&self, timeout: Duration) -> Result<([Ready; 4], bool), TransportError> {
        let end = Instant::now() + timeout;
        loop {
            if self.woken.swap(false, Ordering::AcqRel) {
                return Ok(([Ready::default(); 4], true));
            }
            let left = end.saturating_duration_since(Instant::now());
            // Its `poll` fails at times for no reason; that is no more than nothing to read.
            let ready = sys::poll(&[&self.handles[0].file], left.min(SIMULATOR_SLICE)).unwrap_or_default();
            if ready[0] != Ready::default() || left.is_zero() {
                return Ok((ready, false));
            }
        }
    }
}

fn held(port: &DevicePort, spec: &AgentSpec) -> OpenError {
    OpenError::Held {
        device: port.device.clone(),
        port: port.number,
        what: format!("management class 0x{:02x}", spec.class.0),
    }
}

impl Transport for UmadTransport {
    fn send(&self, datagram: &Datagram, timeout: Option<Duration>) -> Result<(), TransportError> {
        let class = datagram.mad.header.mgmt_class();
        let agent =
            self.agents.iter().find(|agent| agent.class == class).ok_or(TransportError::NoAgent(class.0))?;
        let handle = &self.handles[agent.handle];
        // 0 would mean that no answer is expected.
        let timeout_ms =
            timeout.map_or(0, |timeout| timeout.as_nanos().div_ceil(1_000_000).clamp(1, 3_600_000) as u32);
        let header = abi::Header::new(agent.id, timeout_ms, &datagram.address);
        let (bytes, length) = abi::encode(&header, handle.header_len, &datagram.mad);
        match handle.file.write(&bytes[..length]) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENODEV | libc::EIO | libc::EBADF) => Err(TransportError::Closed),
                _ => Err(handle.io("write", error)),
            },
        }
    }

    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError> {
        let count = self.handles.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        // What lies ready needs no poll: under load that halves the calls. What was found empty a moment ago needs no look.
        let drained = self.drained.swap(timeout.is_zero(), Ordering::Relaxed);
        if timeout.is_zero() || !drained || self.is_simulator() {
            for index in (0..count).map(|step| (first + step) % count) {
                if let Some(received) = self.handles[index].read()? {
                    self.drained.store(false, Ordering::Relaxed);
                    return Ok(Some(received));
                }
            }
        }
        if timeout.is_zero() {
            return Ok(None);
        }
        let (ready, _) = self.wait(timeout)?;
        for index in (0..count).map(|step| (first + step) % count) {
            if ready[index].readable
                && let Some(received) = self.handles[index].read()?
            {
                return Ok(Some(received));
            }
            if ready[index].failed {
                return Err(TransportError::Closed);
            }
        }
        Ok(None)
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        // Fails only when the counter is full: then a wake-up is pending.
        let _ = self.wake_event.write(&1_u64.to_ne_bytes());
    }
}

impl Drop for UmadTransport {
    fn drop(&mut self) {
        for handle in self.handles.drain(..) {
            if handle.simulator {
                // An answer that comes for a closed file crashes the preload library's thread; the file costs
                // nothing.
                handle.file.leak();
            }
        }
    }
}
