//! ServiceRecord (specification volume 1, 15.2.5.14): 176 bytes; a service that a port offers.

use zerocopy::big_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::types::{Gid, PKey};
use crate::wire::{Attribute, ids};

/// A registered service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ServiceRecord {
    /// ServiceID.
    pub service_id: U64,
    /// ServiceGID: the port that offers it.
    pub service_gid: U128,
    /// ServiceP_Key.
    pub service_pkey: U16,
    reserved: U16,
    /// ServiceLease in seconds; 0xFFFFFFFF for no end.
    pub service_lease: U32,
    /// ServiceKey: whoever knows it may change the record.
    pub service_key: [u8; 16],
    /// ServiceName, UTF-8, filled up with NUL.
    pub service_name: [u8; 64],
    /// ServiceData8.
    pub service_data8: [u8; 16],
    /// ServiceData16.
    pub service_data16: [U16; 8],
    /// ServiceData32.
    pub service_data32: [U32; 4],
    /// ServiceData64.
    pub service_data64: [U64; 2],
}
const _: () = assert!(size_of::<ServiceRecord>() == 176);

impl Attribute for ServiceRecord {
    const ID: u16 = ids::sa::SERVICE_RECORD;
}

static COMPONENTS: [Component; 37] = components([
    ("ServiceID", 64),
    ("ServiceGID", 128),
    ("ServiceP_Key", 16),
    ("", 16),
    ("ServiceLease", 32),
    ("ServiceKey", 128),
    ("ServiceName", 512),
    ("ServiceData8.1", 8),
    ("ServiceData8.2", 8),
    ("ServiceData8.3", 8),
    ("ServiceData8.4", 8),
    ("ServiceData8.5", 8),
    ("ServiceData8.6", 8),
    ("ServiceData8.7", 8),
    ("ServiceData8.8", 8),
    ("ServiceData8.9", 8),
    ("ServiceData8.10", 8),
    ("ServiceData8.11", 8),
    ("ServiceData8.12", 8),
    ("ServiceData8.13", 8),
    ("ServiceData8.14", 8),
    ("ServiceData8.15", 8),
    ("ServiceData8.16", 8),
    ("ServiceData16.1", 16),
    ("ServiceData16.2", 16),
    ("ServiceData16.3", 16),
    ("ServiceData16.4", 16),
    ("ServiceData16.5", 16),
    ("ServiceData16.6", 16),
    ("ServiceData16.7", 16),
    ("ServiceData16.8", 16),
    ("ServiceData32.1", 32),
    ("ServiceData32.2", 32),
    ("ServiceData32.3", 32),
    ("ServiceData32.4", 32),
    ("ServiceData64.1", 64),
    ("ServiceData64.2", 64),
]);
const _: () = assert!(bits_of(&COMPONENTS) == 8 * size_of::<ServiceRecord>());

impl Record for ServiceRecord {
    const COMPONENTS: &'static [Component] = &COMPONENTS;
}

impl ServiceRecord {
    /// ServiceLease without end.
    pub const LEASE_FOREVER: u32 = u32::MAX;

    /// Component: ServiceID.
    pub const SERVICE_ID: u64 = 1 << 0;
    /// Component: ServiceGID.
    pub const SERVICE_GID: u64 = 1 << 1;
    /// Component: ServiceP_Key.
    pub const SERVICE_PKEY: u64 = 1 << 2;
    /// Component: ServiceLease.
    pub const SERVICE_LEASE: u64 = 1 << 4;
    /// Component: ServiceKey.
    pub const SERVICE_KEY: u64 = 1 << 5;
    /// Component: ServiceName.
    pub const SERVICE_NAME: u64 = 1 << 6;

    /// ServiceGID.
    pub const fn service_gid(&self) -> Gid {
        Gid(self.service_gid.get())
    }

    /// ServiceP_Key.
    pub const fn service_pkey(&self) -> PKey {
        PKey(self.service_pkey.get())
    }

    /// The name's bytes up to the first NUL.
    pub fn name_bytes(&self) -> &[u8] {
        let len = self.service_name.iter().position(|b| *b == 0).unwrap_or(self.service_name.len());
        &self.service_name[..len]
    }
}
