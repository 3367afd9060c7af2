//! The Notice attribute as the SA reports it (specification volume 1, 13.4.8.2): with the issuer's GID, 80 bytes.

use zerocopy::big_endian::U128;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::Gid;
use crate::wire::smp::Notice;
use crate::wire::{Attribute, ids};

/// A notice and the GID of its issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Report {
    /// The notice.
    pub notice: Notice,
    /// IssuerGID.
    pub issuer_gid: U128,
}
const _: () = assert!(size_of::<Report>() == 80);

impl Attribute for Report {
    const ID: u16 = ids::sa::NOTICE;
}

impl Report {
    /// A notice issued by the port with this GID.
    pub const fn new(notice: Notice, issuer: Gid) -> Self {
        Self { notice, issuer_gid: U128::new(issuer.0) }
    }

    /// IssuerGID.
    pub const fn issuer_gid(&self) -> Gid {
        Gid(self.issuer_gid.get())
    }
}
