use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::*;
use crate::transport::{Address, GlobalRoute, memory};
use crate::types::{DirectedPath, Gid, ServiceLevel};
use crate::wire::smp::Smp;
use crate::wire::{Mad, Method, MgmtClass};

/// A writer that tests can read, and make fail.
#[derive(Clone, Default)]
pub(in crate::transport) struct File {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl File {
    /// What was written so far.
    pub(in crate::transport) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}

impl Write for File {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        if self.room.is_some_and(|room| bytes.len() + data.len() > room) {
            return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
        }
        bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A millisecond later at each look.
pub(in crate::transport) fn clock() -> Clock {
    let looks = AtomicU32::new(0);
    Box::new(move || {
        let look = looks.fetch_add(1, Ordering::Relaxed);
        Duration::from_secs(1_700_000_000) + Duration::from_millis(look.into())
    })
}

fn directed(path: &[u8]) -> Datagram {
    let mut mad = Smp::directed(Method::GET, 0x0011, 0, &DirectedPath::new(path).unwrap()).into_mad();
    mad.header.transaction_id.set(0x1_0000_002a);
    Datagram { address: Address::DIRECTED, mad }
}

fn sa_get() -> Datagram {
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
    mad.header.class_version = 2;
    mad.header.method = Method::GET.0;
    mad.header.attribute_id.set(0x0035);
    let grh = GlobalRoute {
        gid: Gid(0xfe80_0000_0000_0000_0002_c903_0000_0001),
        gid_index: 0,
        hop_limit: 1,
        traffic_class: 0,
        flow_label: 0,
    };
    Datagram { address: Address { grh: Some(grh), ..Address::gsi(0x21, ServiceLevel(3)) }, mad }
}

/// Sends and receives a directed route SMP, a LID-routed one and an SA request.
fn some_traffic(file: File) {
    let (here, there) = memory::pair(8);
    let capture = Capture::new(here, file, "mlx5_0 port 1", clock()).unwrap();
    capture.set_local_lid(5);
    let request = directed(&[1, 3]);
    capture.send(&request, None).unwrap();
    let mut answer = Smp::from_mad(request.mad);
    answer.header.method = Method::GET_RESP.0;
    answer.set_returning();
    there.send(&Datagram { mad: answer.into_mad(), ..request }, None).unwrap();
    assert!(capture.receive(Duration::ZERO).unwrap().is_some());
    let lid_routed = Smp::lid_routed(Method::GET, 0x0015, 1).into_mad();
    capture.send(&Datagram { address: Address::smp(0x1234), mad: lid_routed }, None).unwrap();
    there.send(&sa_get(), None).unwrap();
    assert!(capture.receive(Duration::ZERO).unwrap().is_some());
    assert_eq!(capture.receive(Duration::ZERO).unwrap(), None);
    there.give_back(request, libc::ETIMEDOUT).unwrap();
    assert!(capture.receive(Duration::ZERO).unwrap().is_some(), "passed on, though on no wire");
    capture.flush().unwrap();
}

/// The Wireshark of the system reads it: Debian package tshark.
#[test]
fn tshark_dissects_directed_route_lid_routed_and_sa_datagrams() {
    let file = File::default();
    some_traffic(file.clone());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    std::fs::write(&path, file.take()).unwrap();
    let fields = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "infiniband.lrh.slid",
        "infiniband.lrh.dlid",
        "infiniband.lrh.vl",
        "infiniband.bth.destqp",
        "infiniband.deth.srcqp",
        "infiniband.mad.mgmtclass",
        "infiniband.mad.method",
        "infiniband.mad.attributeid",
        "infiniband.smpdirected.hopcount",
        "infiniband.smpdirected.initialpath",
        "infiniband.grh.sgid",
    ];
    let output = Command::new("tshark")
        .args(["-r", path.to_str().unwrap(), "-T", "fields", "-E", "separator=|"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark starts (Debian package tshark)");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = format!("000103{}", "00".repeat(61));
    let expected = [
        format!(
            "mlx5_0 port 1|0x00000002|65535|65535|0x0f|0x000000|0x00000000|0x81|0x01|0x0011|0x02|{path}|"
        ),
        format!(
            "mlx5_0 port 1|0x00000001|65535|65535|0x0f|0x000000|0x00000000|0x81|0x81|0x0011|0x02|{path}|"
        ),
        "mlx5_0 port 1|0x00000002|5|4660|0x0f|0x000000|0x00000000|0x01|0x01|0x0015|||".into(),
        "mlx5_0 port 1|0x00000001|33|5|0x00|0x000001|0x00000001|0x03|0x01|0x0035|||fe80::2:c903:0:1".into(),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_traffic() {
    let (here, there) = memory::pair(8);
    let file = File { room: Some(600), ..File::default() };
    let capture = Capture::new(here, file, "x", clock()).unwrap();
    for _ in 0..4 {
        capture.send(&directed(&[]), None).unwrap();
        assert!(there.receive(Duration::ZERO).unwrap().is_some());
    }
    assert_eq!(capture.lost(), 3);
}
