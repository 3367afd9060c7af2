use mad::transport::{Address, Datagram};
use mad::types::{PortNum, ServiceLevel, Timestamp};
use mad::wire::rmpp::{RmppHeader, RmppStatus, RmppType};
use mad::wire::{Mad, Method, MgmtClass};
use rsm_preload_protocol::umad::OLD_HEADER_LEN;
use rustix::io::Errno;
use std::time::Duration;
use zerocopy::IntoBytes;

use super::tests::{mad, read, registration, written};
use super::*;
use crate::emulate::backend::{Endpoint, NodeId};

const CLIENT: Endpoint = Endpoint { node: NodeId(0), port: PortNum(1) };
const SERVER: Endpoint = Endpoint { node: NodeId(1), port: PortNum(1) };
const SERVER_LID: u16 = 5;
const CLIENT_LID: u16 = 9;

fn ms(n: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(n))
}

/// A client and a server on a network that loses what `lose` says, by number.
struct Pair {
    files: Files,
    client: FileId,
    server: FileId,
    carried: usize,
}

impl Pair {
    fn new() -> Self {
        let mut files = Files::default();
        let (client, server) = (files.open(CLIENT), files.open(SERVER));
        let rmpp = |methods: &[Method]| Registration {
            rmpp_version: 1,
            ..registration(MgmtClass::SUBN_ADM, methods)
        };
        files.register(client, rmpp(&[]), false).unwrap();
        files.register(server, rmpp(&[Method::GET_TABLE, Method::GET_MULTI]), false).unwrap();
        Self { files, client, server, carried: 0 }
    }

    /// Carries everything that is under way.
    fn carry(&mut self, now: Timestamp, lose: &dyn Fn(usize) -> bool) {
        while let Some(transmit) = self.files.poll_transmit() {
            self.carried += 1;
            if lose(self.carried) {
                continue;
            }
            let (to, from) =
                if transmit.endpoint == CLIENT { (SERVER, CLIENT_LID) } else { (CLIENT, SERVER_LID) };
            let address = Address::gsi(from, ServiceLevel(0));
            self.files.receive(to, &Datagram { address, mad: transmit.datagram.mad }, now);
        }
    }

    fn write(
        &mut self,
        id: FileId,
        mad: &Mad,
        data: &[u8],
        timeout_ms: u32,
        now: Timestamp,
    ) -> Result<(), Errno> {
        let lid = if id == self.client { SERVER_LID } else { CLIENT_LID };
        let mut bytes = written(0, timeout_ms, 0, OLD_HEADER_LEN, &mad.bytes()[..56]);
        bytes[28..30].copy_from_slice(&lid.to_be_bytes());
        bytes.extend_from_slice(data);
        self.files.write(id, &bytes, now)
    }
}

/// Marks a message for segmentation as opensm does: the active flag alone.
fn marked(mut mad: Mad) -> Mad {
    mad.body[..12].fill(0);
    mad.body[2] = RmppHeader::FLAG_ACTIVE;
    mad
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

#[test]
fn a_table_of_any_size_arrives_whole_for_a_plain_request() {
    for length in [0, 1, 199, 200, 201, 400, 112 * 650, 1_000_003] {
        let mut pair = Pair::new();
        let request = mad(MgmtClass::SUBN_ADM, Method::GET_TABLE, 7);
        pair.write(pair.client, &request, &[0; 200], 1000, ms(0)).unwrap();
        pair.carry(ms(0), &|_| false);
        let (header, asked) = read(&mut pair.files, pair.server).unwrap();
        assert_eq!((header.lid.get(), asked.len()), (CLIENT_LID, 256));
        let mut answer = marked(Mad::decode(&asked).unwrap());
        answer.header.method = Method::GET_TABLE_RESP.0;
        pair.write(pair.server, &answer, &pattern(length), 0, ms(1)).unwrap();
        pair.carry(ms(1), &|_| false);
        let (header, table) = read(&mut pair.files, pair.client).unwrap();
        assert_eq!(header.status.get(), 0);
        assert_eq!(header.length.get() as usize, OLD_HEADER_LEN + 56 + length);
        assert_eq!(table[56..], pattern(length), "{length}");
        assert_eq!(table[12..20], asked[12..20], "the transaction ID");
    }
}

#[test]
fn requests_in_segments_arrive_and_are_answered_in_segments() {
    let mut pair = Pair::new();
    let request = marked(mad(MgmtClass::SUBN_ADM, Method::GET_MULTI, 8));
    pair.write(pair.client, &request, &pattern(5000), 1000, ms(0)).unwrap();
    assert_eq!(pair.write(pair.client, &request, &pattern(9), 1000, ms(0)), Err(Errno::INVAL), "under way");
    pair.carry(ms(0), &|_| false);
    let (_, asked) = read(&mut pair.files, pair.server).unwrap();
    assert_eq!(asked[56..], pattern(5000));
    let mut answer = marked(Mad::decode(&asked).unwrap());
    answer.header.method = Method::GET_MULTI_RESP.0;
    pair.write(pair.server, &answer, &pattern(7000), 0, ms(1)).unwrap();
    pair.carry(ms(1), &|_| false);
    assert_eq!(read(&mut pair.files, pair.client).unwrap().1[56..], pattern(7000));
}

#[test]
fn lost_segments_are_repeated_and_the_request_does_not_time_out_meanwhile() {
    let mut pair = Pair::new();
    let request = mad(MgmtClass::SUBN_ADM, Method::GET_TABLE, 7);
    pair.write(pair.client, &request, &[0; 200], 5000, ms(0)).unwrap();
    pair.carry(ms(0), &|_| false);
    let (_, asked) = read(&mut pair.files, pair.server).unwrap();
    let mut answer = marked(Mad::decode(&asked).unwrap());
    answer.header.method = Method::GET_TABLE_RESP.0;
    pair.write(pair.server, &answer, &pattern(40_000), 0, ms(0)).unwrap();
    pair.carry(ms(0), &|number| number % 9 == 0);
    let mut now = ms(0);
    for _ in 0..1000 {
        if pair.files.front(pair.client).is_some() {
            break;
        }
        now = pair.files.deadline().unwrap().max(now);
        pair.files.expire(now);
        pair.carry(now, &|number| number % 9 == 0);
    }
    let (header, table) = read(&mut pair.files, pair.client).unwrap();
    assert_eq!(header.status.get(), 0);
    assert_eq!(table[56..], pattern(40_000));
}

#[test]
fn a_message_that_nobody_takes_comes_back_with_etimedout() {
    let mut pair = Pair::new();
    let request = marked(mad(MgmtClass::SUBN_ADM, Method::GET_MULTI, 8));
    pair.write(pair.client, &request, &pattern(5000), 100, ms(0)).unwrap();
    for _ in 0..1000 {
        pair.carry(ms(0), &|_| true);
        let Some(next) = pair.files.deadline() else { break };
        pair.files.expire(next);
    }
    let (header, data) = read(&mut pair.files, pair.client).unwrap();
    assert_eq!(header.status.get(), Errno::TIMEDOUT.raw_os_error() as u32);
    assert_eq!((data.len(), data[3]), (24, Method::GET_MULTI.0));
}

#[test]
fn an_agent_that_does_rmpp_itself_gets_every_segment() {
    let mut files = Files::default();
    let id = files.open(CLIENT);
    let own = Registration { rmpp_version: 1, user_rmpp: true, ..registration(MgmtClass::SUBN_ADM, &[]) };
    files.register(id, own, true).unwrap();
    let request = mad(MgmtClass::SUBN_ADM, Method::GET_TABLE, 7);
    files.write(id, &written(0, 1000, 0, 64, request.bytes()), ms(0)).unwrap();
    let sent = files.poll_transmit().unwrap().datagram;
    for segment in 1..=3 {
        let mut answer = sent;
        answer.mad.header.method = Method::GET_TABLE_RESP.0;
        let header = RmppHeader::new(RmppType::Data, 0, RmppStatus::OK, segment, 220);
        answer.mad.body[..12].copy_from_slice(header.as_bytes());
        files.receive(CLIENT, &answer, ms(1));
        assert_eq!(read(&mut files, id).unwrap().1, answer.mad.bytes(), "segment {segment}");
    }
    assert_eq!(files.poll_transmit(), None, "nobody acknowledges for it");
}
