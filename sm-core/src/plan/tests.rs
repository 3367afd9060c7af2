//! Properties of the LID allocator (B15, B17, B19), from random histories.

use std::collections::{BTreeMap, BTreeSet};

use mad::types::{Guid, Lid};
use proptest::prelude::*;

use super::lids::{Applicant, LidMemory, LidPlan, LidRange, assign};

fn lid(raw: u16) -> Lid {
    Lid::new(raw).unwrap()
}

fn range(raw: u16, lmc: u8) -> LidRange {
    LidRange::new(lid(raw), lmc).unwrap()
}

fn port(guid: u64, held: Option<u16>) -> Applicant {
    Applicant { guid: Guid(guid), held: held.map(lid), held_lmc: 0, lmc: 0, stuck: false }
}

fn given(plan: &LidPlan, guid: u64) -> Option<u16> {
    plan.given.get(&Guid(guid)).map(|r| r.base.get())
}

/// Ranges that are disjoint, aligned and within the ceiling.
fn assert_sound(ranges: &LidMemory, ceiling: u16) {
    let mut owner = BTreeMap::new();
    for (guid, range) in ranges {
        assert_eq!(range.base.get() % range.len(), 0, "{guid} {range:?}");
        assert!(range.base.get() >= 1 && range.last() <= ceiling, "{guid} {range:?}");
        for lid in range.indices() {
            assert_eq!(owner.insert(lid, *guid), None, "LID {lid} twice");
        }
    }
}

#[test]
fn b17_memory_of_absent_ports_is_not_given_to_newcomers() {
    let memory = LidMemory::from([(Guid(1), range(5, 0)), (Guid(2), range(6, 0)), (Guid(9), range(7, 0))]);
    let applicants = [port(1, None), port(2, None), port(4, None)];
    let plan = assign(&applicants, &memory, Lid::MAX);
    assert_eq!((given(&plan, 1), given(&plan, 2), given(&plan, 4)), (Some(5), Some(6), Some(1)));
    assert_eq!(plan.memory.get(&Guid(9)), Some(&range(7, 0)));
    // Our own port goes down and up: the memory is asked again and gives the same.
    let again = assign(&applicants[1..], &plan.memory, Lid::MAX);
    assert_eq!(again.memory, plan.memory);
}

#[test]
fn a_living_port_keeps_its_lid_although_an_absent_one_is_remembered_with_it() {
    let memory = LidMemory::from([(Guid(9), range(7, 0))]);
    let plan = assign(&[port(1, Some(7))], &memory, Lid::MAX);
    assert_eq!(given(&plan, 1), Some(7));
    assert_eq!(plan.given_up, [Guid(9)]);
    assert!(!plan.memory.contains_key(&Guid(9)));
}

#[test]
fn b15_a_wanted_lid_waits_for_its_holder_and_a_stuck_holder_keeps_it() {
    let memory = LidMemory::from([(Guid(1), range(7, 0)), (Guid(2), range(9, 0))]);
    let plan = assign(&[port(1, None), port(2, Some(7))], &memory, Lid::MAX);
    assert_eq!((given(&plan, 1), given(&plan, 2)), (None, Some(9)));
    assert_eq!(plan.waiting, [Guid(1)]);
    let stuck = Applicant { stuck: true, ..port(2, Some(7)) };
    let plan = assign(&[port(1, None), stuck], &memory, Lid::MAX);
    assert_eq!(given(&plan, 2), Some(7));
    assert!(given(&plan, 1).is_some_and(|l| l != 7) && plan.waiting.is_empty());
}

/// Port 1 remembers 5, which port 3 still holds, and shares 7 with port 2: two ports must not have one LID until port 3 has
/// moved, and where port 1 is our own there would be no plan at all.
#[test]
fn who_waits_for_a_lid_and_shares_the_one_it_holds_takes_a_free_one_meanwhile() {
    let memory = LidMemory::from([(Guid(1), range(5, 0)), (Guid(2), range(7, 0)), (Guid(3), range(6, 0))]);
    let plan = assign(&[port(1, Some(7)), port(2, Some(7)), port(3, Some(5))], &memory, Lid::MAX);
    assert_eq!((given(&plan, 1), given(&plan, 2), given(&plan, 3)), (Some(1), Some(7), Some(6)));
    assert_eq!((plan.waiting.as_slice(), plan.memory.get(&Guid(1))), (&[Guid(1)][..], Some(&range(5, 0))));
    let then = assign(&[port(1, Some(1)), port(2, Some(7)), port(3, Some(6))], &plan.memory, Lid::MAX);
    assert_eq!((given(&then, 1), then.waiting.len()), (Some(5), 0));
}

#[test]
fn when_space_runs_out_absent_ports_are_forgotten_first_and_the_rest_is_named() {
    let memory = LidMemory::from([(Guid(9), range(2, 0))]);
    let plan = assign(&[port(1, None), port(2, None), port(3, None), port(4, None)], &memory, lid(3));
    assert_eq!(plan.given.len(), 3);
    assert_eq!((plan.without.as_slice(), plan.given_up.as_slice()), (&[Guid(4)][..], &[Guid(9)][..]));
    assert_sound(&plan.given, 3);
}

fn applicants() -> impl Strategy<Value = Vec<Applicant>> {
    let applicant =
        (1..40_u64, prop::option::weighted(0.7, 1..60_u16), 0..3_u8, 0..3_u8, prop::bool::weighted(0.1));
    let make = |(guid, held, held_lmc, lmc, stuck)| Applicant {
        guid: Guid(guid),
        held: Option::map(held, lid),
        held_lmc,
        lmc,
        stuck,
    };
    prop::collection::vec(applicant.prop_map(make), 0..30)
}

fn memory() -> impl Strategy<Value = LidMemory> {
    prop::collection::vec((1..60_u64, 1..64_u16, 0..3_u8), 0..30).prop_map(|entries| {
        let mut memory = LidMemory::new();
        for (guid, base, lmc) in entries {
            let Some(range) = LidRange::new(lid(base), lmc) else { continue };
            if memory.values().all(|other: &LidRange| !other.overlaps(range)) {
                memory.entry(Guid(guid)).or_insert(range);
            }
        }
        memory
    })
}

proptest! {
    #[test]
    fn b17_ranges_are_disjoint_aligned_and_inside(applicants in applicants(), memory in memory(), ceiling in 8..300_u16) {
        let plan = assign(&applicants, &memory, lid(ceiling));
        assert_sound(&plan.given, ceiling);
        assert_sound(&plan.memory, 0xbfff);
    }

    /// Given to a port: a LID that nobody else holds, unless both hold it already.
    #[test]
    fn b15_no_lid_is_handed_on_while_somebody_holds_it(applicants in applicants(), memory in memory()) {
        let plan = assign(&applicants, &memory, Lid::MAX);
        let mut seen = BTreeSet::new();
        let unique: Vec<_> = {
            let mut sorted = applicants;
            sorted.sort_by_key(|a| a.guid);
            sorted.into_iter().filter(|a| seen.insert(a.guid)).collect()
        };
        for (guid, range) in &plan.given {
            let own = unique.iter().find(|a| a.guid == *guid).unwrap();
            if own.held == Some(range.base) {
                continue;
            }
            for other in unique.iter().filter(|a| a.guid != *guid) {
                let held = other.held.map(|l| l.get());
                prop_assert!(held.is_none_or(|l| !range.indices().contains(&usize::from(l))), "{guid} gets {range:?}, held by {}", other.guid);
            }
        }
    }

    /// With every Set confirmed, nobody waits after a few rounds, and then nothing changes any more.
    #[test]
    fn rounds_come_to_an_end(applicants in applicants(), memory in memory()) {
        let mut applicants: Vec<_> = applicants.into_iter().map(|a| Applicant { stuck: false, ..a }).collect();
        applicants.sort_by_key(|a| a.guid);
        applicants.dedup_by_key(|a| a.guid);
        let mut memory = memory;
        for round in 0..40 {
            let plan = assign(&applicants, &memory, Lid::MAX);
            memory = plan.memory;
            for applicant in &mut applicants {
                if let Some(range) = plan.given.get(&applicant.guid) {
                    (applicant.held, applicant.held_lmc) = (Some(range.base), range.lmc);
                }
            }
            if plan.waiting.is_empty() {
                let again = assign(&applicants, &memory, Lid::MAX);
                prop_assert_eq!(&again.memory, &memory);
                for applicant in &applicants {
                    prop_assert_eq!(again.given.get(&applicant.guid).map(|r| r.base), applicant.held);
                }
                return Ok(());
            }
            prop_assert!(round < 39, "still waiting: {:?}", plan.waiting);
        }
    }

    #[test]
    fn the_order_of_applicants_does_not_matter(applicants in applicants(), memory in memory()) {
        let mut unique = applicants;
        unique.sort_by_key(|a| a.guid);
        unique.dedup_by_key(|a| a.guid);
        let forward = assign(&unique, &memory, Lid::MAX);
        unique.reverse();
        prop_assert_eq!(assign(&unique, &memory, Lid::MAX), forward);
    }
}
