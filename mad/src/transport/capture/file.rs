//! A pcapng file of management datagrams: link type 197 (ERF) with InfiniBand records, times in nanoseconds.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use crate::transport::Datagram;
use crate::transport::frame::{self, Direction};

/// Packet flags of pcapng: which way it went.
pub(in crate::transport) const INBOUND: u32 = 1;
pub(in crate::transport) const OUTBOUND: u32 = 2;

/// A datagram with what the file tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The datagram, its address that of the other end.
    pub datagram: &'a Datagram,
    /// Which way it went.
    pub direction: Direction,
    /// Our own LID; of no matter for directed routes.
    pub local_lid: u16,
    /// Since the Unix epoch, or since a simulation began.
    pub time: Duration,
    /// What Wireshark shows as the packet's comment; empty for none.
    pub comment: &'a str,
}

/// The file. The writer should be buffered.
pub struct CaptureFile<W: Write>(PcapNgWriter<W>);

impl<W: Write> CaptureFile<W> {
    /// Begins a file; `interface` is the interface's name in it.
    ///
    /// # Errors
    /// The writer's own.
    pub fn new(writer: W, interface: &str) -> io::Result<Self> {
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
        Ok(Self(writer))
    }

    /// Writes one datagram.
    ///
    /// # Errors
    /// The writer's own.
    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let packet = frame::encode(record.datagram, record.direction, record.local_lid, record.time);
        let flags = if record.direction == Direction::Inbound { INBOUND } else { OUTBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(flags)];
        if !record.comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(record.comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: record.time,
            original_len: packet.len() as u32,
            data: Cow::Owned(packet),
            options,
        };
        self.0.write_block(&block.into_block()).map_err(to_io).map(drop)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The writer's own.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

pub(in crate::transport) fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
