//! What a device does wrong: the faults that a subnet manager must live with (B03, B05, B07, B10, B15, B26).

use std::time::Duration;

use mad::wire::Method;

/// What happens to a request that a [`Quirk`] catches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// No answer.
    Silence,
    /// An answer with this status and, where `garbage` is set, all data bytes 0xA5; nothing is changed.
    Refuse {
        /// The status.
        status: u16,
        /// Whether the data are overwritten.
        garbage: bool,
    },
    /// The answer comes later.
    Late(Duration),
    /// A Set is answered as if it had been done, but nothing is changed.
    Pretend,
    /// Bytes of the answer's data are overwritten, from an offset (0 to 63) on.
    Overwrite {
        /// First byte.
        offset: usize,
        /// The new bytes.
        bytes: Vec<u8>,
    },
}

/// A fault: which requests it catches, and what happens to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// Method; any when `None`.
    pub method: Option<Method>,
    /// Attribute ID; any when `None`.
    pub attribute: Option<u16>,
    /// Attribute modifier in its lower 16 bits; any when `None`.
    pub modifier: Option<u16>,
    /// The port that the request came in by; any when `None`.
    pub in_port: Option<u8>,
    /// How many requests it still catches; for ever when `None`.
    pub times: Option<u32>,
    /// Of a hundred requests that it would catch, how many it does, evenly spread; 0 to 100.
    pub percent: u8,
    /// Hundredths of a catch that have come together.
    pub due: u8,
    /// What happens.
    pub what: Misbehaviour,
}

impl Quirk {
    /// A fault that catches everything, for ever.
    pub const fn always(what: Misbehaviour) -> Self {
        Self {
            method: None,
            attribute: None,
            modifier: None,
            in_port: None,
            times: None,
            percent: 100,
            due: 0,
            what,
        }
    }

    /// The same for one attribute only.
    #[must_use]
    pub const fn on(mut self, method: Method, attribute: u16) -> Self {
        self.method = Some(method);
        self.attribute = Some(attribute);
        self
    }

    /// Whether it catches a request; if so, one of its times is used up.
    pub(super) fn catches(&mut self, method: Method, attribute: u16, modifier: u32, in_port: u8) -> bool {
        let meant = self.method.is_none_or(|m| m == method)
            && self.attribute.is_none_or(|a| a == attribute)
            && self.modifier.is_none_or(|m| u32::from(m) == modifier & 0xffff)
            && self.in_port.is_none_or(|p| p == in_port)
            && self.times != Some(0);
        if meant {
            self.due += self.percent.min(100);
        }
        let hit = meant && self.due >= 100;
        if hit {
            self.due -= 100;
        }
        if hit && let Some(times) = &mut self.times {
            *times -= 1;
        }
        hit
    }
}
