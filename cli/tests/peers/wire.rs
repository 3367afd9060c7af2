//! What a simulator itself saw on the wire: an account that owes nothing to the program under test.

use std::collections::BTreeMap;

use crate::harness::Harness;

const SUBN_DIRECTED: u8 = 0x81;
const SUBN_LID: u8 = 0x01;
const GET: u8 = 0x01;
const SET: u8 = 0x02;

/// Datagrams that programs sent, by class, method and attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic(BTreeMap<(u8, u8, u16), usize>);

impl Traffic {
    /// Of the dump of datagrams that ibsim prints.
    pub(crate) fn of_ibsim(text: &str) -> Self {
        let mut traffic = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if !line.ends_with("--- packet ---") {
                continue;
            }
            let (Some(first), Some(second)) = (lines.next(), lines.next()) else { break };
            let (first, second) = (bytes(first), bytes(second));
            let kind = (first[1], first[3], u16::from_be_bytes([second[0], second[1]]));
            *traffic.0.entry(kind).or_default() += 1;
        }
        traffic
    }

    /// Of what the emulator's `Sent` prints.
    pub(crate) fn of_emulator(text: &str) -> Self {
        let line = |line: &str| {
            let (kind, count) = line.split_once(": ").expect("a count");
            let mut numbers = kind.split_whitespace().filter_map(|word| word.strip_prefix("0x"));
            let mut number = || u16::from_str_radix(numbers.next().expect("a number"), 16).expect("digits");
            let byte = |number: u16| u8::try_from(number).expect("a byte");
            let kind = (byte(number()), byte(number()), number());
            (kind, count.parse().expect("a count"))
        };
        Self(text.lines().map(line).collect())
    }

    /// Gets of an attribute of subnet management.
    pub(crate) fn gets(&self, attribute: u16) -> usize {
        let count = |class| self.0.get(&(class, GET, attribute)).copied().unwrap_or_default();
        count(SUBN_DIRECTED) + count(SUBN_LID)
    }

    /// Sets of subnet management by attribute.
    pub(crate) fn sets(&self) -> BTreeMap<u16, usize> {
        let mut count = BTreeMap::new();
        for ((class, method, attribute), number) in &self.0 {
            if [SUBN_DIRECTED, SUBN_LID].contains(class) && *method == SET {
                *count.entry(*attribute).or_default() += number;
            }
        }
        count
    }

    fn since(mut self, before: &Self) -> Self {
        for (kind, count) in &before.0 {
            *self.0.get_mut(kind).expect("counts only grow") -= count;
        }
        self.0.retain(|_, count| *count > 0);
        self
    }
}

/// A stretch of the wire, from its making on.
pub(crate) struct WireLog<'a, H> {
    harness: &'a H,
    before: Traffic,
}

impl<'a, H: Harness> WireLog<'a, H> {
    /// Starts counting.
    pub(crate) fn start(harness: &'a H) -> Self {
        Self { harness, before: harness.traffic(true) }
    }

    /// What was seen so far.
    pub(crate) fn seen(&self) -> Traffic {
        self.harness.traffic(true).since(&self.before)
    }

    /// Ends it, since counting slows ibsim down.
    pub(crate) fn stop(self) -> Traffic {
        self.harness.traffic(false).since(&self.before)
    }
}

fn bytes(line: &str) -> Vec<u8> {
    let digits: String = line.split_whitespace().collect();
    assert_eq!(digits.len(), 32, "not a line of a dump: {line:?}");
    (0..16).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}

#[test]
fn both_accounts_are_read() {
    let dump = "sim> --- packet ---\n0181 0102 0000 0001 0000 0001 4cb0 e7fe\n\
                0015 0000 8000 0003 0000 0000 0000 0000\nffff ffff 0000 0000 0000 0000 0000 0000\n";
    let list = "class 0x81 method 0x02 attribute 0x0015: 1\n";
    let seen = Traffic::of_ibsim(dump);
    assert_eq!(seen, Traffic::of_emulator(list));
    assert_eq!(seen.sets(), BTreeMap::from([(0x15, 1)]));
    assert_eq!(seen.clone().since(&seen), Traffic::default());
}
