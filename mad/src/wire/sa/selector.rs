//! The selectors of MTU, rate and packet life time (specification volume 1, 15.2.5.16).

/// How a wanted MTU, rate or packet life time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Greater than the value.
    GreaterThan,
    /// Less than the value.
    LessThan,
    /// Exactly the value.
    Exactly,
    /// The best there is: largest MTU or rate, smallest life time. The value doesn't count.
    Best,
}

impl Selector {
    /// From the wire's two bits; higher bits don't count.
    pub const fn from_wire(raw: u8) -> Self {
        match raw & 3 {
            0 => Self::GreaterThan,
            1 => Self::LessThan,
            2 => Self::Exactly,
            _ => Self::Best,
        }
    }

    /// The wire's value.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::GreaterThan => 0,
            Self::LessThan => 1,
            Self::Exactly => 2,
            Self::Best => 3,
        }
    }

    /// Whether a value is allowed by this selector with a wanted value; [`Selector::Best`] allows all.
    pub fn allows<T: PartialOrd>(self, value: &T, wanted: &T) -> bool {
        match self {
            Self::GreaterThan => value > wanted,
            Self::LessThan => value < wanted,
            Self::Exactly => value == wanted,
            Self::Best => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Rate;

    #[test]
    fn selectors_survive_the_wire_and_compare_rates_by_speed() {
        for raw in 0..4 {
            assert_eq!(Selector::from_wire(raw).to_wire(), raw);
        }
        let (five, thirty) = (Rate::from_wire(5).unwrap(), Rate::from_wire(4).unwrap());
        assert!(Selector::LessThan.allows(&five, &thirty));
        assert!(Selector::GreaterThan.allows(&thirty, &five));
        assert!(!Selector::Exactly.allows(&five, &thirty));
        assert!(Selector::Best.allows(&five, &thirty));
    }
}
