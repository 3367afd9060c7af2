//! What libibverbs adds to `rsm devices`: a device's limits, and the MTU of its ports.

use mad::types::PortNum;
use mad::verbs::{DeviceAttributes, Listing, VerbsPort};
use serde::Serialize;

use super::devices::Lines;

/// The answers for all devices.
pub(super) struct Verbs(Listing);

impl Verbs {
    pub(super) fn ask() -> Self {
        Self(mad::verbs::devices())
    }

    /// What is known of a device by its name.
    pub(super) fn of(&self, name: &str) -> Answer<'_> {
        match self.0.devices.iter().find(|device| device.name == name) {
            Some(device) => match &device.attributes {
                Ok(attributes) => Answer::Attributes(attributes),
                Err(error) => Answer::Unknown { unknown: error },
            },
            None => Answer::Unknown {
                unknown: self.0.why_none.as_deref().unwrap_or("libibverbs has no driver for it"),
            },
        }
    }
}

/// A device's attributes, or why they are not known.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer<'a> {
    Attributes(&'a DeviceAttributes),
    Unknown { unknown: &'a str },
}

impl Answer<'_> {
    pub(super) fn describe(&self, lines: &mut Lines<'_>) {
        let limits = match self {
            Self::Attributes(limits) => limits,
            Self::Unknown { unknown } => return lines.fact("Verbs", Some(unknown)),
        };
        lines.fact("Vendor ID", Some(&format!("{:#06x}", limits.vendor_id)));
        lines.fact("Vendor part ID", Some(&limits.vendor_part_id));
        lines.fact("Largest memory region", Some(&format!("{:#x}", limits.max_mr_size)));
        for (name, limit) in [
            ("Memory regions", limits.max_mr),
            ("Protection domains", limits.max_pd),
            ("Queue pairs", limits.max_qp),
            ("Work requests in a queue", limits.max_qp_wr),
            ("Scatter entries in a request", limits.max_sge),
            ("Shared receive queues", limits.max_srq),
            ("Completion queues", limits.max_cq),
            ("Entries in a completion queue", limits.max_cqe),
            ("Address handles", limits.max_ah),
            ("Outstanding RDMA reads", limits.max_qp_rd_atom),
            ("Multicast groups", limits.max_mcast_grp),
            ("Queue pairs in a multicast group", limits.max_mcast_qp_attach),
            ("P_Keys", i32::from(limits.max_pkeys)),
        ] {
            lines.fact(name, Some(&limit));
        }
    }

    pub(super) fn describe_port(&self, lines: &mut Lines<'_>, number: PortNum) {
        let Self::Attributes(attributes) = self else { return };
        match attributes.ports.get(usize::from(number.0).wrapping_sub(1)) {
            Some(Ok(VerbsPort {
                max_mtu,
                active_mtu,
                max_message_size,
                gid_table_len,
                pkey_table_len,
                ..
            })) => {
                lines.fact("Largest MTU", max_mtu.as_ref());
                lines.fact("Active MTU", active_mtu.as_ref());
                lines.fact("Largest message", Some(&format!("{max_message_size:#x}")));
                lines.fact("GID table length", Some(gid_table_len));
                lines.fact("P_Key table length", Some(pkey_table_len));
            }
            Some(Err(error)) => lines.fact("Verbs", Some(error)),
            None => {}
        }
    }
}
