//! The two lists of quality of service as opensm's options spell them.

use std::fmt;
use std::str::FromStr;

/// Entries of a VL arbitration table, at most.
const MOST_ENTRIES: usize = 64;

/// Entries of a VL arbitration table: lane and weight in units of 64 bytes, as `0:4,1:0`. At most 64, lanes up to 14.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlWeights(pub Vec<(u8, u8)>);

impl VlWeights {
    /// What is allowed, in words.
    pub const ALLOWED: &'static str =
        "up to 64 pairs of a VL from 0 to 14 and a weight from 0 to 255, such as \"0:4,1:64\"";
}

impl FromStr for VlWeights {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = |pair: &str| {
            let (vl, weight) = pair.trim().split_once(':')?;
            let vl: u8 = vl.trim().parse().ok().filter(|vl| *vl < 15)?;
            Some((vl, weight.trim().parse().ok()?))
        };
        let pairs: Option<Vec<(u8, u8)>> = text.split(',').map(pair).collect();
        pairs.filter(|pairs| pairs.len() <= MOST_ENTRIES).map(Self).ok_or(Self::ALLOWED)
    }
}

impl fmt::Display for VlWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(vl, weight)| format!("{vl}:{weight}")).collect();
        f.write_str(&pairs.join(","))
    }
}

/// The lane of each service level, as `0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7`; on lane 15 packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlMap(pub [u8; 16]);

impl VlMap {
    /// What is allowed, in words.
    pub const ALLOWED: &'static str = "16 VLs from 0 to 15 with commas between, one for each SL";

    /// What is built in, as opensm has it: each level its lane, the last one shares lane 7.
    pub const BUILT_IN: Self = Self([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7]);
}

impl FromStr for VlMap {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let vl = |word: &str| word.trim().parse().ok().filter(|vl: &u8| *vl < 16);
        let vls: Option<Vec<u8>> = text.split(',').map(vl).collect();
        vls.and_then(|vls| vls.try_into().ok()).map(Self).ok_or(Self::ALLOWED)
    }
}

impl fmt::Display for VlMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|vl| vl.to_string()).join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_and_nothing_else_is_taken() {
        let weights: VlWeights = "0:4, 1:0 ,14:255".parse().unwrap();
        assert_eq!(weights.0, [(0, 4), (1, 0), (14, 255)]);
        assert_eq!(weights.to_string().parse(), Ok(weights));
        let most = vec!["1:1"; 64].join(",");
        assert_eq!(most.parse::<VlWeights>().unwrap().0.len(), 64);
        for wrong in ["", "0", "0:4,", "15:1", "0:256", "-1:1", &format!("{most},1:1"), "(null)"] {
            assert_eq!(wrong.parse::<VlWeights>(), Err(VlWeights::ALLOWED), "{wrong}");
        }
        assert_eq!(VlMap::BUILT_IN.to_string().parse(), Ok(VlMap::BUILT_IN));
        for wrong in
            ["", "0,1", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,16", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7,0"]
        {
            assert_eq!(wrong.parse::<VlMap>(), Err(VlMap::ALLOWED), "{wrong}");
        }
    }
}
