//! Writes every datagram that passes a transport to a pcapng file, which Wireshark and [`super::replay`] read.
//!
//! Link type 197 (ERF) with InfiniBand records, each marked as inbound or outbound, times in nanoseconds.
//! Requests that a device gives back are on no wire and in no capture.

use std::borrow::Cow;
use std::io::Write;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use super::frame::{self, Direction};
use super::{Datagram, Received, Transport, TransportError};

/// Packet flags of pcapng: which way it went.
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;

/// Time since the Unix epoch, for the packets' time stamps.
pub type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// A transport that writes down what passes. An error of the file ends the writing, never the traffic.
pub struct Capture<T, W: Write> {
    inner: T,
    writer: Mutex<Option<PcapNgWriter<W>>>,
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
        let mut writer = PcapNgWriter::new(writer).map_err(to_io)?;
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::ERF,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
                // Powers of ten: nanoseconds.
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_block(&description.into_block()).map_err(to_io)?;
        Ok(Self {
            inner,
            writer: Mutex::new(Some(writer)),
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
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.as_mut().map_or(Ok(()), |writer| writer.get_mut().flush())
    }

    fn write(&self, datagram: &Datagram, direction: Direction) {
        let flags = if direction == Direction::Inbound { INBOUND } else { OUTBOUND };
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = slot.as_mut() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // Read under the lock, so that times in the file never go back.
        let time = (self.clock)();
        let packet = frame::encode(datagram, direction, self.local_lid.load(Ordering::Relaxed), time);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: time,
            original_len: packet.len() as u32,
            data: Cow::Owned(packet),
            options: vec![EnhancedPacketOption::Flags(flags)],
        };
        if let Err(error) = writer.write_block(&block.into_block()) {
            tracing::warn!(%error, "the capture file can't be written; capturing has ended");
            *slot = None;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) fn to_io(error: PcapError) -> std::io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => std::io::Error::new(std::io::ErrorKind::InvalidData, other),
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
