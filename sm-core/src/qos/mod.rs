//! Quality of service as the operator wants it: how ports share a link between virtual lanes, and which lane a service level
//! takes.
//!
//! Values are given in general and for one kind of port. Precedence, for each value by itself (B56): the kind's own in our
//! configuration, the kind's own in opensm's options file, the general one in our configuration, the general one in
//! opensm's file, what is built in. Cost: nothing.

mod lists;
mod options;

pub use lists::{VlMap, VlWeights};
pub use options::{OptionsError, read};

/// Kinds of ports that can be treated by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortKind {
    /// Of channel adapters.
    Ca,
    /// Of routers.
    Router,
    /// Port 0 of a switch, where it is an enhanced one.
    SwitchPort0,
    /// The other ports of a switch.
    SwitchExternal,
}

impl PortKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ca, Self::Router, Self::SwitchPort0, Self::SwitchExternal];

    /// As opensm's options are called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ca => "ca",
            Self::Router => "rtr",
            Self::SwitchPort0 => "sw0",
            Self::SwitchExternal => "swe",
        }
    }
}

/// What can be said of a kind of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The most data VLs, 1 to 15.
    pub max_vls: Option<u8>,
    /// VLHighLimit: how much of high priority passes before low priority has a turn, in 4 KiB; 255: without end.
    pub high_limit: Option<u8>,
    /// The high-priority table.
    pub high: Option<VlWeights>,
    /// The low-priority table.
    pub low: Option<VlWeights>,
    /// Lane by service level.
    pub sl_to_vl: Option<VlMap>,
}

impl Values {
    /// These, and where nothing is said, those.
    #[must_use]
    pub fn or(&self, below: &Self) -> Self {
        let (mine, theirs) = (self.clone(), below.clone());
        Self {
            max_vls: mine.max_vls.or(theirs.max_vls),
            high_limit: mine.high_limit.or(theirs.high_limit),
            high: mine.high.or(theirs.high),
            low: mine.low.or(theirs.low),
            sl_to_vl: mine.sl_to_vl.or(theirs.sl_to_vl),
        }
    }
}

/// What one source says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether ports shall be set up also where the routes need one lane only.
    pub enabled: bool,
    /// For all ports.
    pub general: Values,
    /// By [`PortKind`].
    pub kinds: [Values; 4],
}

impl Options {
    /// These before those; the kinds' own before general ones.
    pub fn over(&self, below: &Self) -> Qos {
        let general = self.general.or(&below.general);
        let of = |kind: PortKind| {
            let own = self.kinds[kind as usize].or(&below.kinds[kind as usize]);
            own.or(&general)
        };
        Qos { enabled: self.enabled || below.enabled, kinds: PortKind::ALL.map(of) }
    }
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qos {
    /// Whether ports are set up also where the routes need one lane only.
    pub enabled: bool,
    kinds: [Values; 4],
}

impl Qos {
    /// Of one kind of ports. What is `None` is left to what is built in.
    pub fn of(&self, kind: PortKind) -> &Values {
        &self.kinds[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(high_limit: u8) -> Values {
        Values { high_limit: Some(high_limit), ..Values::default() }
    }

    /// B56: a general value counts for every kind that has none of its own, wherever either was written.
    #[test]
    fn b56_values_are_taken_in_the_order_that_is_written_down() {
        let mut ours = Options::default();
        let mut file = Options { enabled: true, general: limit(1), ..Options::default() };
        let limits = |ours: &Options, file: &Options| {
            let qos = ours.over(file);
            PortKind::ALL.map(|kind| qos.of(kind).high_limit)
        };
        assert_eq!(limits(&ours, &file), [Some(1); 4]);
        ours.general = limit(2);
        assert_eq!(limits(&ours, &file), [Some(2); 4]);
        file.kinds[PortKind::SwitchExternal as usize] = limit(3);
        assert_eq!(limits(&ours, &file), [Some(2), Some(2), Some(2), Some(3)]);
        ours.kinds[PortKind::SwitchExternal as usize] = limit(4);
        ours.kinds[PortKind::Ca as usize].sl_to_vl = Some("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0".parse().unwrap());
        assert_eq!(limits(&ours, &file), [Some(2), Some(2), Some(2), Some(4)]);
        let qos = ours.over(&file);
        assert!(qos.enabled && qos.of(PortKind::Ca).sl_to_vl.is_some());
        assert!(qos.of(PortKind::Router).sl_to_vl.is_none());
        assert_eq!(Options::default().over(&Options::default()), Qos::default());
    }
}
