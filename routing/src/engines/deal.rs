//! Which of n choices a LID gets: number (⌊rank / divider⌋ + shift + LMC offset) mod n.

use super::targets::Target;

/// Calls `take` for each LID of `targets` with its rank and its place among `count` choices, 1 or more.
pub(super) fn places(
    targets: &[Target],
    (divider, shift): (u32, u32),
    count: usize,
    mut take: impl FnMut(u16, u32, usize),
) {
    // Ranks on one leaf follow one another, so that division is needed for the first only; no rank follows the first value.
    let (mut rank, mut rest, mut index) = (u32::MAX - 1, 0, 0);
    for target in targets {
        if target.rank == rank.wrapping_add(1) {
            rest += 1;
            if rest == divider {
                rest = 0;
                index = if index + 1 == count { 0 } else { index + 1 };
            }
        } else {
            rest = target.rank % divider;
            index = (target.rank / divider).wrapping_add(shift) as usize % count;
        }
        rank = target.rank;
        let mut place = index;
        for lid in target.lid..target.lid + target.lids {
            take(lid, rank, place);
            place = if place + 1 == count { 0 } else { place + 1 };
        }
    }
}
