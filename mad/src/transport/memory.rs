//! Two transports joined back to back in one process: what one sends, the other receives. For tests and for
//! fabrics that are simulated in the same process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};

use super::{Datagram, Received, Transport, TransportError};

/// One end of a pair. The other end's drop is seen as [`TransportError::Closed`] once what it sent has been
/// received.
#[derive(Debug)]
pub struct MemoryTransport {
    out: Sender<Received>,
    into: Receiver<Received>,
    wake: (Sender<()>, Receiver<()>),
    refused: AtomicU64,
}

/// A pair of ends, each holding up to `capacity` datagrams (at least 1) that the other has not received yet. A
/// full end refuses with `ENOBUFS`, as a device does, and never blocks: two ends can't wait for each other.
pub fn pair(capacity: usize) -> (MemoryTransport, MemoryTransport) {
    let (to_second, from_first) = bounded(capacity.max(1));
    let (to_first, from_second) = bounded(capacity.max(1));
    let end = |out, into| MemoryTransport { out, into, wake: bounded(1), refused: AtomicU64::new(0) };
    (end(to_second, from_second), end(to_first, from_first))
}

impl MemoryTransport {
    /// Plays the device: gives a request that the other end sent back to it, unsent or unanswered.
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub fn give_back(&self, request: Datagram, errno: i32) -> Result<(), TransportError> {
        self.put(Received::Returned { request, errno })
    }

    /// How many were refused since the other end was full.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn put(&self, item: Received) -> Result<(), TransportError> {
        self.out.try_send(item).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                TransportError::Io {
                    what: "send to the other end in memory".into(),
                    source: std::io::Error::from_raw_os_error(libc::ENOBUFS),
                }
            }
            TrySendError::Disconnected(_) => TransportError::Closed,
        })
    }
}

impl Transport for MemoryTransport {
    fn send(&self, datagram: &Datagram, _timeout: Option<Duration>) -> Result<(), TransportError> {
        self.put(Received::Datagram(*datagram))
    }

    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError> {
        if let Ok(received) = self.into.try_recv() {
            return Ok(Some(received));
        }
        select! {
            recv(self.into) -> received => received.map(Some).map_err(|_| TransportError::Closed),
            recv(self.wake.1) -> _ => Ok(None),
            default(timeout) => Ok(None),
        }
    }

    fn wake(&self) {
        // Full means that a wake-up is pending already.
        let _ = self.wake.0.try_send(());
    }

    fn owns_only_lower_tid(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Address;
    use crate::types::DirectedPath;
    use crate::wire::Method;
    use crate::wire::smp::Smp;

    fn datagram(tid: u64) -> Datagram {
        let mut mad = Smp::directed(Method::GET, 0x11, 0, &DirectedPath::LOCAL).into_mad();
        mad.header.transaction_id.set(tid);
        Datagram { address: Address::DIRECTED, mad }
    }

    #[test]
    fn what_one_end_sends_the_other_receives_in_order() {
        let (a, b) = pair(4);
        for tid in 1..=3 {
            a.send(&datagram(tid), None).unwrap();
        }
        b.give_back(datagram(9), libc::ETIMEDOUT).unwrap();
        for tid in 1..=3 {
            assert_eq!(b.receive(Duration::ZERO).unwrap(), Some(Received::Datagram(datagram(tid))));
        }
        assert_eq!(b.receive(Duration::ZERO).unwrap(), None);
        let returned = Received::Returned { request: datagram(9), errno: libc::ETIMEDOUT };
        assert_eq!(a.receive(Duration::from_secs(60)).unwrap(), Some(returned));
    }

    #[test]
    fn a_full_end_refuses_and_a_dropped_one_is_closed() {
        let (a, b) = pair(1);
        a.send(&datagram(1), None).unwrap();
        let refused = a.send(&datagram(2), None).unwrap_err();
        assert_eq!((refused.errno(), a.refused()), (libc::ENOBUFS, 1));
        drop(a);
        assert!(b.receive(Duration::ZERO).unwrap().is_some(), "what was sent before still comes");
        assert!(matches!(b.receive(Duration::from_secs(60)), Err(TransportError::Closed)));
        assert!(matches!(b.send(&datagram(3), None), Err(TransportError::Closed)));
    }

    #[test]
    fn a_wake_up_ends_a_wait_even_when_it_comes_first() {
        let (a, _b) = pair(1);
        a.wake();
        a.wake();
        assert_eq!(a.receive(Duration::from_secs(3600)).unwrap(), None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| a.receive(Duration::from_secs(3600)));
            a.wake();
            assert_eq!(waiting.join().unwrap().unwrap(), None);
        });
    }
}
