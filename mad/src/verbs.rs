//! What libibverbs says of the host's devices beyond sysfs: limits, and the MTU of each port. Cargo feature
//! `verbs`; building it needs the packages `libibverbs-dev`, `librdmacm-dev`, `pkg-config`, `libclang1-14` and
//! `libclang-common-14-dev`.
//!
//! One safe function over a few calls; each device is opened for the time of the question.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::NonNull;

use rdma_sys::{
    ___ibv_query_port, ibv_close_device, ibv_context, ibv_device, ibv_device_attr, ibv_free_device_list,
    ibv_get_device_guid, ibv_get_device_list, ibv_get_device_name, ibv_open_device, ibv_port_attr,
    ibv_query_device,
};
use serde::{Serialize, Serializer};

use crate::types::{Guid, Lid, Mtu, PortNum, PortPhysState, PortState};

/// The devices that libibverbs finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// In libibverbs' order.
    pub devices: Vec<VerbsDevice>,
    /// Why there is none, where that is known.
    pub why_none: Option<String>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerbsDevice {
    /// Name, as in sysfs.
    pub name: String,
    /// Node GUID.
    pub node_guid: Guid,
    /// What it says of itself; the text says why it could not be asked.
    pub attributes: Result<DeviceAttributes, String>,
}

/// Limits and ports of a device. Numbers are what the device allows at most, not what is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceAttributes {
    /// Firmware version.
    pub firmware: String,
    /// Vendor ID (IEEE OUI).
    pub vendor_id: u32,
    /// The vendor's number of the part.
    pub vendor_part_id: u32,
    /// Hardware version.
    pub hardware_version: u32,
    /// Bytes in one memory region.
    pub max_mr_size: u64,
    /// Queue pairs.
    pub max_qp: i32,
    /// Work requests in a queue.
    pub max_qp_wr: i32,
    /// Scatter/gather entries in a work request.
    pub max_sge: i32,
    /// Completion queues.
    pub max_cq: i32,
    /// Entries in a completion queue.
    pub max_cqe: i32,
    /// Memory regions.
    pub max_mr: i32,
    /// Protection domains.
    pub max_pd: i32,
    /// Shared receive queues.
    pub max_srq: i32,
    /// Address handles.
    pub max_ah: i32,
    /// Multicast groups.
    pub max_mcast_grp: i32,
    /// Queue pairs in one multicast group.
    pub max_mcast_qp_attach: i32,
    /// Outstanding RDMA reads and atomics of a queue pair.
    pub max_qp_rd_atom: i32,
    /// Entries of a port's P_Key table.
    pub max_pkeys: u16,
    /// Ports by number, from 1; the text says why one could not be asked.
    #[serde(serialize_with = "ports_or_errors")]
    pub ports: Vec<Result<VerbsPort, String>>,
}

/// A port as its fields, one that could not be asked as `{"error": TEXT}`.
fn ports_or_errors<S: Serializer>(
    ports: &[Result<VerbsPort, String>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Entry<'a> {
        Port(&'a VerbsPort),
        Error { error: &'a str },
    }
    serializer.collect_seq(ports.iter().map(|port| match port {
        Ok(port) => Entry::Port(port),
        Err(error) => Entry::Error { error },
    }))
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerbsPort {
    /// Number.
    pub number: PortNum,
    /// Logical state; `None` for one that InfiniBand does not define.
    pub state: Option<PortState>,
    /// Physical state.
    pub phys_state: Option<PortPhysState>,
    /// Largest MTU in bytes.
    pub max_mtu: Option<u16>,
    /// MTU in use, in bytes.
    pub active_mtu: Option<u16>,
    /// Base LID.
    pub lid: Option<Lid>,
    /// LID of the subnet manager.
    pub sm_lid: Option<Lid>,
    /// Bytes in one message.
    pub max_message_size: u32,
    /// Entries of its GID table.
    pub gid_table_len: i32,
    /// Entries of its P_Key table.
    pub pkey_table_len: u16,
}

/// All devices. Where libibverbs finds none the list is empty and says why.
pub fn devices() -> Listing {
    let mut count: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    let list = unsafe { ibv_get_device_list(&raw mut count) };
    let Some(list) = NonNull::new(list) else {
        // The library returns no list, rather than an empty one, when the kernel has no RDMA at all.
        let error = io::Error::last_os_error();
        let why = match error.raw_os_error() {
            Some(libc::ENOSYS) => "the kernel has no RDMA support loaded (modprobe ib_uverbs)".into(),
            _ => error.to_string(),
        };
        return Listing { devices: Vec::new(), why_none: Some(why) };
    };
    let devices: Vec<VerbsDevice> = (0..usize::try_from(count).unwrap_or(0))
        // SAFETY: the library's list has `count` entries, all valid until it is freed below.
        .map(|index| describe(unsafe { *list.as_ptr().add(index) }))
        .collect();
    // SAFETY: the list came from the library, is freed once, and nothing that was made from it refers to it.
    unsafe { ibv_free_device_list(list.as_ptr()) };
    let why_none = devices.is_empty().then(|| "the kernel has no RDMA device with a verbs driver".into());
    Listing { devices, why_none }
}

/// `device` must be an entry of a list that has not been freed.
fn describe(device: *mut ibv_device) -> VerbsDevice {
    // SAFETY: the device is valid (see above); its name is a NUL-terminated string inside it.
    let name = unsafe { CStr::from_ptr(ibv_get_device_name(device)) }.to_string_lossy().into_owned();
    // SAFETY: as before.
    let node_guid = Guid(u64::from_be(unsafe { ibv_get_device_guid(device) }));
    VerbsDevice {
        name,
        node_guid,
        attributes: Context::open(device).and_then(|context| context.attributes()),
    }
}

/// An open device, closed at the end.
struct Context(NonNull<ibv_context>);

impl Context {
    fn open(device: *mut ibv_device) -> Result<Self, String> {
        // SAFETY: the device is valid, as the caller of `describe` promises.
        let context = unsafe { ibv_open_device(device) };
        NonNull::new(context).map(Self).ok_or_else(|| format!("open: {}", io::Error::last_os_error()))
    }

    fn attributes(&self) -> Result<DeviceAttributes, String> {
        // SAFETY: the structure is integers and characters, for which zero is a value.
        let mut raw: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the pointer is to a live structure.
        check("query device", unsafe { ibv_query_device(self.0.as_ptr(), &raw mut raw) })?;
        let firmware: Vec<u8> = raw.fw_ver.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
        Ok(DeviceAttributes {
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            vendor_id: raw.vendor_id,
            vendor_part_id: raw.vendor_part_id,
            hardware_version: raw.hw_ver,
            max_mr_size: raw.max_mr_size,
            max_qp: raw.max_qp,
            max_qp_wr: raw.max_qp_wr,
            max_sge: raw.max_sge,
            max_cq: raw.max_cq,
            max_cqe: raw.max_cqe,
            max_mr: raw.max_mr,
            max_pd: raw.max_pd,
            max_srq: raw.max_srq,
            max_ah: raw.max_ah,
            max_mcast_grp: raw.max_mcast_grp,
            max_mcast_qp_attach: raw.max_mcast_qp_attach,
            max_qp_rd_atom: raw.max_qp_rd_atom,
            max_pkeys: raw.max_pkeys,
            ports: (1..=raw.phys_port_cnt).map(|number| self.port(number)).collect(),
        })
    }

    fn port(&self, number: u8) -> Result<VerbsPort, String> {
        // SAFETY: the structure is integers, for which zero is a value; the call's older form leaves its end
        // untouched.
        let mut raw: ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the pointer is to a live structure.
        check("query port", unsafe { ___ibv_query_port(self.0.as_ptr(), number, &raw mut raw) })?;
        let mtu = |code: u32| Mtu::from_wire(u8::try_from(code).ok()?).map(|mtu| mtu.bytes() as u16);
        Ok(VerbsPort {
            number: PortNum(number),
            state: u8::try_from(raw.state).ok().and_then(PortState::from_wire),
            phys_state: PortPhysState::from_wire(raw.phys_state),
            max_mtu: mtu(raw.max_mtu),
            active_mtu: mtu(raw.active_mtu),
            lid: Lid::new(raw.lid),
            sm_lid: Lid::new(raw.sm_lid),
            max_message_size: raw.max_msg_sz,
            gid_table_len: raw.gid_tbl_len,
            pkey_table_len: raw.pkey_tbl_len,
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is open, is closed once, and nothing refers to it any more.
        unsafe { ibv_close_device(self.0.as_ptr()) };
    }
}

/// Verbs calls return an error number.
fn check(what: &str, result: c_int) -> Result<(), String> {
    match result {
        0 => Ok(()),
        error => Err(format!("{what}: {}", io::Error::from_raw_os_error(error.abs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a host without RDMA there is a reason, on one with it there are devices; never an empty answer.
    #[test]
    fn no_devices_come_with_a_reason() {
        let listing = devices();
        assert_eq!(listing.devices.is_empty(), listing.why_none.is_some());
        if !std::path::Path::new("/sys/class/infiniband").exists() {
            assert_eq!(
                listing.why_none.as_deref(),
                Some("the kernel has no RDMA support loaded (modprobe ib_uverbs)")
            );
        }
    }
}
