use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use mad::transport::{Address, Datagram, GlobalRoute};
use mad::types::{DirectedPath, Gid, PKey, PortNum, QKey, Qpn, ServiceLevel};
use mad::wire::smp::{NodeInfo, Smp};
use mad::wire::{Attribute, Mad, Method};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::super::backend::{Backend, Endpoint, Key, NodeId};
use super::super::fabric::EmulatedFabric;
use super::message::{Create, Header, Kind, MESSAGE_MAX, PortState};
use super::{Adapter, Event, KernelError, translate};
use crate::generate::{Options, Topology, generate};
use crate::world::{Config, World};

/// A tree of hosts H0 to H3.
fn fabric() -> EmulatedFabric {
    let fabric = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
    EmulatedFabric::new(World::new(&fabric, Config::instant()))
}

/// The kernel's end of an adapter's file: as there, each read and write is one message.
struct Kernel(File);

impl Kernel {
    fn read(&mut self) -> (Header, Vec<u8>) {
        let mut buffer = vec![0; MESSAGE_MAX];
        let len = self.0.read(&mut buffer).unwrap();
        let (header, payload) = Header::read_from_prefix(&buffer[..len]).unwrap();
        assert_eq!(header.len as usize, payload.len());
        (header, payload.to_vec())
    }

    fn write(&mut self, mut header: Header, payload: &[u8]) {
        header.len = payload.len() as u32;
        let _ = self.0.write(&[header.as_bytes(), payload].concat()).unwrap();
    }
}

fn adapter(name: &str, backend: &dyn Backend) -> Result<(Adapter, Kernel), KernelError> {
    let flags = SocketFlags::NONBLOCK;
    let (ours, theirs): (OwnedFd, OwnedFd) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let node = backend.find(name).unwrap();
    Adapter::on(ours.into(), node, backend).map(|adapter| (adapter, Kernel(theirs.into())))
}

#[test]
fn an_adapter_is_made_as_its_node_is_and_told_of_each_change_once() {
    let mut fabric = fabric();
    let (mut adapter, mut kernel) = adapter("H1", &fabric).unwrap();
    let (header, payload) = kernel.read();
    assert_eq!(header.kind, Kind::Create as u32);
    let create = Create::read_from_bytes(&payload).unwrap();
    let facts = fabric.device(adapter.node());
    assert_eq!((create.node_guid.get(), create.ports), (facts.node_guid.0, 1));
    assert_eq!(&create.description[..3], b"H1\0");

    adapter.refresh(&fabric).unwrap();
    let (header, payload) = kernel.read();
    assert_eq!((header.kind, header.port), (Kind::Port as u32, 1));
    let state = PortState::read_from_bytes(&payload).unwrap();
    let port = fabric.port(Endpoint { node: adapter.node(), port: PortNum(1) });
    assert_eq!((state.state, state.lid, state.reregister), (2, 0, 0), "Init");
    assert_eq!(state.guids[0].get(), port.gids[0].guid().0);
    assert_eq!((state.p_keys[0], state.p_keys[1]), (0xffff, 0));
    adapter.refresh(&fabric).unwrap();
    assert!(kernel.0.read(&mut [0; 8]).is_err(), "nothing has changed");

    let endpoint = Endpoint { node: adapter.node(), port: PortNum(1) };
    fabric.set_is_sm(endpoint, true, mad::types::Timestamp::ZERO);
    adapter.refresh(&fabric).unwrap();
    let state = PortState::read_from_bytes(&kernel.read().1).unwrap();
    assert_eq!(state.capability_mask & 2, 2, "IsSM");
}

#[test]
fn a_switch_is_no_adapter() {
    let fabric = fabric();
    let name = fabric.device(NodeId(0)).description;
    let switch = (0..).map(NodeId).find(|node| fabric.device(*node).ports == [PortNum::MANAGEMENT]).unwrap();
    let switch = fabric.device(switch).description;
    assert_ne!(name, switch);
    let refused = adapter(&switch, &fabric).map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("{switch}: adapters of the kernel have 1 to 8 ports")), "{refused}");
}

#[test]
fn what_the_kernel_does_becomes_events_and_rubbish_does_not() {
    let fabric = fabric();
    let (mut adapter, mut kernel) = adapter("H0", &fabric).unwrap();
    let node = adapter.node();
    let endpoint = Endpoint { node, port: PortNum(1) };
    kernel.write(Header::new(Kind::Port, 1), &[1, 2, 3]);
    kernel.write(Header::new(Kind::Packet, 9), &[0; 10]);
    kernel.write(Header { kind: 77, ..Header::new(Kind::Packet, 1) }, &[]);
    kernel.write(Header { source_qpn: 7, ..Header::new(Kind::Local, 1) }, &[0; 255]);
    // A directed-route SMP whose first step the kernel has counted.
    let path = DirectedPath::new(&[1, 2]).unwrap();
    let mut smp = Smp::directed(Method::GET, NodeInfo::ID, 0, &path);
    smp.header.hop_pointer = 1;
    let header = Header { slid: 0xffff, dlid: 0xffff, p_key: 0xffff, ..Header::new(Kind::Packet, 1) };
    kernel.write(header, smp.into_mad().as_bytes());
    let Some(Event::Mad(at, datagram)) = adapter.read(&fabric).unwrap() else { panic!("a MAD") };
    assert_eq!(at, endpoint);
    assert_eq!((datagram.mad.header.hop_pointer, datagram.address.lid), (0, 0xffff));
    // The same size, but from a queue pair of a user.
    let header = Header { source_qpn: 0x48, dest_qpn: 0xff_ffff, dlid: 0xc001, ..header };
    kernel.write(header, &[5; 256]);
    let Some(Event::Data(parcel)) = adapter.read(&fabric).unwrap() else { panic!("data") };
    assert_eq!((parcel.from, parcel.header.dlid, parcel.header.bytes), (endpoint, 0xc001, 256));
    kernel.write(Header { q_key: 5, slid: 3, dlid: 4, ..Header::new(Kind::BadQKey, 1) }, &[]);
    let Some(Event::Refused(_, packet, key)) = adapter.read(&fabric).unwrap() else { panic!("a refusal") };
    assert_eq!((packet.slid, packet.dlid, packet.qkey, key), (3, 4, QKey(5), Key::Q));
    let mut text = [0; 64];
    text[..6].copy_from_slice(b"name \n");
    kernel.write(Header::new(Kind::Description, 0), &text);
    assert!(matches!(adapter.read(&fabric), Ok(Some(Event::Description(text))) if text == "name"));
    assert!(adapter.read(&fabric).unwrap().is_none());
}

/// What comes out of one port's message goes into the other port's unchanged, route included.
#[test]
fn a_datagram_survives_both_translations() {
    let fabric = fabric();
    let node = fabric.find("H2").unwrap();
    let mut port = fabric.port(Endpoint { node, port: PortNum(1) });
    port.info.base_lid.set(8);
    port.info.set_lmc(2);
    port.p_keys[3] = PKey(0x8005);
    let own = port.gids[0];
    let mut mad = Mad::zeroed();
    mad.header.mgmt_class = 0x03;
    let route =
        GlobalRoute { gid: own, gid_index: 0, hop_limit: 7, traffic_class: 0x5a, flow_label: 0x9_8765 };
    let address = Address {
        lid: 0x21,
        qpn: Qpn(1),
        qkey: QKey::GSI,
        sl: ServiceLevel(3),
        path_bits: 2,
        pkey_index: 3,
        grh: Some(route),
    };
    let datagram = Datagram { address, mad };
    let message = translate::packet(1, &datagram, &port);
    let (mut header, payload) = Header::read_from_prefix(&message).unwrap();
    assert_eq!((header.slid, header.dlid, header.dest_qpn, header.p_key), (0x21, 10, 1, 0x8005));
    assert_eq!(header.grh[8..24], own.0.to_be_bytes());
    // As if it went back where it came from.
    std::mem::swap(&mut header.slid, &mut header.dlid);
    assert_eq!(translate::datagram(&header, payload, &port), Some(datagram));
    // Of another length, or to another kind of queue pair, it is data.
    assert_eq!(translate::datagram(&header, &payload[1..], &port), None);
    header.source_qpn = 2;
    assert_eq!(translate::datagram(&header, payload, &port), None);
    assert_eq!(PortState::new_zeroed().guids[0].get(), Gid(0).guid().0);
}
