//! The journal before the database: cut anywhere, moved to the database at any point, begun anew.

use std::fs;

use super::*;
use crate::store::entry::Entries;

/// Batches of changes, and the entries after each.
fn batches() -> (Vec<Vec<Change>>, Vec<Entries>) {
    let batches: Vec<Vec<Change>> = (0..7_u8)
        .map(|n| {
            let gone = Change { key: Key::new(Kind::Lids, vec![n / 2]), value: None };
            vec![set(n, &[n; 40]), gone, set(99, &[n])]
        })
        .collect();
    let mut states = vec![Entries::new()];
    for batch in &batches {
        let mut next = states.last().unwrap().clone();
        batch.iter().cloned().for_each(|change| change.apply_to(&mut next));
        states.push(next);
    }
    (batches, states)
}

fn open(dir: &Path) -> Entries {
    Journaled::open(dir, Sync::Grouped).unwrap().1
}

/// The directory as a process leaves it that is killed: nothing is folded at its end.
fn kill(store: Journaled) {
    std::mem::forget(store);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["state.redb", "state.journal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[test]
fn b48_cut_at_every_byte_each_whole_batch_is_there_and_nothing_of_the_next() {
    let (batches, states) = batches();
    let dir = tempfile::tempdir().unwrap();
    let (mut store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
    let journal = dir.path().join("state.journal");
    let mut ends = Vec::new();
    for batch in &batches {
        store.commit(batch).unwrap();
        assert!(!store.is_settled());
        ends.push(fs::read(&journal).unwrap().len());
    }
    while !store.is_settled() {
        store.settle().unwrap();
    }
    // A look by others sees it all.
    assert_eq!(peek_entries(dir.path()).unwrap(), *states.last().unwrap());
    let bytes = fs::read(&journal).unwrap();
    let killed = dir.path().join("killed");
    copy(dir.path(), &killed);
    kill(store);
    for cut in 0..=bytes.len() {
        let whole = ends.iter().take_while(|end| **end <= cut).count();
        let frames = crate::store::journal::read(&bytes[..cut]);
        assert_eq!(frames.len(), whole, "cut at {cut}");
        // The whole way through the files at each end of a batch and in the middle of each.
        if ends.iter().any(|end| cut.abs_diff(*end) <= 1) || cut % 97 == 0 {
            let again = dir.path().join(format!("cut{cut}"));
            copy(&killed, &again);
            fs::write(again.join("state.journal"), &bytes[..cut]).unwrap();
            assert_eq!(open(&again), states[whole], "cut at {cut}");
            assert_eq!(open(&again), states[whole], "and once more, cut at {cut}");
        }
    }
    for damaged in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[damaged] ^= 0x10;
        let frames = crate::store::journal::read(&wrong);
        let before = ends.iter().take_while(|end| **end <= damaged).count();
        assert_eq!(frames.len(), before, "byte {damaged}: all before it, and nothing of it or after");
    }
}

#[test]
fn b48_killed_between_the_database_and_the_new_journal_nothing_goes_back() {
    let (batches, states) = batches();
    let dir = tempfile::tempdir().unwrap();
    let (mut store, ..) = Journaled::open(dir.path(), Sync::Each).unwrap();
    store.commit(&batches[0]).unwrap();
    store.commit(&batches[1]).unwrap();
    assert!(store.is_settled(), "each commit for itself");
    let old = fs::read(dir.path().join("state.journal")).unwrap();
    drop(store); // all of it goes to the database
    let folded = dir.path().join("folded");
    copy(dir.path(), &folded);
    fs::write(folded.join("state.journal"), &old).unwrap();
    assert_eq!(open(&folded), states[2], "the database and the journal that it holds already");
    // New frames over the old ones, whose rest still lies behind them.
    let (mut store, ..) = Journaled::open(&folded, Sync::Grouped).unwrap();
    store.commit(&batches[2]).unwrap();
    let mut new = fs::read(folded.join("state.journal")).unwrap();
    kill(store);
    let mixed = dir.path().join("mixed");
    copy(dir.path(), &mixed);
    new.extend(old.get(new.len()..).unwrap_or_default());
    fs::write(mixed.join("state.journal"), &new).unwrap();
    assert_eq!(open(&mixed), states[3]);
}

#[test]
fn only_its_owner_reads_the_journal() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (mut store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
    store.commit(&[set(1, b"x")]).unwrap();
    let mode = fs::metadata(dir.path().join("state.journal")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn b18_a_journal_of_a_damaged_database_is_set_aside_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
    store.commit(&[set(1, b"x")]).unwrap();
    let killed = dir.path().join("killed");
    copy(dir.path(), &killed);
    fs::write(killed.join("state.redb"), b"not a database").unwrap();
    let (store, entries, told) = Journaled::open(&killed, Sync::Grouped).unwrap();
    assert!(entries.is_empty() && told.iter().any(|line| line.contains("state.journal")), "{told:?}");
    assert!(killed.join("state.journal.damaged").exists());
    drop(store);
}

#[test]
fn commits_are_settled_together_and_soon() {
    let dir = tempfile::tempdir().unwrap();
    let (store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
    let mut outbox = Outbox::new(Box::new(store));
    let at = |ms: u64| Timestamp(ms * 1_000_000);
    outbox.write(&[set(1, b"a")], at(0));
    outbox.write(&[set(2, b"b")], at(60));
    assert_eq!(outbox.deadline(), Some(at(100)), "counted from the first");
    outbox.write(&[], at(99));
    assert!(outbox.deadline().is_some());
    // The disk is not waited for, but asked again.
    let mut rounds = (1..).map(|n| at(100 * n));
    while let Some(due) = outbox.deadline() {
        let now = rounds.next().unwrap();
        assert_eq!(due, now);
        outbox.write(&[], now);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(outbox.trouble(), None);
}
