//! The common MAD header (specification volume 1, 13.4.3): the first 24 of the 256 bytes of every management datagram.

use std::fmt;

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a management datagram.
pub const MAD_LEN: usize = 256;

/// A management class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MgmtClass(pub u8);

impl MgmtClass {
    /// Subnet management, routed by LID.
    pub const SUBN_LID: Self = Self(0x01);
    /// Subnet management, directed route.
    pub const SUBN_DR: Self = Self(0x81);
    /// Subnet administration.
    pub const SUBN_ADM: Self = Self(0x03);
    /// Performance management.
    pub const PERF: Self = Self(0x04);
}

impl fmt::Debug for MgmtClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MgmtClass(0x{:02x})", self.0)
    }
}

/// A method, the R bit included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method(pub u8);

impl Method {
    /// The response bit.
    pub const RESPONSE: u8 = 0x80;
    /// Get.
    pub const GET: Self = Self(0x01);
    /// Set.
    pub const SET: Self = Self(0x02);
    /// Send.
    pub const SEND: Self = Self(0x03);
    /// Trap.
    pub const TRAP: Self = Self(0x05);
    /// Report.
    pub const REPORT: Self = Self(0x06);
    /// TrapRepress.
    pub const TRAP_REPRESS: Self = Self(0x07);
    /// SubnAdmGetTable.
    pub const GET_TABLE: Self = Self(0x12);
    /// SubnAdmGetTraceTable.
    pub const GET_TRACE_TABLE: Self = Self(0x13);
    /// SubnAdmGetMulti.
    pub const GET_MULTI: Self = Self(0x14);
    /// SubnAdmDelete.
    pub const DELETE: Self = Self(0x15);
    /// GetResp.
    pub const GET_RESP: Self = Self(0x81);
    /// ReportResp.
    pub const REPORT_RESP: Self = Self(0x86);
    /// SubnAdmGetTableResp.
    pub const GET_TABLE_RESP: Self = Self(0x92);
    /// SubnAdmGetMultiResp.
    pub const GET_MULTI_RESP: Self = Self(0x94);
    /// SubnAdmDeleteResp.
    pub const DELETE_RESP: Self = Self(0x95);

    /// Whether the R bit is set, or the method is TrapRepress, which answers a Trap without it.
    pub const fn is_response(self) -> bool {
        self.0 & Self::RESPONSE != 0 || self.0 == Self::TRAP_REPRESS.0
    }

    /// The method that answers this one: GetResp for Set, TrapRepress for Trap, else the same with the R bit.
    pub const fn response(self) -> Self {
        match self.0 {
            0x02 => Self::GET_RESP,
            0x05 => Self::TRAP_REPRESS,
            other => Self(other | Self::RESPONSE),
        }
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method(0x{:02x})", self.0)
    }
}

/// The status field. Bit 15 is the direction bit of directed-route SMPs and no part of it here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(pub u16);

impl Status {
    /// No error.
    pub const OK: Self = Self(0);
    /// Busy: try again later.
    pub const BUSY: Self = Self(0x0001);
    /// The class or class version is not supported.
    pub const BAD_VERSION: Self = Self(0x0004);
    /// The method is not supported.
    pub const METHOD_NOT_SUPPORTED: Self = Self(0x0008);
    /// The combination of method and attribute is not supported.
    pub const METHOD_ATTRIBUTE_NOT_SUPPORTED: Self = Self(0x000c);
    /// A field of the attribute or its modifier has an invalid value.
    pub const INVALID_FIELD: Self = Self(0x001c);
    /// SA: not enough resources.
    pub const SA_NO_RESOURCES: Self = Self(0x0100);
    /// SA: invalid request.
    pub const SA_REQ_INVALID: Self = Self(0x0200);
    /// SA: no records.
    pub const SA_NO_RECORDS: Self = Self(0x0300);
    /// SA: too many records for a Get.
    pub const SA_TOO_MANY_RECORDS: Self = Self(0x0400);
    /// SA: the GID of the request is invalid.
    pub const SA_INVALID_GID: Self = Self(0x0500);
    /// SA: components are missing.
    pub const SA_INSUFFICIENT_COMPONENTS: Self = Self(0x0600);
    /// SA: request denied.
    pub const SA_REQ_DENIED: Self = Self(0x0700);

    /// Whether no error is reported.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({self})")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

/// The common header as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MadHeader {
    /// Always 1.
    pub base_version: u8,
    /// Management class.
    pub mgmt_class: u8,
    /// Version of the class: 1 for subnet management, 2 for subnet administration.
    pub class_version: u8,
    /// Method with the R bit.
    pub method: u8,
    /// Status; bit 15 is the direction bit of directed-route SMPs.
    pub status: U16,
    /// Class specific; hop pointer of directed-route SMPs.
    pub hop_pointer: u8,
    /// Class specific; hop count of directed-route SMPs.
    pub hop_count: u8,
    /// Transaction ID. The kernel's umad owns the upper 32 bits of what this host sends.
    pub transaction_id: U64,
    /// Attribute ID.
    pub attribute_id: U16,
    /// Reserved.
    pub reserved: U16,
    /// Attribute modifier.
    pub attribute_modifier: U32,
}
const _: () = assert!(size_of::<MadHeader>() == 24);

impl MadHeader {
    /// The method.
    pub const fn method(&self) -> Method {
        Method(self.method)
    }

    /// The management class.
    pub const fn mgmt_class(&self) -> MgmtClass {
        MgmtClass(self.mgmt_class)
    }

    /// The status without the direction bit.
    pub fn status(&self) -> Status {
        Status(self.status.get() & 0x7fff)
    }
}

/// One management datagram: the header and 232 bytes that its class defines.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Mad {
    /// The common header.
    pub header: MadHeader,
    /// What follows it, by class: see [`super::smp::Smp`] and the SA's header.
    pub body: [u8; MAD_LEN - 24],
}
const _: () = assert!(size_of::<Mad>() == MAD_LEN);

impl Mad {
    /// All bytes zero.
    pub const fn zeroed() -> Self {
        Self {
            header: MadHeader {
                base_version: 0,
                mgmt_class: 0,
                class_version: 0,
                method: 0,
                status: U16::ZERO,
                hop_pointer: 0,
                hop_count: 0,
                transaction_id: U64::ZERO,
                attribute_id: U16::ZERO,
                reserved: U16::ZERO,
                attribute_modifier: U32::ZERO,
            },
            body: [0; MAD_LEN - 24],
        }
    }

    /// The datagram at the head of `bytes`; `None` when fewer than 256 came.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_prefix(bytes).ok().map(|(mad, _)| mad)
    }

    /// The 256 bytes.
    pub fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Mad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.header, f)
    }
}
