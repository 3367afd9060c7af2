//! The RMPP header (specification volume 1, 13.6.2.1): 12 bytes after the common header of the classes that send more
//! than one datagram's worth. The protocol itself is in [`crate::rmpp`].

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// RMPPType.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmppType {
    /// Not RMPP: the datagram stands alone.
    None,
    /// A segment.
    Data,
    /// Acknowledges segments and moves the window.
    Ack,
    /// Ends the transfer for want of resources.
    Stop,
    /// Ends the transfer after an error.
    Abort,
}

impl RmppType {
    /// From the wire; `None` for an undefined value.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::None),
            1 => Some(Self::Data),
            2 => Some(Self::Ack),
            3 => Some(Self::Stop),
            4 => Some(Self::Abort),
            _ => None,
        }
    }

    /// The wire's value.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Data => 1,
            Self::Ack => 2,
            Self::Stop => 3,
            Self::Abort => 4,
        }
    }
}

/// RMPPStatus: why a STOP or an ABORT ended the transfer (13.6.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RmppStatus(pub u8);

impl RmppStatus {
    /// Normal.
    pub const OK: Self = Self(0);
    /// STOP: resources exhausted.
    pub const RESOURCES_EXHAUSTED: Self = Self(1);
    /// ABORT: the transfer took longer than the total time.
    pub const TIME_TOO_LONG: Self = Self(118);
    /// ABORT: LastFlag and PayloadLength don't fit together.
    pub const INCONSISTENT_LAST_AND_LENGTH: Self = Self(119);
    /// ABORT: FirstFlag and SegmentNumber don't fit together.
    pub const INCONSISTENT_FIRST_AND_SEGMENT: Self = Self(120);
    /// ABORT: bad RMPPType.
    pub const BAD_TYPE: Self = Self(121);
    /// ABORT: NewWindowLast is too small.
    pub const WINDOW_TOO_SMALL: Self = Self(122);
    /// ABORT: SegmentNumber is too big.
    pub const SEGMENT_TOO_BIG: Self = Self(123);
    /// ABORT: illegal status.
    pub const ILLEGAL_STATUS: Self = Self(124);
    /// ABORT: unsupported version.
    pub const UNSUPPORTED_VERSION: Self = Self(125);
    /// ABORT: too many retries.
    pub const TOO_MANY_RETRIES: Self = Self(126);
    /// ABORT: unspecified.
    pub const UNSPECIFIED: Self = Self(127);

    /// Whether a STOP may carry this status.
    pub const fn is_stop(self) -> bool {
        self.0 == 1
    }

    /// Whether an ABORT may carry this status: 118 to 127, and 128 to 191 which are the class's own.
    pub const fn is_abort(self) -> bool {
        self.0 >= 118 && self.0 <= 191
    }
}

/// The header as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RmppHeader {
    /// RMPPVersion: 1; 0 where the class doesn't use RMPP for the datagram.
    pub version: u8,
    /// RMPPType.
    pub rmpp_type: u8,
    response_time_and_flags: u8,
    /// RMPPStatus.
    pub status: u8,
    /// Data1: SegmentNumber of DATA and ACK, from 1; reserved in STOP and ABORT.
    pub data1: U32,
    /// Data2: PayloadLength of DATA, NewWindowLast of ACK; reserved in STOP and ABORT.
    pub data2: U32,
}
const _: () = assert!(size_of::<RmppHeader>() == 12);

impl RmppHeader {
    /// The supported version.
    pub const VERSION: u8 = 1;
    /// RMPPFlags: the datagram is part of a transfer.
    pub const FLAG_ACTIVE: u8 = 1;
    /// RMPPFlags: first segment.
    pub const FLAG_FIRST: u8 = 2;
    /// RMPPFlags: last segment.
    pub const FLAG_LAST: u8 = 4;
    /// RRespTime: no value given.
    pub const NO_RESPONSE_TIME: u8 = 31;

    bits! {
        /// RRespTime: the receiver answers within 4.096 µs · 2^n; 31 for no value.
        response_time, set_response_time: response_time_and_flags[7:3];
        /// RMPPFlags: Active 1, First 2, Last 4.
        flags, set_flags: response_time_and_flags[2:0];
    }

    /// A header of the current version with the Active flag.
    pub fn new(rmpp_type: RmppType, flags: u8, status: RmppStatus, data1: u32, data2: u32) -> Self {
        let mut header = Self {
            version: Self::VERSION,
            rmpp_type: rmpp_type.to_wire(),
            response_time_and_flags: 0,
            status: status.0,
            data1: U32::new(data1),
            data2: U32::new(data2),
        };
        header.set_response_time(Self::NO_RESPONSE_TIME);
        header.set_flags(flags | Self::FLAG_ACTIVE);
        header
    }

    /// RMPPType; `None` for an undefined value.
    pub const fn rmpp_type(&self) -> Option<RmppType> {
        RmppType::from_wire(self.rmpp_type)
    }

    /// RMPPStatus.
    pub const fn status(&self) -> RmppStatus {
        RmppStatus(self.status)
    }

    /// Whether the datagram belongs to an RMPP transfer.
    pub const fn is_active(&self) -> bool {
        self.flags() & Self::FLAG_ACTIVE != 0
    }

    /// Whether the First flag is set.
    pub const fn is_first(&self) -> bool {
        self.flags() & Self::FLAG_FIRST != 0
    }

    /// Whether the Last flag is set.
    pub const fn is_last(&self) -> bool {
        self.flags() & Self::FLAG_LAST != 0
    }

    /// SegmentNumber (DATA, ACK).
    pub const fn segment_number(&self) -> u32 {
        self.data1.get()
    }

    /// PayloadLength (DATA): bytes after the RMPP header in all segments together (first segment, 0 for unknown) or in
    /// this one (last segment).
    pub const fn payload_length(&self) -> u32 {
        self.data2.get()
    }

    /// NewWindowLast (ACK).
    pub const fn new_window_last(&self) -> u32 {
        self.data2.get()
    }
}
