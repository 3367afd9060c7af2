use proptest::prelude::*;

use super::*;
use crate::types::{Lid, ServiceLevel};
use crate::wire::Attribute;
use crate::wire::rmpp::RmppStatus;
use crate::wire::sa::{LinkRecord, NodeRecord, PathRecord};
use crate::wire::smp::{NodeDescription, NodeInfo};

const SA: Address = Address::gsi(1, ServiceLevel(0));

fn client() -> SaClient<&'static str> {
    SaClient::new(SaClientConfig::default(), 5)
}

fn came(mad: Mad) -> Received {
    Received::Datagram(Datagram { address: SA, mad })
}

fn nodes(count: u16) -> Vec<NodeRecord> {
    let node = |n| {
        let name = NodeDescription::new(&format!("node {n}"));
        NodeRecord::new(Lid::new(n).unwrap(), NodeInfo::zeroed(), name)
    };
    (1..=count).map(node).collect()
}

fn table<R: Record>(records: &[R]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|r| r.push_to(&mut bytes));
    bytes
}

/// The SA's side of a table: a response in segments.
fn respond(sa: &mut Rmpp, request: &SaMad, offset: u16, data: Vec<u8>, now: Timestamp) {
    let mut head = SaMad::response_to(request, Status::OK);
    head.attribute_offset.set(offset);
    sa.send(SA, &head.into_mad(), data, now).unwrap();
}

/// Carries datagrams between client and SA until neither has any.
fn carry(client: &mut SaClient<&'static str>, sa: &mut Rmpp, now: Timestamp) -> Vec<SaMad> {
    let mut requests = Vec::new();
    loop {
        let mut quiet = true;
        while let Some((datagram, _)) = client.poll_send(now) {
            quiet = false;
            if !sa.receive(&datagram, now) {
                requests.push(SaMad::from_mad(datagram.mad));
            }
        }
        while let Some(datagram) = sa.poll_send(now) {
            quiet = false;
            client.receive(&came(datagram.mad), now);
        }
        if quiet {
            return requests;
        }
    }
}

#[test]
fn a_table_of_many_segments_becomes_records() {
    let now = Timestamp::ZERO;
    for count in [0, 1, 2, 100, 1000] {
        let (mut client, mut sa) = (client(), Rmpp::new(RmppConfig::default()));
        client.submit(Query::get_all::<NodeRecord>(SA), "nodes");
        let requests = carry(&mut client, &mut sa, now);
        assert_eq!(requests.len(), 1);
        assert_eq!((requests[0].header.method(), requests[0].component_mask.get()), (Method::GET_TABLE, 0));
        let records = nodes(count);
        // B44: an empty table has an offset of 0.
        let offset = if count == 0 { 0 } else { NodeRecord::ATTRIBUTE_OFFSET };
        respond(&mut sa, &requests[0], offset, table(&records), now);
        carry(&mut client, &mut sa, now);
        let (token, answer) = client.poll_answer().unwrap();
        let answer = answer.unwrap();
        assert_eq!((token, answer.may_be_cut()), ("nodes", false));
        assert_eq!(answer.records::<NodeRecord>(), Ok(records), "{count}");
        assert_eq!(client.outstanding(), 0);
    }
}

#[test]
fn records_longer_than_ours_are_read_by_their_offset() {
    let mut head = SaMad::request(Method::GET_TABLE_RESP, LinkRecord::ID, 0);
    head.attribute_offset.set(2);
    let mut data = vec![0; 32];
    data[1] = 3;
    data[17] = 4;
    let answer = Answer::table(head, data.clone());
    let links = answer.records::<LinkRecord>().unwrap();
    assert_eq!(links.iter().map(|l| l.from_lid.get()).collect::<Vec<_>>(), [3, 4]);
    // Shorter than the record, with data: not to be read.
    head.attribute_offset.set(0);
    let short = Answer::table(head, data);
    assert_eq!(short.records::<LinkRecord>(), Err(Malformed { offset: 0, record: 6 }));
}

#[test]
fn b44_a_plain_get_has_one_record_whatever_its_offset() {
    let now = Timestamp::ZERO;
    for offset in [0, 1, 8, u16::MAX] {
        let mut client = client();
        let mut template = PathRecord::zeroed();
        template.dlid.set(7);
        client.submit(Query::get(SA, &template, PathRecord::DLID), "path");
        let (request, timeout) = client.poll_send(now).unwrap();
        assert_eq!(timeout, Some(Duration::from_secs(1)));
        let request = SaMad::from_mad(request.mad);
        assert_eq!(PathRecord::decode(&request.data), Some(template));
        let mut response = SaMad::response_to(&request, Status::OK);
        response.attribute_offset.set(offset);
        response.data = request.data;
        // The kernel fills in the upper half of the transaction ID.
        response.header.transaction_id.set(0xabcd_0000_0000_0005);
        assert!(client.receive(&came(response.into_mad()), now));
        let (_, answer) = client.poll_answer().unwrap();
        assert_eq!(answer.unwrap().records::<PathRecord>(), Ok(vec![template]));
    }
}

/// Where a transport cuts every datagram at 256 bytes, the first records are still to be had, and it shows.
#[test]
fn a_table_without_rmpp_shows_that_it_may_be_cut() {
    let mut head = SaMad::request(Method::GET_TABLE_RESP, LinkRecord::ID, 0);
    head.attribute_offset.set(1);
    head.data[..16].copy_from_slice(&[0, 1, 2, 3, 0, 4, 0, 0, 0, 2, 2, 3, 0, 4, 0, 0]);
    let answer = Answer::single(head);
    assert!(answer.may_be_cut());
    assert_eq!(answer.records::<LinkRecord>().unwrap().len(), 2);
}

#[test]
fn requests_are_repeated_and_end_once() {
    let mut client = client();
    client.submit(Query::get_all::<NodeRecord>(SA), "nodes");
    let mut now = Timestamp::ZERO;
    let mut sent = Vec::new();
    while client.outstanding() > 0 {
        sent.extend(iter_send(&mut client, now));
        now = client.deadline().unwrap();
        client.expired(now);
    }
    assert_eq!(sent.len(), 5, "one try and four repetitions");
    assert!(sent.iter().all(|d| d.mad == sent[0].mad), "with the same transaction ID");
    assert_eq!(client.poll_answer(), Some(("nodes", Err(QueryError::Timeout))));
    assert_eq!(client.poll_answer(), None);
    assert_eq!(client.deadline(), None);
    // A late answer is nobody's.
    let late = SaMad::response_to(&SaMad::from_mad(sent[0].mad), Status::OK);
    assert!(!client.receive(&came(late.into_mad()), now));
}

fn iter_send(client: &mut SaClient<&'static str>, now: Timestamp) -> Vec<Datagram> {
    std::iter::from_fn(|| client.poll_send(now)).map(|(datagram, _)| datagram).collect()
}

#[test]
fn refusals_and_returned_requests_end_the_query_with_their_reason() {
    let now = Timestamp::ZERO;
    let mut client = client();
    client.submit(Query::get_all::<NodeRecord>(SA), "refused");
    let request = iter_send(&mut client, now)[0];
    let no = SaMad::response_to(&SaMad::from_mad(request.mad), Status::SA_NO_RECORDS);
    assert!(client.receive(&came(no.into_mad()), now));
    let refused = Err(QueryError::Status(Status::SA_NO_RECORDS));
    assert_eq!(client.poll_answer(), Some(("refused", refused)));

    client.submit(Query::get_all::<NodeRecord>(SA), "returned");
    for try_number in 0..5 {
        let request = iter_send(&mut client, now)[0];
        assert_eq!(client.poll_answer(), None, "{try_number}");
        assert!(client.receive(&Received::Returned { request, errno: 5 }, now));
    }
    assert_eq!(client.poll_answer(), Some(("returned", Err(QueryError::System(5)))));
}

/// B47: BUSY is not the end, but the request is not repeated at once either.
#[test]
fn b47_busy_is_asked_again_after_the_timeout() {
    let mut now = Timestamp::ZERO;
    let mut client = client();
    client.submit(Query::get_all::<NodeRecord>(SA), "busy");
    for _ in 0..4 {
        let request = iter_send(&mut client, now)[0];
        let busy = SaMad::response_to(&SaMad::from_mad(request.mad), Status::BUSY);
        assert!(client.receive(&came(busy.into_mad()), now));
        assert_eq!((iter_send(&mut client, now).len(), client.poll_answer()), (0, None));
        now = client.deadline().unwrap();
        client.expired(now);
    }
    let request = iter_send(&mut client, now)[0];
    let busy = SaMad::response_to(&SaMad::from_mad(request.mad), Status::BUSY);
    client.receive(&came(busy.into_mad()), now);
    assert_eq!(client.poll_answer(), Some(("busy", Err(QueryError::Status(Status::BUSY)))));
}

/// B51: a request in segments, answered in segments, by one datagram, with an ABORT, or not at all.
#[test]
fn b51_get_multi_ends_in_every_way() {
    for case in ["table", "refused", "aborted", "silent"] {
        let mut now = Timestamp::ZERO;
        let (mut client, mut sa) = (client(), Rmpp::new(RmppConfig::default()));
        let gids: Vec<_> = (0..150_u128).map(crate::types::Gid).collect();
        let attribute = MultiPathRecord::zeroed().with_gids(&gids, &gids).unwrap();
        client.submit(Query::get_multi(SA, attribute.clone(), 1 << 19 | 1 << 20), "paths");
        assert_eq!(carry(&mut client, &mut sa, now), [], "all by RMPP");
        let Some(Event::Received(request)) = sa.poll_event() else { panic!("no request") };
        assert_eq!(request.data, attribute);
        let request = SaMad::from_mad(request.head);
        let paths = vec![PathRecord::zeroed(); 50];
        let expected = match case {
            "table" => {
                respond(&mut sa, &request, PathRecord::ATTRIBUTE_OFFSET, table(&paths), now);
                carry(&mut client, &mut sa, now);
                None
            }
            "refused" => {
                let no = SaMad::response_to(&request, Status::SA_INSUFFICIENT_COMPONENTS);
                client.receive(&came(no.into_mad()), now);
                Some(QueryError::Status(Status::SA_INSUFFICIENT_COMPONENTS))
            }
            "aborted" => {
                respond(&mut sa, &request, PathRecord::ATTRIBUTE_OFFSET, table(&paths), now);
                let first = sa.poll_send(now).unwrap();
                client.receive(&came(first.mad), now);
                sa.cancel(&TransferKey::of_sent(&SA, &first.mad));
                client.receive(&came(sa.poll_send(now).unwrap().mad), now);
                Some(QueryError::Rmpp(Failure::ByPeer(RmppStatus::UNSPECIFIED)))
            }
            _ => {
                while client.outstanding() > 0 {
                    now = client.deadline().unwrap();
                    client.expired(now);
                    assert!(iter_send(&mut client, now).is_empty());
                }
                Some(QueryError::Timeout)
            }
        };
        let (_, answer) = client.poll_answer().unwrap_or_else(|| panic!("{case}: no end"));
        match expected {
            None => assert_eq!(answer.unwrap().records::<PathRecord>(), Ok(paths), "{case}"),
            Some(error) => assert_eq!(answer, Err(error), "{case}"),
        }
        assert_eq!((client.outstanding(), client.poll_answer()), (0, None), "{case}");
    }
}

#[test]
fn the_window_holds_queries_back() {
    let config = SaClientConfig { window: 2, ..SaClientConfig::default() };
    let mut client = SaClient::new(config, 0);
    for token in ["a", "b", "c"] {
        client.submit(Query::get_all::<LinkRecord>(SA), token);
    }
    let now = Timestamp::ZERO;
    let sent = iter_send(&mut client, now);
    assert_eq!(sent.iter().map(|d| d.mad.header.transaction_id.get()).collect::<Vec<_>>(), [1, 2]);
    let no = SaMad::response_to(&SaMad::from_mad(sent[1].mad), Status::SA_NO_RECORDS);
    client.receive(&came(no.into_mad()), now);
    assert_eq!(client.poll_answer().map(|(token, _)| token), Some("b"));
    assert_eq!(iter_send(&mut client, now).len(), 1);
    assert_eq!(client.outstanding(), 2);
}

/// Feeds a client with any datagram and splits any table.
fn fuzz_client(mads: &[Vec<u8>], offset: u16, data: &[u8]) {
    let now = Timestamp::ZERO;
    let mut client = client();
    client.submit(Query::get_all::<NodeRecord>(SA), "query");
    while client.poll_send(now).is_some() {}
    for bytes in mads {
        let mut mad = Mad::decode(bytes).unwrap();
        mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
        mad.header.method = Method::GET_TABLE_RESP.0;
        mad.header.transaction_id.set(5);
        client.receive(&came(mad), now);
        while client.poll_send(now).is_some() {}
    }
    let mut steps = 0;
    while let Some(at) = client.deadline() {
        client.expired(at);
        while client.poll_send(at).is_some() {}
        steps += 1;
        assert!(steps < 1000, "no end");
    }
    assert_eq!(client.outstanding(), 0);
    assert!(client.poll_answer().is_some() && client.poll_answer().is_none());
    let mut head = SaMad::request(Method::GET_TABLE_RESP, NodeRecord::ID, 0);
    head.attribute_offset.set(offset);
    let count = Answer::table(head, data.to_vec()).records::<LinkRecord>().map_or(0, |r| r.len());
    assert!(count <= data.len() / 6 + 1);
}

proptest! {
    #[test]
    fn any_answer_ends_the_query_once(
        mads in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 256), 0..6),
        offset in prop_oneof![0_u16..30, any::<u16>()],
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        fuzz_client(&mads, offset, &data);
    }
}

/// Goes through an exchange recorded with opensm and Linux's own RMPP: the client says again, byte for byte, what was
/// understood there.
fn replay(section: &str, query: Query, first_tid: u32) -> Result<Answer, QueryError> {
    let recorded = include_str!("../../../testdata/mads/rmpp_linux.txt");
    let head = format!("[{section}]");
    let lines = recorded.lines().skip_while(|l| *l != head).skip(1).take_while(|l| !l.starts_with('['));
    let now = Timestamp::ZERO;
    let mut client = SaClient::new(SaClientConfig::default(), first_tid);
    client.submit(query, section);
    for (number, line) in lines.enumerate() {
        let (what, hex) = line.split_once(' ').unwrap();
        let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
        let mad = Mad::decode(&std::array::from_fn::<u8, 256, _>(byte)).unwrap();
        if what == "sent" {
            let (datagram, _) =
                client.poll_send(now).unwrap_or_else(|| panic!("[{section}] {number}: silent"));
            assert_eq!(datagram.mad.bytes(), mad.bytes(), "[{section}] {number}");
        } else {
            assert!(client.poll_send(now).is_none(), "[{section}] {number}: says too much");
            assert!(client.receive(&came(mad), now), "[{section}] {number}");
        }
    }
    assert!(client.poll_send(now).is_none());
    client.poll_answer().unwrap().1
}

#[test]
fn exchanges_with_opensm_by_the_kernels_rmpp() {
    let nodes = replay("all nodes", Query::get_all::<NodeRecord>(SA), 0x93).unwrap();
    let nodes = nodes.records::<NodeRecord>().unwrap();
    let names: Vec<_> = nodes.iter().map(|n| n.node_description.to_string()).collect();
    assert_eq!(names, ["host0 vib0", "host1 vib1"], "as saquery prints them");

    let prefix = crate::types::Gid::DEFAULT_PREFIX;
    let query = |count| {
        let gid = |n: &NodeRecord| crate::types::Gid::new(prefix, n.node_info.port_guid());
        let gids: Vec<_> = nodes.iter().cycle().take(count).map(gid).collect();
        let mut template = MultiPathRecord::zeroed();
        template.set_numb_path(127);
        let mask = MultiPathRecord::component_mask(&["NumbPath", "SGIDCount", "DGIDCount"]).unwrap();
        Query::get_multi(SA, template.with_gids(&gids, &gids).unwrap(), mask)
    };
    let paths = replay("paths", query(2), 0x93).unwrap().records::<PathRecord>().unwrap();
    let lids: Vec<_> = paths.iter().map(|p| (p.slid.get(), p.dlid.get())).collect();
    assert_eq!(lids, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    let refused = replay("too many paths", query(22), 0x94);
    assert_eq!(refused, Err(QueryError::Status(Status::SA_REQ_INVALID)));
}
