use super::*;
use crate::transport::capture::Capture;
use crate::transport::capture::tests::{File, clock};
use crate::transport::{Address, memory};
use crate::types::DirectedPath;
use crate::wire::Method;
use crate::wire::smp::Smp;

fn request(tid: u64, port: u8) -> Datagram {
    let path = DirectedPath::new(&[port]).unwrap();
    let mut mad = Smp::directed(Method::GET, 0x0011, 0, &path).into_mad();
    mad.header.transaction_id.set(tid);
    Datagram { address: Address::DIRECTED, mad }
}

fn answer(request: &Datagram, mark: u8) -> Datagram {
    let mut smp = Smp::from_mad(request.mad);
    smp.header.method = Method::GET_RESP.0;
    smp.data[0] = mark;
    Datagram { mad: smp.into_mad(), ..*request }
}

fn trap(mark: u8) -> Datagram {
    let mut smp = Smp::lid_routed(Method::TRAP, 0x0002, 0);
    smp.data[0] = mark;
    Datagram { address: Address::smp(7), mad: smp.into_mad() }
}

/// Two answers to one question, one to another, a question without answer, and traps before, between and after.
fn recording() -> Vec<u8> {
    let (here, there) = memory::pair(32);
    let file = File::default();
    let capture = Capture::new(here, file.clone(), "sim", clock()).unwrap();
    let take = |datagram: Datagram| {
        there.send(&datagram, None).unwrap();
        assert!(capture.receive(Duration::ZERO).unwrap().is_some());
    };
    take(trap(1));
    for (tid, port, mark) in [(1, 1, 11), (2, 2, 22), (3, 1, 33)] {
        capture.send(&request(tid, port), None).unwrap();
        take(answer(&request(tid, port), mark));
        take(answer(&request(tid, port), 99));
        if mark == 22 {
            take(trap(2));
        }
    }
    capture.send(&request(4, 4), None).unwrap();
    take(trap(3));
    file.take()
}

/// (transaction ID, first byte of data) of all that can be received now.
fn drain(replay: &Replay) -> Vec<(u64, u8)> {
    std::iter::from_fn(|| replay.receive(Duration::ZERO).unwrap())
        .map(|received| {
            let Received::Datagram(datagram) = received else { panic!("{received:?}") };
            let smp = Smp::from_mad(datagram.mad);
            (smp.header.transaction_id.get(), smp.data[0])
        })
        .collect()
}

#[test]
fn questions_get_their_answers_in_order_and_the_last_one_again() {
    let replay = Replay::read(recording().as_slice()).unwrap();
    assert_eq!(drain(&replay), [(0, 1)], "what came before any answer");
    replay.send(&request(100, 1), None).unwrap();
    replay.send(&request(101, 2), None).unwrap();
    assert_eq!(drain(&replay), [(100, 11), (101, 22), (0, 2)]);
    replay.send(&request(102, 4), None).unwrap();
    replay.send(&request(103, 5), None).unwrap();
    assert_eq!(drain(&replay), [], "not answered then, not asked then");
    replay.send(&request(104, 1), None).unwrap();
    assert_eq!(drain(&replay), [(104, 33), (0, 3)]);
    replay.send(&request(105, 1), None).unwrap();
    replay.send(&request(106, 2), None).unwrap();
    assert_eq!(drain(&replay), [(105, 33), (106, 22)]);
}

#[test]
fn what_is_no_capture_is_an_error_and_a_cut_one_too() {
    let whole = recording();
    assert!(Replay::read(&b"hello"[..]).is_err());
    assert!(Replay::read(&whole[..whole.len() - 3]).is_err());
    assert!(Replay::read(&whole[..0]).is_err());
}
