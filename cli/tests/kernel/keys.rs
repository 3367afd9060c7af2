//! P_Keys and Q_Keys: a datagram that its queue pair does not accept is dropped and counted in PortInfo (specification volume 1,
//! 10.9.3 and 10.2.5).
//!
//! The datagrams are MADs of a program, sent with the adapter's second P_Key, or to IPoIB's queue pair, whose Q_Key is another
//! than that of QP1, by which the kernel sends them.

use std::time::Duration;

use mad::transport::umad::{OpenOptions, PortSelector, UmadTransport, devices, select};
use mad::transport::{Address, Datagram, Received, Transport};
use mad::types::{DirectedPath, PortNum, Qpn, ServiceLevel};
use mad::wire::smp::{PKeyTable, Smp};
use mad::wire::{Attribute, Mad, Method, MgmtClass};
use zerocopy::{FromZeros, IntoBytes};

use crate::agree::counter;
use crate::fabric::{Fabric, Host};
use crate::ipoib::queue_pair;
use crate::tools::{must, tell, wait_for};

/// A partition of the sender's, of which the receiver is no member.
const OTHER: u16 = 0x8005;

/// Each kind of refusal moves its counter by one and no other.
pub(crate) fn packets_with_wrong_keys_are_dropped(fabric: &Fabric) {
    let (from, to) = (&fabric.hosts[1], &fabric.hosts[4]);
    let transport = open(from);
    let held = set_p_keys(&transport, |keys| keys[1].set(OTHER));
    wait_for("the kernel has the second P_Key", || {
        let second = from.port("pkeys/1");
        if second == format!("{OTHER:#06x}") { Ok(()) } else { Err(second) }
    });
    let ipoib = queue_pair(to);
    let cases = [
        ("QP1, P_Key of another partition", 1, 1, [1, 0]),
        ("IPoIB, P_Key of another partition", ipoib, 1, [1, 0]),
        ("IPoIB, Q_Key of QP1", ipoib, 0, [0, 1]),
    ];
    for (what, qpn, pkey_index, counted) in cases {
        let before = violations(from, to);
        let gsi = Address::gsi(to.lid(), ServiceLevel(0));
        let address = Address { qpn: Qpn(qpn), pkey_index, ..gsi };
        let mut mad = Mad::new_zeroed();
        (mad.header.base_version, mad.header.mgmt_class) = (1, MgmtClass::PERF.0);
        (mad.header.class_version, mad.header.method) = (1, Method::GET.0);
        mad.header.attribute_id.set(1);
        transport.send(&Datagram { address, mad }, Some(Duration::from_millis(200))).expect("send");
        let expected = [before[0] + counted[0], before[1] + counted[1]];
        wait_for(what, || {
            let now = violations(from, to);
            if now == expected { Ok(()) } else { Err(format!("P_Keys, Q_Keys: {before:?}, now {now:?}")) }
        });
        let answer = transport.receive(Duration::from_secs(2)).expect("receive");
        assert!(matches!(answer, Some(Received::Returned { .. })), "{what} is not answered: {answer:?}");
    }
    set_p_keys(&transport, |keys| *keys = held);
    tell("packets with wrong keys are dropped");
}

/// Violations of P_Keys and of Q_Keys that a port has counted.
fn violations(from: &Host, of: &Host) -> [u64; 2] {
    let text = must(&format!("smpquery {} portinfo {} {}", from.options(), of.lid(), of.port_number));
    ["PkeyViolations:", "QkeyViolations:"].map(|name| counter(&text, name))
}

fn open(host: &Host) -> UmadTransport {
    let selector = PortSelector {
        device: Some(host.device.clone()),
        port: Some(PortNum(host.port_number)),
        ..PortSelector::default()
    };
    let selected = select(&devices().expect("devices"), &selector).expect("the port");
    UmadTransport::open(&selected, &OpenOptions::client()).expect("umad")
}

/// Changes the first block of the own port's P_Keys; returns what it was.
fn set_p_keys(
    transport: &UmadTransport,
    change: impl FnOnce(&mut [zerocopy::big_endian::U16; 32]),
) -> [zerocopy::big_endian::U16; 32] {
    let ask = |smp: Smp| {
        let datagram = Datagram { address: Address::DIRECTED, mad: smp.into_mad() };
        transport.send(&datagram, Some(Duration::from_secs(2))).expect("send");
        let answer = transport.receive(Duration::from_secs(5)).expect("receive");
        let Some(Received::Datagram(answer)) = answer else { panic!("no answer: {answer:?}") };
        PKeyTable::decode(&Smp::from_mad(answer.mad).data).expect("P_KeyTable")
    };
    let held = ask(Smp::directed(Method::GET, PKeyTable::ID, 0, &DirectedPath::LOCAL)).pkeys;
    let mut wanted = held;
    change(&mut wanted);
    let mut set = Smp::directed(Method::SET, PKeyTable::ID, 0, &DirectedPath::LOCAL);
    set.data[..64].copy_from_slice(wanted.as_bytes());
    assert_eq!(ask(set).pkeys, wanted);
    held
}
