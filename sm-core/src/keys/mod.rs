//! M_Keys (specification volume 1, 14.2.4): which key each port shall hold, which it is known to hold, and with which key each
//! packet goes out.
//!
//! [`KeyPolicy`] says what is wanted, [`KeyRing`] knows what is. A key counts as known when the port showed it to a request, as
//! everything does that counts as known; one that was sent and not confirmed is an alternative until then, so that a change of
//! keys may be interrupted anywhere. The key belongs to an end port: port 0 of a switch guards all of it, and the ports of an
//! adapter each themselves. External ports of switches have none; a Set of one carries the switch's, for devices on which
//! all ports share one.
//!
//! Where a port hides a key that nobody here knows, everything about it that needs no key is known and it keeps what it holds;
//! it is named in every report. Where it does not answer at all (protection level 2 and above), it is a link with nobody
//! behind it. In both cases it is asked again with growing pauses: when its lease has run out it shows its key.
//!
//! Cost: O(log ports) for a packet; nothing at all where no key is configured or known.

mod policy;
mod ring;

pub use policy::{KeyPolicy, KeySource};
pub(crate) use ring::entered_port;
pub use ring::{HeldKeys, KeyMemory, KeyRing, Locked};
