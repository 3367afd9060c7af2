//! The state directory: what is adopted, set aside, refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mad::types::PortNum;

use super::*;
use crate::plan::fields::{FieldSet, PortField};

fn save(dir: &Path, memory: &LidMemory) {
    let (mut store, entries, _) = Embedded::open(dir).unwrap();
    store.commit(&difference(&entries, &typed::lid_entries(memory))).unwrap();
}

#[test]
fn what_is_saved_is_restored_and_nobody_else_may_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let lids = LidMemory::from([(Guid(5), range(8, 3)), (Guid(6), range(1, 0))]);
    let mut quirks = Quirks::default();
    quirks.add(Guid(5), PortNum(1), FieldSet::EMPTY.with(PortField::SubnetTimeout));
    let (mut store, entries, told) = Embedded::open(dir.path()).unwrap();
    assert!(entries.is_empty() && told.is_empty());
    let mut all = typed::lid_entries(&lids);
    all.extend(typed::quirk_entries(&quirks));
    store.commit(&difference(&entries, &all)).unwrap();
    drop(store);
    let (_, entries, told) = Embedded::open(dir.path()).unwrap();
    assert!(told.is_empty(), "{told:?}");
    let restored = Restored::of(&entries);
    assert_eq!((restored.lids, restored.quirks), (lids, quirks));
    assert!(restored.complaints.is_empty());
    let mode = fs::metadata(dir.path().join("state.redb")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_that_others_may_read_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &LidMemory::from([(Guid(1), range(1, 0))]));
    let path = dir.path().join("state.redb");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Embedded::open(dir.path()).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn b18_good_lines_of_an_older_text_file_are_adopted_and_bad_ones_named() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = b"rsm-lids 1\n0x1 4 2\n0x2 6 1\n0x3 9 0\n0x3 10 0\n\0\0\0\n0x4 49152 0\n0x5 12 0\n0x6 13";
    fs::write(dir.path().join("lids"), damaged).unwrap();
    fs::write(dir.path().join("ports-not-kept"), "rsm-ports-not-kept 1\n0x9 1 SubnetTimeOut\n").unwrap();
    let (mut store, mut entries, _) = Embedded::open(dir.path()).unwrap();
    let told = adopt::adopt(dir.path(), &mut store, &mut entries).unwrap();
    drop(store);
    let restored = Restored::of(&Embedded::open(dir.path()).unwrap().1);
    assert_eq!(restored.lids.keys().map(|g| g.0).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(restored.quirks.len(), 1);
    for (line, why) in [(3, "belongs to"), (5, "twice"), (6, "expected"), (7, "1 to 49151"), (9, "cut off")] {
        let named = |c: &String| c.contains(&format!("line {line}:")) && c.contains(why);
        assert!(told.iter().any(named), "line {line}: {told:?}");
    }
    assert!(!dir.path().join("lids").exists() && dir.path().join("lids.adopted").exists());
    assert!(dir.path().join("ports-not-kept.adopted").exists());
}

#[test]
fn an_older_text_file_does_not_replace_what_the_database_holds() {
    let dir = tempfile::tempdir().unwrap();
    let lids = LidMemory::from([(Guid(1), range(7, 0))]);
    save(dir.path(), &lids);
    fs::write(dir.path().join("lids"), "rsm-lids 1\n0x1 4 2\n").unwrap();
    let (mut store, mut entries, _) = Embedded::open(dir.path()).unwrap();
    adopt::adopt(dir.path(), &mut store, &mut entries).unwrap();
    assert_eq!((lids_of(&entries), lids_of(&store.load().unwrap())), (lids.clone(), lids));
}

#[test]
fn b18_a_damaged_file_is_set_aside_and_a_new_one_begun() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.redb");
    save(dir.path(), &LidMemory::from([(Guid(1), range(1, 0))]));
    let good = fs::read(&path).unwrap();
    let mut broken_head = good.clone();
    broken_head[..64].fill(0xa5);
    let contents = [Vec::new(), b"not a database".to_vec(), good[..good.len() / 3].to_vec(), broken_head];
    for (n, content) in contents.iter().enumerate() {
        fs::write(&path, content).unwrap();
        let (mut store, entries, told) = Embedded::open(dir.path()).unwrap();
        let empty = n == 0; // an empty file is a database that nothing was written to
        assert!(entries.is_empty() && told.is_empty() == empty, "content {n}: {told:?}");
        store.commit(&[set(1, b"x")]).unwrap();
        drop(store);
        assert_eq!(Embedded::open(dir.path()).unwrap().1.len(), 1);
    }
    let aside = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(aside.filter(|name| name.starts_with("state.redb.damaged")).count(), contents.len() - 1);
}

#[test]
fn a_file_of_a_later_version_is_set_aside_with_its_version() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &LidMemory::from([(Guid(1), range(1, 0))]));
    {
        let database = redb::Database::open(dir.path().join("state.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction
            .open_table(redb::TableDefinition::<&str, u64>::new("meta"))
            .unwrap()
            .insert("format", 7)
            .unwrap();
        transaction.commit().unwrap();
    }
    let (_, entries, told) = Embedded::open(dir.path()).unwrap();
    assert!(entries.is_empty());
    assert!(told[0].contains("format 7") && told[1].contains("state.redb.later"), "{told:?}");
}

#[test]
fn two_processes_do_not_write_one_directory_but_one_may_look() {
    let dir = tempfile::tempdir().unwrap();
    let lids = LidMemory::from([(Guid(1), range(1, 0))]);
    save(dir.path(), &lids);
    let (_running, ..) = Embedded::open(dir.path()).unwrap();
    let refused = Embedded::open(dir.path()).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    assert_eq!(peek(dir.path()).unwrap().lids, lids);
    assert!(peek(&dir.path().join("none")).unwrap().lids.is_empty());
}
