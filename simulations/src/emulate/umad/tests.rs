use mad::transport::{Address, Datagram};
use mad::types::{PortNum, ServiceLevel, Timestamp};
use mad::wire::{Mad, Method, MgmtClass, Status};
use rsm_preload_protocol::Frame;
use rsm_preload_protocol::umad::{HEADER_LEN, Header, OLD_HEADER_LEN, RegisterAgent2, USER_RMPP};
use rustix::io::Errno;
use std::time::Duration;
use zerocopy::IntoBytes;

use super::*;
use crate::emulate::backend::{Endpoint, NodeId};

const PORT_1: Endpoint = Endpoint { node: NodeId(0), port: PortNum(1) };
const PORT_2: Endpoint = Endpoint { node: NodeId(0), port: PortNum(2) };

fn ms(n: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(n))
}

pub(super) fn registration(class: MgmtClass, methods: &[Method]) -> Registration {
    let smp = class == MgmtClass::SUBN_LID || class == MgmtClass::SUBN_DR;
    Registration {
        qpn: u32::from(!smp),
        mgmt_class: class.0,
        class_version: if class == MgmtClass::SUBN_ADM { 2 } else { 1 },
        oui: [0; 3],
        methods: methods.iter().fold(0, |mask, m| mask | 1 << m.0),
        rmpp_version: 0,
        user_rmpp: false,
    }
}

pub(super) fn mad(class: MgmtClass, method: Method, tid: u64) -> Mad {
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = class.0;
    mad.header.class_version = if class == MgmtClass::SUBN_ADM { 2 } else { 1 };
    mad.header.method = method.0;
    mad.header.transaction_id.set(tid);
    mad
}

pub(super) fn written(agent: u32, timeout_ms: u32, retries: u32, header_len: usize, data: &[u8]) -> Vec<u8> {
    let mut header = Header::zeroed();
    header.id.set(agent);
    header.timeout_ms.set(timeout_ms);
    header.retries.set(retries);
    header.lid.set(5);
    header.qpn.set(1);
    let mut bytes = header.as_bytes()[..header_len].to_vec();
    bytes.extend_from_slice(data);
    bytes
}

/// The packet as a read would give it: umad header and message.
pub(super) fn read(files: &mut Files, id: FileId) -> Option<(Header, Vec<u8>)> {
    let header_len = if files.has_pkey_index(id) { HEADER_LEN } else { OLD_HEADER_LEN };
    let packet = files.pop(id)?;
    let bytes = &packet[Frame::LEN..];
    Some((Header::decode(bytes, header_len).unwrap(), bytes[header_len..].to_vec()))
}

fn from_lid(lid: u16, mad: Mad) -> Datagram {
    Datagram { address: Address::gsi(lid, ServiceLevel(0)), mad }
}

#[test]
fn headers_grow_with_enable_pkey_which_must_come_first() {
    let mut files = Files::default();
    let (old, new) = (files.open(PORT_1), files.open(PORT_1));
    files.enable_pkey(new).unwrap();
    for (id, class) in [(old, MgmtClass::PERF), (new, MgmtClass::SUBN_ADM)] {
        files.register(id, registration(class, &[Method::GET]), false).unwrap();
        assert_eq!(files.enable_pkey(id), Err(Errno::INVAL), "after the first agent it is too late");
        let mut request = from_lid(7, mad(class, Method::GET, 9));
        request.address.pkey_index = 3;
        files.receive(PORT_1, &request, ms(0));
        let (header, data) = read(&mut files, id).unwrap();
        assert_eq!(data, request.mad.bytes());
        assert_eq!((header.lid.get(), header.id.get(), header.status.get()), (7, 0, 0));
        let header_len = if id == new { HEADER_LEN } else { OLD_HEADER_LEN };
        assert_eq!(header.length.get() as usize, header_len + 256);
        assert_eq!(header.pkey_index.get(), if id == new { 3 } else { 0 });
    }
}

#[test]
fn the_second_ioctl_includes_enable_pkey_and_offers_its_flags() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    let mut request: RegisterAgent2 = zerocopy::FromZeros::new_zeroed();
    request.flags.set(0x80);
    assert_eq!(Registration::from_v2(&mut request), Err(Errno::INVAL));
    assert_eq!(request.flags.get(), USER_RMPP);
    request.qpn.set(1);
    request.mgmt_class = MgmtClass::SUBN_ADM.0;
    request.mgmt_class_version = 2;
    request.rmpp_version = 1;
    request.oui.set(0x0100_0000);
    assert_eq!(Registration::from_v2(&mut request), Err(Errno::INVAL), "an OUI has 24 bits");
    request.oui.set(0);
    let registration = Registration::from_v2(&mut request).unwrap();
    assert!(registration.user_rmpp);
    files.register(id, registration, true).unwrap();
    assert!(files.has_pkey_index(id));
}

#[test]
fn registrations_that_the_kernel_refuses_are_refused() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    let good = registration(MgmtClass::SUBN_ADM, &[Method::GET]);
    for (what, bad) in [
        ("queue pair 2", Registration { qpn: 2, ..good }),
        ("RMPP version 2", Registration { rmpp_version: 2, ..good }),
        ("SMPs on queue pair 1", Registration { qpn: 1, ..registration(MgmtClass::SUBN_DR, &[]) }),
        ("SA on queue pair 0", Registration { qpn: 0, ..good }),
        ("class 80", Registration { mgmt_class: 80, ..good }),
        ("class version", Registration { class_version: 0x83, ..good }),
        ("vendor class without OUI", Registration { mgmt_class: 0x30, ..good }),
        ("RMPP of a class without", Registration { rmpp_version: 1, ..registration(MgmtClass::PERF, &[]) }),
    ] {
        assert_eq!(files.register(id, bad, false), Err(Errno::INVAL), "{what}");
    }
    assert_eq!(files.register(id, good, false), Ok(0));
    let other = files.open(PORT_1);
    assert_eq!(files.register(other, good, false), Err(Errno::INVAL), "the method is taken on this port");
    let elsewhere = files.open(PORT_2);
    assert_eq!(files.register(elsewhere, good, false), Ok(0), "another port is another matter");
    for number in 1..32 {
        assert_eq!(files.register(id, registration(MgmtClass(0), &[]), false).unwrap_or(99), number);
    }
    let one_more = Registration { qpn: 1, ..registration(MgmtClass(0), &[]) };
    assert_eq!(files.register(id, one_more, false), Err(Errno::NOMEM));
    assert_eq!(files.unregister(id, 32), Err(Errno::INVAL));
    assert_eq!(files.unregister(other, 0), Err(Errno::INVAL));
    assert_eq!(files.unregister(id, 0), Ok(()));
    assert_eq!(files.register(other, good, false), Ok(0), "what is given up is free");
}

#[test]
fn requests_go_by_class_version_and_method_and_unwanted_gets_are_refused() {
    let mut files = Files::default();
    let (gets, traps) = (files.open(PORT_1), files.open(PORT_1));
    files.register(gets, registration(MgmtClass::SUBN_LID, &[Method::GET, Method::SET]), false).unwrap();
    files.register(traps, registration(MgmtClass::SUBN_LID, &[Method::TRAP]), false).unwrap();
    files.receive(PORT_1, &from_lid(2, mad(MgmtClass::SUBN_LID, Method::TRAP, 1)), ms(0));
    files.receive(PORT_1, &from_lid(2, mad(MgmtClass::SUBN_LID, Method::GET, 2)), ms(0));
    assert_eq!(files.take_ready(), [traps, gets]);
    assert_eq!(read(&mut files, traps).unwrap().1[3], Method::TRAP.0);
    assert_eq!(read(&mut files, gets).unwrap().1[3], Method::GET.0);
    files.receive(PORT_1, &from_lid(2, mad(MgmtClass::SUBN_DR, Method::GET, 3)), ms(0));
    files.receive(PORT_1, &from_lid(2, mad(MgmtClass::SUBN_ADM, Method::TRAP, 4)), ms(0));
    files.receive(PORT_2, &from_lid(2, mad(MgmtClass::SUBN_LID, Method::TRAP, 5)), ms(0));
    let refused = files.poll_transmit().unwrap().datagram.mad.header;
    assert_eq!(refused.method(), Method::GET_RESP);
    assert_eq!(refused.status(), Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
    assert_eq!(refused.status.get() & 0x8000, 0x8000, "a directed response says so");
    assert_eq!(files.poll_transmit(), None, "a trap that nobody wants is dropped");
}

#[test]
fn transaction_ids_keep_their_lower_half_and_answers_find_their_agent() {
    let mut files = Files::default();
    let ids = [files.open(PORT_1), files.open(PORT_1)];
    for id in ids {
        files.register(id, Registration { qpn: 1, ..registration(MgmtClass(0), &[]) }, false).unwrap();
        let request = mad(MgmtClass::PERF, Method::GET, 0xdead_beef_0000_0007);
        files.write(id, &written(0, 100, 0, OLD_HEADER_LEN, request.bytes()), ms(0)).unwrap();
    }
    let sent: Vec<_> = std::iter::from_fn(|| files.poll_transmit()).collect();
    let tids: Vec<_> = sent.iter().map(|t| t.datagram.mad.header.transaction_id.get()).collect();
    assert_ne!(tids[0], tids[1]);
    assert!(tids.iter().all(|tid| tid & 0xffff_ffff == 7));
    for (id, transmit) in ids.iter().zip(&sent).rev() {
        let mut answer = transmit.datagram;
        answer.mad.header.method = Method::GET_RESP.0;
        files.receive(PORT_2, &answer, ms(0));
        assert!(read(&mut files, *id).is_none(), "another port's answer is none of ours");
        files.receive(PORT_1, &answer, ms(0));
        files.receive(PORT_1, &answer, ms(0));
        assert_eq!(read(&mut files, *id).unwrap().1, answer.mad.bytes());
        assert!(read(&mut files, *id).is_none(), "an answer counts once");
    }
    assert_eq!(files.deadline(), None);
}

#[test]
fn an_unanswered_request_is_repeated_and_then_comes_back_with_etimedout() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    files.register(id, Registration { qpn: 1, ..registration(MgmtClass::PERF, &[]) }, false).unwrap();
    let request = mad(MgmtClass::PERF, Method::GET, 7);
    files.write(id, &written(0, 100, 2, OLD_HEADER_LEN, request.bytes()), ms(0)).unwrap();
    let first = files.poll_transmit().unwrap();
    for at in [100, 200] {
        files.expire(ms(at - 1));
        assert_eq!(files.poll_transmit(), None);
        assert_eq!(files.deadline(), Some(ms(at)));
        files.expire(ms(at));
        assert_eq!(files.poll_transmit(), Some(first));
    }
    files.expire(ms(300));
    let (header, data) = read(&mut files, id).unwrap();
    assert_eq!(header.status.get(), Errno::TIMEDOUT.raw_os_error() as u32);
    assert_eq!((header.timeout_ms.get(), header.retries.get(), header.lid.get()), (100, 2, 5));
    assert_eq!(data, first.datagram.mad.bytes()[..24], "the common header alone, as sent");
    let mut late = first.datagram;
    late.mad.header.method = Method::GET_RESP.0;
    files.receive(PORT_1, &late, ms(0));
    assert!(read(&mut files, id).is_none(), "who comes late is not heard");
}

/// B14: a device of one queue pair refuses the classes of the other one, as the kernel does.
#[test]
fn b14_devices_of_one_queue_pair_refuse_the_classes_of_the_other() {
    let mut files = Files::default();
    let smi = files.open_for(PORT_1, Services::SubnetManagement);
    let gsi = files.open_for(PORT_1, Services::General);
    for class in [MgmtClass::SUBN_LID, MgmtClass::SUBN_DR, MgmtClass::SUBN_ADM, MgmtClass::PERF] {
        let asked = registration(class, &[Method::GET]);
        let (takes, refuses) = if asked.qpn == 0 { (smi, gsi) } else { (gsi, smi) };
        assert_eq!(files.register(refuses, asked, true), Err(Errno::PROTONOSUPPORT), "{class:?}");
        assert!(files.register(takes, asked, true).is_ok(), "{class:?}");
    }
}

#[test]
fn writes_that_cannot_be_are_refused() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    files.enable_pkey(id).unwrap();
    let rmpp = Registration { rmpp_version: 1, ..registration(MgmtClass::SUBN_ADM, &[]) };
    files.register(id, rmpp, false).unwrap();
    files.register(id, registration(MgmtClass::SUBN_DR, &[]), false).unwrap();
    let get = mad(MgmtClass::SUBN_ADM, Method::GET, 1);
    let write = |files: &mut Files, agent, data: &[u8]| {
        files.write(id, &written(agent, 100, 0, HEADER_LEN, data), ms(0))
    };
    assert_eq!(write(&mut files, 0, &get.bytes()[..35]), Err(Errno::INVAL), "shorter than an RMPP header");
    assert_eq!(write(&mut files, 32, get.bytes()), Err(Errno::INVAL), "no such number");
    assert_eq!(write(&mut files, 5, get.bytes()), Err(Errno::IO), "no such agent");
    assert_eq!(write(&mut files, 0, &[get.bytes(), &[0]].concat()), Err(Errno::INVAL), "too long");
    let perf = mad(MgmtClass::PERF, Method::GET, 1);
    assert_eq!(write(&mut files, 0, perf.bytes()), Err(Errno::INVAL), "an RMPP agent's other class");
    assert_eq!(write(&mut files, 0, get.bytes()), Ok(()));
    assert_eq!(write(&mut files, 0, get.bytes()), Err(Errno::INVAL), "under way already");
    let mut route = mad(MgmtClass::SUBN_DR, Method::GET, 1);
    // DrSLID: no LID-routed part ahead.
    route.body[8..10].copy_from_slice(&[0xff; 2]);
    route.header.hop_count = 64;
    assert_eq!(write(&mut files, 1, route.bytes()), Err(Errno::INVAL), "64 hops");
    route.header.hop_count = 1;
    route.body[105] = 2;
    assert_eq!(write(&mut files, 1, route.bytes()), Err(Errno::INVAL), "out of another port than ours");
    route.body[105] = 1;
    assert_eq!(write(&mut files, 1, route.bytes()), Ok(()));
    route.header.transaction_id.set(2);
    route.body[8..10].copy_from_slice(&[0, 7]);
    route.body[105] = 2;
    assert_eq!(write(&mut files, 1, route.bytes()), Ok(()), "the route starts elsewhere");
}

#[test]
fn closing_ends_agents_and_what_they_have_under_way() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    files.register(id, registration(MgmtClass::PERF, &[Method::GET]), false).unwrap();
    let request = mad(MgmtClass::PERF, Method::GET, 7);
    files.write(id, &written(0, 100, 2, OLD_HEADER_LEN, request.bytes()), ms(0)).unwrap();
    let sent = files.poll_transmit().unwrap();
    files.close(id);
    assert_eq!(files.deadline(), None);
    let mut answer = sent.datagram;
    answer.mad.header.method = Method::GET_RESP.0;
    let again = files.open(PORT_1);
    assert_eq!(again, id, "descriptors are used again");
    files.register(again, registration(MgmtClass::PERF, &[Method::GET]), false).unwrap();
    files.receive(PORT_1, &answer, ms(0));
    assert!(files.front(again).is_none(), "an answer to the one before is not for the one after");
}

#[test]
fn a_reader_that_sleeps_loses_what_is_too_much_and_nothing_else() {
    let mut files = Files::default();
    let (sleeper, reader) = (files.open(PORT_1), files.open(PORT_1));
    files.register(sleeper, registration(MgmtClass::PERF, &[Method::GET]), false).unwrap();
    files.register(reader, registration(MgmtClass::SUBN_ADM, &[Method::GET]), false).unwrap();
    for tid in 0..200_010 {
        files.receive(PORT_1, &from_lid(2, mad(MgmtClass::PERF, Method::GET, tid)), ms(0));
    }
    assert_eq!(files.statistics(sleeper).2, 10);
    files.receive(PORT_1, &from_lid(2, mad(MgmtClass::SUBN_ADM, Method::GET, 1)), ms(0));
    assert!(read(&mut files, reader).is_some());
    assert_eq!(files.take_ready(), [sleeper, reader]);
}

/// What comes for a program that never reads is lost once the kernel would lose it, and counted; later it reads what it had.
#[test]
fn who_never_reads_holds_no_more_than_the_kernel_keeps() {
    let mut files = Files::default();
    let id = files.open(PORT_1);
    files.register(id, registration(MgmtClass::SUBN_ADM, &[Method::REPORT]), false).unwrap();
    let address = Address::gsi(7, ServiceLevel(0));
    for tid in 0..200_010 {
        files.receive(
            PORT_1,
            &Datagram { address, mad: mad(MgmtClass::SUBN_ADM, Method::REPORT, tid) },
            ms(0),
        );
    }
    assert_eq!(files.statistics(id), (1, 200_000, 10));
    let tid = |files: &mut Files| read(files, id).map(|(_, bytes)| bytes[8..16].to_vec());
    assert!((0..200_000_u64).all(|expected| tid(&mut files) == Some(expected.to_be_bytes().to_vec())));
    assert_eq!(tid(&mut files), None);
}
