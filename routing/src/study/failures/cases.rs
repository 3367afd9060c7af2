//! Which links and switches fail together, drawn from a seed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use crate::fabric::{Fabric, Link, NodeId};

/// What fails in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many links between switches, drawn at random.
    Links(usize),
    /// So many switches, drawn at random; their hosts are cut off with them.
    Switches(usize),
    /// Every link between switches, one after the other.
    EachLink,
}

/// What fails at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Links, by their ends.
    pub links: Vec<Link>,
    /// Switches.
    pub switches: Vec<NodeId>,
}

/// Why no cases could be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CasesError {
    /// More are to fail than there are.
    #[error("{wanted} {what} are to fail, the fabric has {there}")]
    TooMany {
        /// Links between switches or switches.
        what: &'static str,
        /// How many are to fail.
        wanted: usize,
        /// How many there are.
        there: usize,
    },
    /// All switches are to fail.
    #[error("all {0} switches are to fail, one at least has to be left")]
    NoneLeft(usize),
    /// There is nothing that could fail.
    #[error("no two switches are linked")]
    NoLinks,
}

/// Draws `count` cases from `seed`; of [`Kind::EachLink`] there are as many as links.
///
/// # Errors
/// More are to fail than there are, or all switches.
pub fn draw(fabric: &Fabric, kind: Kind, count: usize, seed: u64) -> Result<Vec<Case>, CasesError> {
    let links = links_between_switches(fabric);
    let switches: Vec<NodeId> = sorted_switches(fabric);
    let too_many = |what, wanted, there| CasesError::TooMany { what, wanted, there };
    match kind {
        Kind::EachLink | Kind::Links(_) if links.is_empty() => Err(CasesError::NoLinks),
        Kind::EachLink => {
            Ok(links.into_iter().map(|link| Case { links: vec![link], ..Case::default() }).collect())
        }
        Kind::Links(wanted) if wanted > links.len() => {
            Err(too_many("links between switches", wanted, links.len()))
        }
        Kind::Links(wanted) => {
            let case = |links| Case { links, ..Case::default() };
            Ok(samples(&links, wanted, count, seed).map(case).collect())
        }
        Kind::Switches(wanted) if wanted > switches.len() => {
            Err(too_many("switches", wanted, switches.len()))
        }
        Kind::Switches(wanted) if wanted == switches.len() => Err(CasesError::NoneLeft(wanted)),
        Kind::Switches(wanted) => {
            let case = |switches| Case { switches, ..Case::default() };
            Ok(samples(&switches, wanted, count, seed).map(case).collect())
        }
    }
}

/// Samples of `wanted` without repetition, each from a seed of its own.
fn samples<T: Clone>(of: &[T], wanted: usize, count: usize, seed: u64) -> impl Iterator<Item = Vec<T>> {
    (0..count as u64).map(move |number| {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut all = of.to_vec();
        all.partial_shuffle(&mut random, wanted).0.to_vec()
    })
}

/// Links in use between two switches, by GUID and port, so that a seed draws the same whatever file they come from.
fn links_between_switches(fabric: &Fabric) -> Vec<Link> {
    let is_up = |end| fabric.port(end).is_some_and(|port| port.state.is_up());
    let counts = |link: &&Link| {
        let ends = [link.a, link.b];
        link.a.node != link.b.node && ends.iter().all(|end| fabric.node(end.node).is_switch() && is_up(*end))
    };
    let mut links: Vec<Link> = fabric.links().filter(counts).copied().collect();
    let key = |link: &Link| {
        let mut ends = [link.a, link.b].map(|end| (fabric.node(end.node).guid, end.port));
        ends.sort_unstable();
        ends
    };
    links.sort_by_key(key);
    links
}

fn sorted_switches(fabric: &Fabric) -> Vec<NodeId> {
    let mut switches: Vec<NodeId> = fabric.switches().map(|(id, _)| id).collect();
    switches.sort_by_key(|id| fabric.node(*id).guid);
    switches
}

/// The fabric that is left when `case` has happened.
pub fn without(fabric: &Fabric, case: &Case) -> Fabric {
    let mut left = fabric.clone();
    for link in &case.links {
        left.disconnect(link.a);
    }
    for switch in &case.switches {
        left.remove_node(*switch);
    }
    left
}

impl Case {
    /// What fails, in words.
    pub fn describe(&self, fabric: &Fabric) -> String {
        let end =
            |end: crate::fabric::PortRef| format!("{}[{}]", fabric.node(end.node).description, end.port);
        let links = self.links.iter().map(|link| format!("{} - {}", end(link.a), end(link.b)));
        let switches = self.switches.iter().map(|switch| fabric.node(*switch).description.clone());
        links.chain(switches).collect::<Vec<_>>().join(", ")
    }
}
