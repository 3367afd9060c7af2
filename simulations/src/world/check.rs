//! Whether the fabric is right, judged from the simulated devices themselves and not from what any subnet manager believes.

use std::collections::BTreeMap;

use mad::types::{Lid, PortState};

use super::{End, World};

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A port whose link is up is not Active.
    NotActive(End, PortState),
    /// An end port whose link is up has no LID.
    NoLid(End),
    /// Two end ports have a LID in common.
    SharedLid(Lid, End, End),
    /// The two ends of a link disagree on the MTU.
    MtuMismatch(End, End),
    /// A packet from this end port to that LID is lost: dropped at the switch or port, or going round.
    Unreachable {
        /// Sender.
        from: End,
        /// The LID.
        to: Lid,
        /// Where the packet was seen last.
        lost_at: End,
    },
}

impl World {
    /// Ports, LIDs and links: every port with a link Active, every such end port with a LID of its own, both ends of a link
    /// with one MTU. Linear in the ports.
    pub fn check_ports(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut holder: BTreeMap<u16, End> = BTreeMap::new();
        for (node, device) in self.devices.iter().enumerate().filter(|(_, d)| !d.dead) {
            for (number, port) in device.ports.iter().enumerate() {
                let end = End::new(node as u32, number as u8);
                let is_end_port = device.end_ports().contains(&end.port.0);
                if end.port.0 != 0 && port.is_up() && port.state() != PortState::Active {
                    findings.push(Finding::NotActive(end, port.state()));
                }
                if !is_end_port || !port.is_up() {
                    continue;
                }
                let Some(base) = port.info.lid() else {
                    findings.push(Finding::NoLid(end));
                    continue;
                };
                for lid in base.get()..base.get().saturating_add(1 << port.info.lmc()) {
                    if let (Some(other), Some(lid)) = (holder.insert(lid, end), Lid::new(lid)) {
                        findings.push(Finding::SharedLid(lid, other, end));
                    }
                }
            }
        }
        let mtu = |end: End| self.devices[end.node as usize].ports[end.port.index()].info.neighbor_mtu_raw();
        for (a, b) in self.cables() {
            let up = self.devices[a.node as usize].ports[a.port.index()].is_up();
            if up && mtu(a) != mtu(b) {
                findings.push(Finding::MtuMismatch(a, b));
            }
        }
        findings
    }
}
