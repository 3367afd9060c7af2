//! The table of states, event by event; sequences are the model checker's.

use super::*;

const LOW: Rank = Rank { priority: 3, guid: Guid(0x10) };
const OWN: Rank = Rank { priority: 5, guid: Guid(0x20) };
const HIGH: Rank = Rank { priority: 9, guid: Guid(0x30) };
const POLICY: Policy = Policy { sticky: false, retries: 2 };
const STATES: [SmState; 4] = [SmState::NotActive, SmState::Discovering, SmState::Standby, SmState::Master];
const CONTROLS: [SmControl; 5] = [
    SmControl::Handover,
    SmControl::Acknowledge,
    SmControl::Disable,
    SmControl::Standby,
    SmControl::Discover,
];

fn peer(rank: Rank, state: SmState) -> Peer {
    Peer { rank, state, trusted: true }
}

/// A manager in a state, by events that lead there; its orders are taken.
fn in_state(state: SmState, policy: Policy) -> Election {
    let mut election = Election::new(OWN, policy);
    match state {
        SmState::Discovering => {}
        SmState::Master => {
            assert_eq!(election.swept(&[]), Verdict::Lead);
            assert_eq!(election.confirmed(&[]), Verdict::Lead);
        }
        SmState::Standby => assert_eq!(election.swept(&[peer(HIGH, SmState::Master)]), Verdict::Yield),
        SmState::NotActive => {
            election.swept(&[peer(HIGH, SmState::Master)]);
            assert!(election.controlled(SmControl::Disable, peer(HIGH, SmState::Master)));
        }
    }
    election.take_orders();
    assert_eq!(election.state(), state);
    election
}

#[test]
fn higher_priority_wins_and_then_the_lower_guid() {
    assert!(HIGH > OWN && OWN > LOW);
    assert!(Rank { priority: 5, guid: Guid(0x1f) } > OWN);
}

#[test]
fn every_control_in_every_state_is_followed_or_refused_as_the_table_says() {
    use SmState::{Discovering, Master, NotActive, Standby};
    let table: [(SmState, [Option<SmState>; 5]); 4] = [
        (Discovering, [Some(Discovering), None, None, None, None]),
        (Standby, [Some(Master), Some(Standby), Some(NotActive), None, Some(Discovering)]),
        (Master, [Some(Master), Some(Master), None, None, Some(Discovering)]),
        (NotActive, [None, None, None, Some(Standby), None]),
    ];
    for (state, row) in table {
        for (control, expected) in CONTROLS.into_iter().zip(row) {
            for sender in STATES {
                let allowed = match control {
                    SmControl::Acknowledge => matches!(sender, Standby | Master),
                    _ => sender == Master,
                };
                let mut election = in_state(state, POLICY);
                let before = election.clone();
                let legal = election.controlled(control, peer(HIGH, sender));
                let text = format!("{control:?} from {sender:?} in {state:?}");
                assert_eq!(legal, expected.is_some() && allowed, "{text}");
                if legal {
                    assert_eq!(Some(election.state()), expected, "{text}");
                } else {
                    assert_eq!(election, before, "{text}: nothing is done");
                }
            }
        }
    }
}

#[test]
fn b64_who_has_another_key_or_our_own_guid_is_never_obeyed() {
    for state in STATES {
        for control in CONTROLS {
            let mut election = in_state(state, POLICY);
            let before = election.clone();
            let stranger = Peer { trusted: false, ..peer(HIGH, SmState::Master) };
            assert!(!election.controlled(control, stranger));
            assert!(!election.controlled(control, peer(OWN, SmState::Master)));
            assert_eq!(election, before);
        }
    }
    let mut election = in_state(SmState::Master, POLICY);
    let stranger = Peer { trusted: false, ..peer(HIGH, SmState::Master) };
    assert_eq!(election.swept(&[stranger]), Verdict::Lead);
}

#[test]
fn a_handover_is_acknowledged_in_the_state_that_it_found_and_followed_by_an_examination() {
    for state in [SmState::Standby, SmState::Master, SmState::Discovering] {
        let mut election = in_state(state, POLICY);
        assert!(election.controlled(SmControl::Handover, peer(HIGH, SmState::Master)));
        let acknowledge = Order::Send { control: SmControl::Acknowledge, to: HIGH.guid, state };
        assert_eq!(election.take_orders(), [Order::Examine, acknowledge]);
    }
}

#[test]
fn a_master_hands_over_to_whoever_ranks_higher_unless_it_is_sticky() {
    for (sticky, other, yields) in [
        (false, SmState::Standby, true),
        (true, SmState::Standby, false),
        (true, SmState::Master, true),
        (false, SmState::Discovering, false),
        (false, SmState::NotActive, false),
    ] {
        let mut election = in_state(SmState::Master, Policy { sticky, ..POLICY });
        let verdict = election.swept(&[peer(LOW, SmState::Standby), peer(HIGH, other)]);
        assert_eq!(verdict == Verdict::Yield, yields, "{other:?} sticky {sticky}");
        let handover = Order::Send { control: SmControl::Handover, to: HIGH.guid, state: SmState::Master };
        let expected = if yields { vec![Order::Stop, handover] } else { Vec::new() };
        assert_eq!(election.take_orders(), expected);
        assert_eq!(election.leads(), !yields);
    }
}

/// B58, B59: the higher of two masters waits, and whatever ends that is followed by an examination.
#[test]
fn b58_b59_the_higher_master_waits_until_the_lower_one_hands_over_steps_back_or_is_gone() {
    type End = fn(&mut Election);
    let ends: [End; 4] = [
        |e| assert!(e.controlled(SmControl::Handover, peer(LOW, SmState::Master))),
        |e| e.polled(LOW.guid, Some(SmState::Standby)),
        |e| (0..=POLICY.retries).for_each(|_| e.polled(LOW.guid, None)),
        |e| assert_eq!(e.swept(&[peer(LOW, SmState::Standby)]), Verdict::Again),
    ];
    for end in ends {
        let mut election = in_state(SmState::Master, POLICY);
        assert_eq!(election.swept(&[peer(LOW, SmState::Master)]), Verdict::Wait(LOW.guid));
        assert_eq!(election.take_orders(), [Order::Stop]);
        assert!(!election.leads());
        for _ in 0..10 {
            election.polled(LOW.guid, Some(SmState::Master));
        }
        assert_eq!((election.polls(), election.take_orders()), (Some(LOW.guid), vec![]));
        end(&mut election);
        assert_eq!(election.take_orders().first(), Some(&Order::Examine));
        assert!(election.leads());
    }
}

#[test]
fn a_standby_discovers_after_as_many_unanswered_polls_as_are_configured() {
    let mut election = in_state(SmState::Standby, POLICY);
    for _ in 0..2 {
        election.polled(HIGH.guid, None);
        election.polled(HIGH.guid, None);
        assert_eq!(election.state(), SmState::Standby);
        election.polled(HIGH.guid, Some(SmState::Master));
    }
    election.polled(LOW.guid, None); // an old poll of somebody else
    (0..2).for_each(|_| election.polled(HIGH.guid, None));
    assert_eq!(election.state(), SmState::Standby);
    election.polled(HIGH.guid, None);
    assert_eq!((election.state(), election.take_orders()), (SmState::Discovering, vec![Order::Examine]));
}

#[test]
fn who_was_asked_by_somebody_unmet_sweeps_again_but_not_for_ever() {
    let mut election = Election::new(OWN, POLICY);
    election.asked_by(Some(LOW.guid));
    let met = [peer(LOW, SmState::Standby)];
    assert_eq!((election.swept(&met), election.confirmed(&met)), (Verdict::Lead, Verdict::Lead));
    let mut election = Election::new(OWN, POLICY);
    for round in 0..=MOST_REPEATS {
        election.asked_by(None);
        assert_eq!(election.swept(&[]), Verdict::Lead);
        let expected = if round < MOST_REPEATS { Verdict::Again } else { Verdict::Lead };
        assert_eq!(election.confirmed(&[]), expected);
    }
    assert_eq!(election.state(), SmState::Master);
}

#[test]
fn a_higher_manager_that_never_becomes_master_does_not_keep_the_fabric_without_one() {
    let standing_by = [peer(HIGH, SmState::Standby)];
    let mut election = Election::new(OWN, POLICY);
    let let_down = |election: &mut Election| {
        (0..=POLICY.retries).for_each(|_| election.polled(HIGH.guid, Some(SmState::Standby)));
        assert_eq!(election.state(), SmState::Discovering);
    };
    assert_eq!(election.swept(&standing_by), Verdict::Yield);
    let_down(&mut election);
    assert_eq!(election.swept(&standing_by), Verdict::Lead);
    assert_eq!(election.confirmed(&standing_by), Verdict::Lead);
    // One handover, since it may not have known that it was its turn; when that is in vain too, none any more.
    assert_eq!(election.swept(&standing_by), Verdict::Yield);
    let_down(&mut election);
    for _ in 0..3 {
        assert_eq!(election.swept(&standing_by), Verdict::Lead);
        assert_eq!(election.confirmed(&standing_by), Verdict::Lead);
    }
    // As a master it counts like any other.
    assert_eq!(election.swept(&[peer(HIGH, SmState::Master)]), Verdict::Yield);
}

#[test]
fn who_was_stopped_for_long_or_has_no_link_is_not_master_any_more() {
    let mut election = in_state(SmState::Master, POLICY);
    election.lapsed();
    assert_eq!((election.state(), election.take_orders()), (SmState::Discovering, vec![Order::Examine]));
    let mut election = in_state(SmState::Master, POLICY);
    election.link_is_down();
    assert_eq!((election.state(), election.take_orders()), (SmState::Discovering, vec![Order::Stop]));
    let mut election = in_state(SmState::Standby, POLICY);
    for _ in 0..POLICY.retries {
        election.polled(HIGH.guid, None);
        election.lapsed();
    }
    assert_eq!(election.state(), SmState::Standby);
    election.polled(HIGH.guid, None);
    assert_eq!(election.state(), SmState::Discovering, "late polls count like others");
}
