//! What is wrong with a request gets the status that the specification gives it, is counted, and does no harm.

use mad::rmpp::RmppStatus;
use mad::transport::GlobalRoute;
use mad::wire::rmpp::{RmppHeader, RmppType};
use mad::wire::sa::PortInfoRecord;

use super::*;
use crate::sa::Complaint;

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered(Status),
    Silence,
    /// The transfer is ended with this status.
    Ended(RmppStatus),
}

struct Case {
    name: &'static str,
    mad: SaMad,
    source: Address,
    outcome: Outcome,
    complaint: Option<Complaint>,
}

fn node(snapshot: &Snapshot, mask: u64) -> SaMad {
    let mut record = NodeRecord::new_zeroed();
    record.lid.set(address(snapshot, 1).lid);
    request(Method::GET, &record, mask, 1)
}

/// A Get of a path with raw codes of MTU and rate, each to be exceeded.
fn path(snapshot: &Snapshot, mtu: u8, rate: u8) -> SaMad {
    let mut record = PathRecord::new_zeroed();
    record.slid.set(address(snapshot, 1).lid);
    record.dlid.set(address(snapshot, 2).lid);
    let ends = PathRecord::SLID | PathRecord::DLID;
    let limits = PathRecord::MTU | PathRecord::MTU_SELECTOR | PathRecord::RATE | PathRecord::RATE_SELECTOR;
    let mut mad = request(Method::GET, &record, ends | limits, 1);
    // Selector 0: greater than.
    (mad.data[54], mad.data[55]) = (mtu, rate);
    mad
}

/// A segment of a GetMulti.
fn segment(version: u8, kind: u8, flags: u8, number: u32, length: u32) -> SaMad {
    let mut mad = request(Method::GET_MULTI, &MultiPathRecord::new_zeroed(), 0, 1);
    mad.rmpp = RmppHeader::new(RmppType::Data, flags, RmppStatus(0), number, length);
    (mad.rmpp.version, mad.rmpp.rmpp_type) = (version, kind);
    mad
}

fn cases(snapshot: &Snapshot) -> Vec<Case> {
    use Outcome::{Answered, Ended, Silence};
    let me = address(snapshot, 1);
    let of = |name, mad, outcome, complaint| Case { name, mad, source: me, outcome, complaint };
    let changed = |mut mad: SaMad, change: fn(&mut SaMad)| {
        change(&mut mad);
        mad
    };
    let port = |modifier: u32| {
        let mut record = PortInfoRecord::new_zeroed();
        record.lid.set(me.lid);
        let mut mad = request(Method::GET, &record, 1, 1);
        mad.header.attribute_modifier.set(modifier);
        mad
    };
    let forged = Address {
        grh: Some(GlobalRoute {
            gid: Gid::new(snapshot.sm.gid_prefix, Tree::host(1, 1)),
            gid_index: 0,
            hop_limit: 0,
            traffic_class: 0,
            flow_label: 0,
        }),
        ..me
    };
    let stranger = Address { lid: 0x7777, ..me };
    let plain = || node(snapshot, 1);
    let bare_join = request(Method::SET, &McMemberRecord::new_zeroed(), 0, 1);
    let from = |case: Case, source| Case { source, ..case };
    vec![
        of("as it should be", plain(), Answered(Status::OK), None),
        of(
            "class version 1",
            changed(plain(), |mad| mad.header.class_version = 1),
            Answered(Status::BAD_VERSION),
            Some(Complaint::Version),
        ),
        of(
            "base version 2",
            changed(plain(), |mad| mad.header.base_version = 2),
            Silence,
            Some(Complaint::Version),
        ),
        of(
            "a method of another class",
            changed(plain(), |mad| mad.header.method = Method::SEND.0),
            Answered(Status::METHOD_NOT_SUPPORTED),
            Some(Complaint::Method),
        ),
        of(
            "an attribute that there is not",
            changed(plain(), |mad| mad.header.attribute_id.set(0x7777)),
            Answered(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
            Some(Complaint::Attribute),
        ),
        of(
            "Set of what is only read",
            changed(plain(), |mad| mad.header.method = Method::SET.0),
            Answered(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
            Some(Complaint::Attribute),
        ),
        of(
            "a modifier where none has a meaning",
            changed(plain(), |mad| mad.header.attribute_modifier.set(1)),
            Answered(Status::INVALID_FIELD),
            Some(Complaint::Field),
        ),
        of("the one modifier that has one", port(1 << 31), Answered(Status::OK), None),
        of("another beside it", port(1 << 31 | 2), Answered(Status::INVALID_FIELD), Some(Complaint::Field)),
        // What is reserved is ignored by who receives it.
        of("reserved bits of the mask", node(snapshot, 1 | 1 << 1 | 1 << 63), Answered(Status::OK), None),
        of("good codes", path(snapshot, 1, 2), Answered(Status::OK), None),
        of("MTU code 9", path(snapshot, 9, 2), Answered(Status::SA_REQ_INVALID), Some(Complaint::Field)),
        of("MTU code 0", path(snapshot, 0, 2), Answered(Status::SA_REQ_INVALID), Some(Complaint::Field)),
        of("rate code 1", path(snapshot, 1, 1), Answered(Status::SA_REQ_INVALID), Some(Complaint::Field)),
        of("rate code 63", path(snapshot, 1, 63), Answered(Status::SA_REQ_INVALID), Some(Complaint::Field)),
        of(
            "a join without anything",
            bare_join,
            Answered(Status::SA_INSUFFICIENT_COMPONENTS),
            Some(Complaint::Field),
        ),
        of("a wrong SM_Key", changed(plain(), |mad| mad.sm_key.set(77)), Silence, Some(Complaint::Key)),
        from(
            of("a GID of another port", plain(), Answered(Status::SA_REQ_DENIED), Some(Complaint::Denied)),
            forged,
        ),
        from(of("a LID that is not there yet", plain(), Answered(Status::BUSY), None), stranger),
        of("an answer to nothing", changed(plain(), |mad| mad.header.method |= 0x80), Silence, None),
        of(
            "RMPP of another version",
            segment(9, 1, 0b111, 1, 220),
            Ended(RmppStatus::UNSUPPORTED_VERSION),
            Some(Complaint::Segments),
        ),
        of(
            "RMPP of no type",
            segment(1, 9, 0b111, 1, 220),
            Ended(RmppStatus::BAD_TYPE),
            Some(Complaint::Segments),
        ),
        of(
            "4 GiB announced",
            segment(1, 1, 0b011, 1, u32::MAX),
            Ended(RmppStatus::RESOURCES_EXHAUSTED),
            Some(Complaint::Segments),
        ),
    ]
}

#[test]
fn each_bad_request_gets_its_status_and_is_counted() {
    let snapshot = snapshot();
    for case in cases(&snapshot) {
        let mut server = Server::new(ServerConfig::default());
        let datagram = Datagram { address: case.source, mad: case.mad.into_mad() };
        for times in 1..=3 {
            server.receive(&datagram, &snapshot, at(times));
            let outcome = match server.poll_send(at(times)) {
                None => Outcome::Silence,
                Some(sent) if SaMad::from_mad(sent.mad).rmpp.is_active() => {
                    Outcome::Ended(SaMad::from_mad(sent.mad).rmpp.status())
                }
                Some(sent) => Outcome::Answered(sent.mad.header.status()),
            };
            assert_eq!(outcome, case.outcome, "{}", case.name);
            for kind in Complaint::ALL {
                let expected = if case.complaint == Some(kind) { times } else { 0 };
                assert_eq!(server.complaints(kind), expected, "{}: {kind:?}", case.name);
            }
        }
        assert_eq!(server.queued(), 0, "{}", case.name);
        let good = ask(&mut server, &snapshot, 2, node(&snapshot, 1), at(9));
        assert_eq!(good.header.status(), Status::OK, "{}: others go on", case.name);
    }
}

/// A segment that ends before its own header does, and one that goes on for ever.
#[test]
fn cut_segments_end_their_transfer_and_endless_ones_are_forgotten() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let me = address(&snapshot, 1);
    let cut = segment(1, 1, 0b111, 1, 3);
    server.receive(&Datagram { address: me, mad: cut.into_mad() }, &snapshot, at(0));
    while server.poll_send(at(0)).is_some() {}
    assert!(server.rmpp.bytes() <= 256, "{}", server.rmpp.bytes());
    for tid in 0..20_000_u64 {
        let mut open = segment(1, 1, 0b011, 1, 0);
        open.header.transaction_id.set(tid);
        server.receive(&Datagram { address: me, mad: open.into_mad() }, &snapshot, at(1));
        while server.poll_send(at(1)).is_some() {}
    }
    let config = ServerConfig::default().rmpp;
    assert!(server.rmpp.len() <= config.max_transfers && server.rmpp.bytes() <= config.max_bytes);
    assert!(server.complaints(Complaint::Segments) > 10_000, "told to stop beyond the bound");
    drain(&mut server);
}

/// Time goes on until no transfer is left.
fn drain(server: &mut Server) {
    for second in 1..=400 {
        while server.poll_send(at(second * 1000)).is_some() {}
    }
    assert!(server.rmpp.is_empty() && server.transfers.is_empty(), "{} transfers stay", server.rmpp.len());
}

/// Whatever comes, nothing panics, and nothing grows beyond its bound.
#[test]
fn random_datagrams_do_no_harm() {
    let seed = std::env::var("RSM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    println!("RSM_SEED={seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let snapshot = snapshot();
    let config = ServerConfig { queue: 512, queue_per_requester: 128, ..ServerConfig::default() };
    let mut server = Server::new(config);
    let attributes: Vec<u16> = (0x01..=0x03).chain(0x10..=0x40).chain([0xf3, 0xff02]).collect();
    let methods = [0x01, 0x02, 0x12, 0x13, 0x14, 0x15, 0x06, 0x81, 0x86, 0x92];
    let mut received = 0;
    for n in 0..12_000_u64 {
        let mut mad = SaMad::request(Method(methods[random.random_range(0..methods.len())]), 0, 0);
        mad.header.attribute_id.set(attributes[random.random_range(0..attributes.len())]);
        mad.header.transaction_id.set(random.random_range(0..4000));
        mad.component_mask
            .set([0, random.random(), u64::MAX, 1 << random.random_range(0..64)][random.random_range(0..4)]);
        if random.random_bool(0.7) {
            let used = random.random_range(0..=mad.data.len());
            random.fill(&mut mad.data[..used]);
            // GIDs of real ports get further.
            if random.random_bool(0.3) {
                let gid = Gid::new(snapshot.sm.gid_prefix, Tree::host(0, 1)).0.to_be_bytes();
                let from = random.random_range(0..mad.data.len() - 16);
                mad.data[from / 8 * 8..from / 8 * 8 + 16].copy_from_slice(&gid);
            }
        }
        if random.random_bool(0.1) {
            mad.header.attribute_modifier.set(random.random());
            mad.sm_key.set([0, 1, random.random()][random.random_range(0..3)]);
        }
        let mut mad = mad.into_mad();
        if random.random_bool(0.2) {
            let mut bytes: [u8; 36] = random.random();
            bytes[24] = random.random_range(0..3);
            bytes[25] = random.random_range(0..6);
            mad = with_rmpp(mad, &bytes[24..36]);
        }
        if random.random_bool(0.02) {
            mad.header.class_version = random.random();
        }
        let mut source = address(&snapshot, random.random_range(1..6));
        if random.random_bool(0.05) {
            source.lid = random.random();
        }
        server.receive(&Datagram { address: source, mad }, &snapshot, at(n / 4));
        received += 1;
        assert!(server.queued() <= 2 * config.queue && server.outgoing.len() <= received + 16);
        assert!(
            server.rmpp.len() <= config.rmpp.max_transfers && server.rmpp.bytes() <= config.rmpp.max_bytes
        );
        if random.random_bool(0.05) {
            while server.poll_send(at(n / 4)).is_some() {}
            received = 0;
        }
    }
    while server.poll_send(at(4000)).is_some() {}
    let (groups, services) = (server.registry().groups.iter().count(), server.registry().services.len());
    assert!(groups < 0x4000 && services <= 100_000, "{groups} groups, {services} services");
    let statistics = server.statistics();
    assert!(statistics.answered > 3000 && statistics.refused > 500, "{statistics:?}: most are looked at");
    drain(&mut server);
    let good = ask(&mut server, &snapshot, 2, node(&snapshot, 1), at(500_000));
    assert_eq!(good.header.status(), Status::OK);
}

fn with_rmpp(mad: Mad, rmpp: &[u8]) -> Mad {
    let mut mad = SaMad::from_mad(mad);
    if let Ok(header) = <RmppHeader as zerocopy::FromBytes>::read_from_bytes(rmpp) {
        mad.rmpp = header;
    }
    mad.into_mad()
}
