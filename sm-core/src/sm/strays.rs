//! Copies of our own requests that may still be under way: what they would undo is not written, read or handed on before they
//! are gone.
//!
//! A request that was not answered in its time is sent again, and answered by whichever copy comes first. Where the fabric holds
//! packets up for longer than a request waits, the other copy arrives after that answer; a Set of a block of a table then puts back
//! what a later Set of the same block had replaced. It is answered, to a transaction that is over, and nothing else would ever tell: the
//! entries stay, beside those that other switches have got meanwhile, and the two can close a circle (B08, B29).
//!
//! So of a block of which a Set was sent more often than it was answered, nothing is read, and nothing else is written, before the
//! fabric has delivered or dropped the last copy: SubnetTimeOut, which is what every path of the subnet keeps to by the
//! specification (14.2.5.6), and [`LONGEST`] at most. The same content may be sent again at once. HANDOVER waits for all copies of all
//! Sets: the other manager can't know of them. PortInfo is left out: of one port, copies differ by a step of the link state machine, and
//! a step back is not taken.
//!
//! Cost: an entry for each Set that was repeated within SubnetTimeOut, a second as configured by default; nothing where no
//! packet is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use mad::transactions::Stray;
use mad::types::Timestamp;
use mad::wire::smp::Smp;
use mad::wire::{Method, ids::sm as id};

use super::Token;
use crate::request::SmpRequest;

/// Whatever SubnetTimeOut says (it can say hours), nobody waits longer than so.
const LONGEST: Duration = Duration::from_secs(4);

/// Sets that are kept before it is looked which are gone.
const ROOM: usize = 64;

/// Destination, attribute, modifier.
type Place = (u64, u16, u32);

/// A request that is not sent yet.
#[derive(Debug)]
struct Held {
    at: Timestamp,
    request: SmpRequest,
    token: Token,
}

/// Copies under way, and what waits for them.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// What the last copy of a Set says, and when it is gone.
    sets: BTreeMap<Place, (Timestamp, [u8; 64])>,
    /// With so many of them those that are gone are cleared away: half of them at least are new by then, so that this costs O(1) each.
    room: usize,
    /// In the order in which they came.
    held: Vec<Held>,
}

impl Strays {
    /// A request has ended of which copies may be under way. `subnet_timeout` as PortInfo codes it.
    pub(super) fn note(&mut self, stray: &Stray, subnet_timeout: u8, now: Timestamp) {
        let smp = Smp::from_mad(stray.datagram.mad);
        let until = stray.last_sent + lifetime(subnet_timeout);
        if smp.header.method() != Method::SET || until <= now {
            return;
        }
        if self.sets.len() >= self.room {
            self.sets.retain(|_, (until, _)| *until > now);
            self.room = ROOM.max(2 * self.sets.len());
        }
        let header = &smp.header;
        let place = (stray.destination, header.attribute_id.get(), header.attribute_modifier.get());
        self.sets.insert(place, (until, smp.data));
    }

    /// Takes a request that must not be sent yet; gives back one that may.
    pub(super) fn hold(
        &mut self,
        request: SmpRequest,
        token: Token,
        now: Timestamp,
    ) -> Option<(SmpRequest, Token)> {
        let place = (request.window(), request.attribute_id, request.modifier);
        let copy = self.sets.get(&place).filter(|(until, _)| *until > now && is_table(request.attribute_id));
        match copy {
            Some((until, data)) if request.method != Method::SET || *data != request.data => {
                self.held.push(Held { at: *until, request, token });
                None
            }
            _ => Some((request, token)),
        }
    }

    /// The same for a request that must not be sent before every copy of every Set is gone.
    pub(super) fn hold_until_quiet(
        &mut self,
        request: SmpRequest,
        token: Token,
        now: Timestamp,
    ) -> Option<(SmpRequest, Token)> {
        match self.sets.values().map(|(until, _)| *until).max().filter(|until| *until > now) {
            Some(at) => {
                self.held.push(Held { at, request, token });
                None
            }
            None => Some((request, token)),
        }
    }

    /// When the first of those that wait may be sent.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.held.iter().map(|held| held.at).min()
    }

    /// Those that may be sent by now.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<(SmpRequest, Token)> {
        self.held.extract_if(.., |held| held.at <= now).map(|held| (held.request, held.token)).collect()
    }

    /// Gives up what waits.
    pub(super) fn give_up(&mut self) {
        self.held.clear();
    }
}

/// How long a packet may be under way.
fn lifetime(subnet_timeout: u8) -> Duration {
    Duration::from_nanos(4096 << subnet_timeout.min(31)).min(LONGEST)
}

/// Whether an attribute is a block of a table.
const fn is_table(attribute: u16) -> bool {
    matches!(
        attribute,
        id::LINEAR_FORWARDING_TABLE
            | id::MULTICAST_FORWARDING_TABLE
            | id::PKEY_TABLE
            | id::GUID_INFO
            | id::SL_TO_VL_MAPPING_TABLE
            | id::VL_ARBITRATION_TABLE
    )
}

#[cfg(test)]
mod tests {
    use mad::transport::{Address, Datagram};
    use mad::types::{DirectedPath, Guid};
    use mad::wire::smp::{LinearForwardingTable, PortInfo};
    use zerocopy::FromZeros;

    use super::*;

    const SWITCH: Guid = Guid(7);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_start(Duration::from_millis(ms))
    }

    fn set(block: u32, exit: u8) -> SmpRequest {
        SmpRequest::set(DirectedPath::LOCAL, SWITCH, block, &LinearForwardingTable { ports: [exit; 64] })
    }

    fn get(block: u32) -> SmpRequest {
        SmpRequest::get::<LinearForwardingTable>(DirectedPath::LOCAL, SWITCH, block)
    }

    /// A request that ended, last sent at a time.
    fn stray(request: SmpRequest, ms: u64) -> Stray {
        let request = request.into_transaction();
        let datagram = Datagram { address: Address::DIRECTED, ..request.datagram };
        Stray { datagram, destination: request.destination, last_sent: at(ms) }
    }

    fn may_be_sent(strays: &mut Strays, request: SmpRequest, ms: u64) -> bool {
        strays.hold(request, Token::Control, at(ms)).is_some()
    }

    /// SubnetTimeOut 18: a copy is under way for 1,073 ms.
    #[test]
    fn b29_what_a_late_copy_would_undo_waits_until_it_is_gone() {
        let mut strays = Strays::default();
        strays.note(&stray(set(3, 1), 100), 18, at(400));
        assert!(may_be_sent(&mut strays, set(3, 1), 400), "the same once more");
        assert!(may_be_sent(&mut strays, set(4, 2), 400), "another block");
        assert!(!may_be_sent(&mut strays, set(3, 2), 400), "other content");
        assert!(!may_be_sent(&mut strays, get(3), 400), "what is read now is not what will be there");
        assert_eq!(strays.deadline(), Some(at(100) + Duration::from_nanos(4096 << 18)));
        assert!(strays.due(at(1_173)).is_empty());
        let sent: Vec<_> = strays.due(at(1_174)).into_iter().map(|(request, _)| request.method).collect();
        assert_eq!((sent, strays.deadline()), (vec![Method::SET, Method::GET], None));
        assert!(may_be_sent(&mut strays, set(3, 2), 1_174));
    }

    #[test]
    fn handover_waits_for_every_set_and_for_no_get() {
        let mut strays = Strays::default();
        let handover = || SmpRequest::get::<PortInfo>(DirectedPath::LOCAL, Guid(9), 0);
        strays.note(&stray(get(1), 100), 18, at(200));
        assert!(strays.hold_until_quiet(handover(), Token::Control, at(200)).is_some());
        let port = SmpRequest::set(DirectedPath::LOCAL, SWITCH, 1, &PortInfo::new_zeroed());
        strays.note(&stray(port, 150), 18, at(200));
        assert!(may_be_sent(&mut strays, SmpRequest { data: [1; 64], ..port }, 200), "a port's next state");
        assert!(strays.hold_until_quiet(handover(), Token::Control, at(200)).is_none());
        strays.give_up();
        assert_eq!(strays.deadline(), None);
        assert!(strays.hold_until_quiet(handover(), Token::Control, at(1_300)).is_some());
    }

    /// SubnetTimeOut can say hours, and nanoseconds.
    #[test]
    fn nobody_waits_for_hours() {
        for (code, longest) in [(31, LONGEST), (19, LONGEST), (0, Duration::from_nanos(4096))] {
            assert!(lifetime(code) <= longest, "{code}");
        }
        assert_eq!(lifetime(255), LONGEST, "a field has five bits, a program may say more");
    }
}
