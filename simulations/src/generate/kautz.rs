//! Kautz graphs (Kautz 1968): words without equal neighbouring letters, joined to the words that follow by one shift.

use std::collections::{BTreeSet, HashMap};

use super::plan::Plan;
use super::{GenerateError, check, joined};

/// Lays the graph; see [`super::Topology::Kautz`]. Of two opposite arcs (`01`, `10`) one link is kept.
pub(super) fn lay(plan: &mut Plan, degree: u16, diameter: u16, hosts: u16) -> Result<(), GenerateError> {
    check("degree", degree, 1..=64)?;
    check("diameter", diameter, 1..=15)?;
    check("hosts at a switch", hosts, 0..=254 - 2 * u64::from(degree))?;
    let count = u64::from(degree + 1) * u64::from(degree).saturating_pow(u32::from(diameter));
    check("number of switches", count, 2..=0xbfff)?;
    let mut words: Vec<Vec<u16>> = (0..=degree).map(|letter| vec![letter]).collect();
    for _ in 0..diameter {
        words = words
            .iter()
            .flat_map(|word| shifts(word, degree).map(|next| [word.as_slice(), &[next]].concat()))
            .collect();
    }
    let places: HashMap<Vec<u16>, usize> =
        words.iter().map(|word| (word.clone(), plan.switch(format!("S{}", joined(word))))).collect();
    for word in &words {
        (0..hosts).for_each(|_| plan.host(places[word]));
    }
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    for word in &words {
        for next in shifts(word, degree) {
            let (a, b) = (places[word], places[&[&word[1..], &[next]].concat()]);
            links.insert((a.min(b), a.max(b)));
        }
    }
    links.into_iter().filter(|(a, b)| a != b).for_each(|(a, b)| plan.link(a, b));
    Ok(())
}

/// The letters that may follow a word.
fn shifts(word: &[u16], degree: u16) -> impl Iterator<Item = u16> + use<> {
    let last = word.last().copied();
    (0..=degree).filter(move |letter| Some(*letter) != last)
}
