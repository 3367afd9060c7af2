//! Writes every datagram that passes a transport to a pcapng file, which Wireshark and [`super::replay`] read.
//!
//! Each is marked as inbound or outbound. Requests that a device gives back are on no wire and in no capture.

mod file;

use std::io::Write;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Datagram, Received, Transport, TransportError};

pub use super::frame::Direction;
pub use file::{CaptureFile, Record};
pub(super) use file::{OUTBOUND, to_io};

/// Time since the Unix epoch, for the packets' time stamps.
pub type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// A transport that writes down what passes. An error of the file ends the writing, never the traffic.
pub struct Capture<T, W: Write> {
    inner: T,
    file: Mutex<Option<CaptureFile<W>>>,
    clock: Clock,
    local_lid: AtomicU16,
    lost: AtomicU64,
}

impl<T: Transport, W: Write + Send> Capture<T, W> {
    /// Wraps `inner`; `interface` is its name in the file. The writer should be buffered.
    ///
    /// # Errors
    /// The head of the file can't be written.
    pub fn new(inner: T, writer: W, interface: &str, clock: Clock) -> std::io::Result<Self> {
        Ok(Self {
            inner,
            file: Mutex::new(Some(CaptureFile::new(writer, interface)?)),
            clock,
            local_lid: AtomicU16::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// Says what our own LID is, for the packets' other end; 0 until then.
    pub fn set_local_lid(&self, lid: u16) {
        self.local_lid.store(lid, Ordering::Relaxed);
    }

    /// Datagrams that passed after the file had failed.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The writer's own.
    pub fn flush(&self) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_mut().map_or(Ok(()), CaptureFile::flush)
    }

    fn write(&self, datagram: &Datagram, direction: Direction) {
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = slot.as_mut() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // Read under the lock, so that times in the file never go back.
        let time = (self.clock)();
        let local_lid = self.local_lid.load(Ordering::Relaxed);
        if let Err(error) = file.write(&Record { datagram, direction, local_lid, time, comment: "" }) {
            tracing::warn!(%error, "the capture file can't be written; capturing has ended");
            *slot = None;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<T: Transport, W: Write + Send> Transport for Capture<T, W> {
    fn send(&self, datagram: &Datagram, timeout: Option<Duration>) -> Result<(), TransportError> {
        // Written first, or the answer could come before the request.
        self.write(datagram, Direction::Outbound);
        self.inner.send(datagram, timeout)
    }

    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError> {
        let received = self.inner.receive(timeout)?;
        if let Some(Received::Datagram(datagram)) = &received {
            self.write(datagram, Direction::Inbound);
        }
        Ok(received)
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn owns_only_lower_tid(&self) -> bool {
        self.inner.owns_only_lower_tid()
    }
}

#[cfg(test)]
pub(in crate::transport) mod tests;
