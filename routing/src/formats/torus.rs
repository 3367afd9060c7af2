//! Reads torus-2QoS.conf, the file in which operators tell opensm of their torus: its dimensions, and seeds that say where the
//! coordinates begin. Blank lines and lines that begin with `#` say nothing; words after those of a keyword are ignored.

use mad::types::{Guid, PortNum};

use super::error::FormatError;
use super::steering::{Line, lines};
use crate::engines::{TorusConfig, TorusDimension, TorusSeed};

const LETTERS: [&str; 3] = ["x", "y", "z"];
const KEYWORDS: &str = "xp_link, xm_link, yp_link, ym_link, zp_link, zm_link, x_dateline, y_dateline, z_dateline, \
     next_seed, portgroup_max_ports, port_order or max_changes";

/// Reads the file.
///
/// # Errors
/// The first line that can't be meant, with its place; a file without `torus` or `mesh`.
pub fn read(file: &str, text: &str) -> Result<TorusConfig, FormatError> {
    let mut lines = lines(file, text);
    let nothing = || FormatError::file(file, "nothing in it", "a line that begins with torus or mesh");
    let mut config = header(&lines.next().ok_or_else(nothing)?)?;
    let mut seeds = vec![Seed::default()];
    for line in lines {
        let keyword = line.words[0].1;
        let axis = LETTERS.iter().position(|letter| keyword.starts_with(letter)).unwrap_or(0);
        let seed = seeds.last_mut().ok_or_else(nothing)?;
        match keyword.get(1..).filter(|_| LETTERS.iter().any(|letter| keyword.starts_with(letter))) {
            Some("p_link") => seed.link(&line, axis, 0)?,
            Some("m_link") => seed.link(&line, axis, 1)?,
            Some("_dateline") => {
                let number = |word: &str| word.parse().ok().filter(|at: &i32| at.unsigned_abs() < 0x8000);
                seed.dateline[axis] = line.word(1, "a position, a whole number", number)?;
            }
            _ => match keyword {
                "next_seed" => seeds.push(Seed::default()),
                "portgroup_max_ports" => {
                    let number = |word: &str| word.parse().ok().filter(|ports| (1..=254).contains(ports));
                    config.max_ports = line.word(1, "a number of ports from 1 to 254", number)?;
                }
                "max_changes" => {
                    config.max_changes = line.word(1, "a number of changes", |word| word.parse().ok())?;
                }
                "port_order" => config.port_order = order(&line)?,
                _ => return line.word(0, KEYWORDS, |_| None),
            },
        }
    }
    config.seeds = seeds.into_iter().filter_map(Seed::finish).collect();
    if config.seeds.is_empty() {
        return Err(FormatError::file(file, "no seed", "lines as `xp_link SWITCH-GUID SWITCH-GUID`"));
    }
    Ok(config)
}

/// `torus 4 5 6`, each size with `m` or `t` behind it where it is not what the keyword says.
fn header(line: &Line<'_>) -> Result<TorusConfig, FormatError> {
    let kind = |word: &str| match word {
        "torus" => Some(true),
        "mesh" => Some(false),
        _ => None,
    };
    let closed = line.word(0, "torus or mesh", kind)?;
    let radix = |word: &str| {
        let (digits, closed) = match word.char_indices().last()? {
            (at, 'm' | 'M') => (&word[..at], false),
            (at, 't' | 'T') => (&word[..at], true),
            _ => (word, closed),
        };
        let radix = digits.parse().ok().filter(|radix| (1..=0xbfff).contains(radix))?;
        Some(TorusDimension { radix, closed })
    };
    let expected = "a number of switches such as 5, 5m (open) or 5t (closed)";
    let dimension = |index| line.word(index, expected, radix);
    Ok(TorusConfig {
        dimensions: [dimension(1)?, dimension(2)?, dimension(3)?],
        seeds: Vec::new(),
        max_ports: 16,
        port_order: Vec::new(),
        max_changes: 32,
    })
}

fn order(line: &Line<'_>) -> Result<Vec<PortNum>, FormatError> {
    let mut order: Vec<PortNum> = Vec::new();
    for index in 1..line.words.len() {
        let port = line.port(index)?;
        if !order.contains(&port) {
            order.push(port);
        }
    }
    Ok(order)
}

#[derive(Default)]
struct Seed {
    origin: Option<Guid>,
    neighbours: [[Option<Guid>; 2]; 3],
    dateline: [i32; 3],
}

impl Seed {
    fn link(&mut self, line: &Line<'_>, axis: usize, backward: usize) -> Result<(), FormatError> {
        let guid = |word: &str| word.parse().ok().filter(|guid: &Guid| guid.is_some());
        let expected = "a GUID such as 0x0002c90300a1b2c1";
        let (from, to) = (line.word(1, expected, guid)?, line.word(2, expected, guid)?);
        let origin = *self.origin.get_or_insert(from);
        if origin != from {
            return line.word(1, &format!("{origin}, from which all links of a seed lead"), |_| None);
        }
        self.neighbours[axis][backward] = Some(to);
        Ok(())
    }

    fn finish(self) -> Option<TorusSeed> {
        let Self { origin, neighbours, dateline } = self;
        Some(TorusSeed { origin: origin?, neighbours, dateline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the manual page torus-2QoS.conf(5).
    const EXAMPLE: &str = "# Look for a 2D torus.\ntorus 1 4 5\n\
        yp_link 0x200000 0x200005  # sw @ y=0,z=0 -> sw @ y=1,z=0\nym_link 0x200000 0x20000f\n\
        zp_link 0x200000 0x200001\n\nnext_seed\n\nyp_link 0x20000b 0x200010\nym_link 0x20000b 0x200006\n\
        zp_link 0x20000b 0x20000c\n\ny_dateline -2  # Move the dateline\nz_dateline -1\nport_order 7 10 8 7 11\n";

    #[test]
    fn the_example_of_the_manual_is_read() {
        let config = read("t", EXAMPLE).unwrap();
        let radices = config.dimensions.map(|d| (d.radix, d.closed));
        assert_eq!(radices, [(1, true), (4, true), (5, true)]);
        assert_eq!(config.seeds.len(), 2);
        let second = &config.seeds[1];
        assert_eq!((second.origin, second.dateline), (Guid(0x20_000b), [0, -2, -1]));
        assert_eq!(second.neighbours[1], [Some(Guid(0x20_0010)), Some(Guid(0x20_0006))]);
        assert_eq!(config.port_order, [7, 10, 8, 11].map(PortNum));
        assert_eq!((config.max_ports, config.max_changes), (16, 32));
        let mixed =
            read("t", "mesh 3T 4 5\nxp_link 1 2\nportgroup_max_ports 3\nmax_changes 7 more\n").unwrap();
        assert_eq!(mixed.dimensions.map(|d| d.closed), [true, false, false]);
        assert_eq!((mixed.max_ports, mixed.max_changes), (3, 7));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let text = |text: &str| read("t", text).unwrap_err().to_string();
        assert_eq!(text(""), "t: nothing in it, expected a line that begins with torus or mesh");
        assert_eq!(text("grid 1 2 3\n"), "t:1:1: `grid`, expected torus or mesh");
        let size = "a number of switches such as 5, 5m (open) or 5t (closed)";
        assert_eq!(text("torus 4 0m 1\n"), format!("t:1:9: `0m`, expected {size}"));
        assert_eq!(text("torus 4 4\n"), format!("t:1:10: the end of the line, expected {size}"));
        let link = "a GUID such as 0x0002c90300a1b2c1";
        assert_eq!(text("torus 4 4 1\nxp_link 0x1 spine\n"), format!("t:2:13: `spine`, expected {link}"));
        let other = text("torus 4 4 1\nxp_link 0x1 0x2\nym_link 0x3 0x4\n");
        assert!(other.starts_with("t:3:9: `0x3`, expected 0x0000000000000001, from which"), "{other}");
        assert!(text("torus 4 4 1\nxq_link 1 2\n").starts_with("t:2:1: `xq_link`, expected xp_link"));
        assert_eq!(
            text("torus 4 4 1\nxp_link 1 2\nportgroup_max_ports 0\n"),
            "t:3:21: `0`, expected a number of ports from 1 to 254"
        );
        assert!(text("torus 4 4 1\n").starts_with("t: no seed, expected"));
    }
}
