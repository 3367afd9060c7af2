//! What ibsim itself saw on the wire: at verbose level 3 it prints every datagram that a client sends. An account that
//! owes nothing to the code under test.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::Sim;

const SUBN_DIRECTED: u8 = 0x81;
const SUBN_LID: u8 = 0x01;
const SET: u8 = 0x02;

/// A datagram as ibsim saw it come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) class: u8,
    pub(crate) method: u8,
    pub(crate) attribute: u16,
    pub(crate) modifier: u32,
}

impl Seen {
    /// A Set of subnet management.
    pub(crate) fn is_set(&self) -> bool {
        (self.class == SUBN_DIRECTED || self.class == SUBN_LID) && self.method == SET
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "class {:#04x} method {:#04x} attribute {:#06x} modifier {:#x}",
            self.class, self.method, self.attribute, self.modifier
        )
    }
}

/// A stretch of the wire, from its making on.
pub(crate) struct WireLog<'a> {
    sim: &'a Sim,
    from: usize,
}

impl<'a> WireLog<'a> {
    /// Starts recording.
    pub(crate) fn start(sim: &'a Sim) -> Self {
        sim.console("Verbose 3");
        Self { sim, from: sim.output().len() }
    }

    /// What was seen so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.sim.console("Verbose 3");
        parse(&self.sim.output()[self.from..])
    }

    /// Ends it, since printing slows ibsim down.
    pub(crate) fn stop(self) -> Vec<Seen> {
        self.sim.console("Verbose 0");
        parse(&self.sim.output()[self.from..])
    }
}

/// Sets by attribute number.
pub(crate) fn sets(seen: &[Seen]) -> BTreeMap<u16, usize> {
    let mut count = BTreeMap::new();
    for set in seen.iter().filter(|s| s.is_set()) {
        *count.entry(set.attribute).or_insert(0) += 1;
    }
    count
}

fn parse(text: &str) -> Vec<Seen> {
    let mut lines = text.lines();
    let mut seen = Vec::new();
    while let Some(line) = lines.next() {
        if !line.ends_with("--- packet ---") {
            continue;
        }
        let (Some(first), Some(second)) = (lines.next(), lines.next()) else { break };
        let (first, second) = (bytes(first), bytes(second));
        let word = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        seen.push(Seen {
            class: first[1],
            method: first[3],
            attribute: u16::from_be_bytes([second[0], second[1]]),
            modifier: word(&second[4..8]),
        });
    }
    seen
}

fn bytes(line: &str) -> Vec<u8> {
    let digits: String = line.split_whitespace().collect();
    assert_eq!(digits.len(), 32, "not a line of a dump: {line:?}");
    (0..16).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}

#[test]
fn a_dump_is_read() {
    let text = "sim> --- packet ---\n0181 0102 0000 0001 0000 0001 4cb0 e7fe\n\
                0015 0000 8000 0003 0000 0000 0000 0000\nffff ffff 0000 0000 0000 0000 0000 0000\n";
    let seen = parse(text);
    assert_eq!(seen, [Seen { class: 0x81, method: 2, attribute: 0x15, modifier: 0x8000_0003 }]);
    assert_eq!(sets(&seen), BTreeMap::from([(0x15, 1)]));
}
