//! B18: damaged files, and writes that fail.

use std::fs;

use mad::types::{Guid, Lid, PortNum};

use super::*;
use crate::plan::fields::{FieldSet, PortField};
use crate::plan::lids::LidRange;

fn range(lid: u16, lmc: u8) -> LidRange {
    LidRange::new(Lid::new(lid).unwrap(), lmc).unwrap()
}

#[test]
fn what_is_saved_is_restored_and_an_unchanged_state_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, restored) = Store::open(dir.path()).unwrap();
    assert!(restored.lids.is_empty() && restored.complaints.is_empty());
    let lids = LidMemory::from([(Guid(5), range(8, 3)), (Guid(6), range(1, 0))]);
    let mut quirks = Quirks::default();
    quirks.add(Guid(5), PortNum(1), FieldSet::EMPTY.with(PortField::SubnetTimeout));
    assert!(store.save_lids(&lids).unwrap() && store.save_quirks(&quirks).unwrap());
    assert!(!store.save_lids(&lids).unwrap() && !store.save_quirks(&quirks).unwrap());

    let (mut again, restored) = Store::open(dir.path()).unwrap();
    assert_eq!((restored.lids, restored.quirks), (lids.clone(), quirks));
    assert!(restored.complaints.is_empty());
    assert!(!again.save_lids(&lids).unwrap(), "written only on change, over restarts too");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn b18_good_lines_of_a_damaged_file_are_kept_and_bad_ones_named() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = b"rsm-lids 1\n0x1 4 2\n0x2 6 1\n0x3 9 0\n0x3 10 0\n\0\0\0\n0x4 49152 0\n0x5 12 0\n0x6 13";
    fs::write(dir.path().join("lids"), damaged).unwrap();
    let (_, restored) = Store::open(dir.path()).unwrap();
    let kept: Vec<u64> = restored.lids.keys().map(|g| g.0).collect();
    assert_eq!(kept, [1, 3, 5]);
    for (line, why) in [(3, "belongs to"), (5, "twice"), (6, "expected"), (7, "1 to 49151"), (9, "cut off")] {
        let named = |c: &String| c.contains(&format!("line {line}:")) && c.contains(why);
        assert!(restored.complaints.iter().any(named), "line {line}: {:?}", restored.complaints);
    }
    assert!(!dir.path().join("lids").exists() && dir.path().join("lids.damaged").exists());
}

#[test]
fn b18_a_file_of_another_kind_or_version_is_set_aside_whole() {
    for content in [&b""[..], b"rsm-lids 2\n0x1 4 0\n", b"\xff\xfe\0binary", b"rsm-lids 1"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("lids"), content).unwrap();
        let (mut store, restored) = Store::open(dir.path()).unwrap();
        assert!(restored.lids.is_empty() && !restored.complaints.is_empty());
        assert!(store.save_lids(&LidMemory::from([(Guid(1), range(1, 0))])).unwrap());
        assert!(Store::open(dir.path()).unwrap().1.complaints.is_empty());
    }
}

#[test]
fn b18_a_write_that_fails_is_an_error_and_the_old_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    let old = LidMemory::from([(Guid(1), range(1, 0))]);
    store.save_lids(&old).unwrap();
    let aside = dir.path().join("gone");
    fs::create_dir(&aside).unwrap();
    fs::rename(dir.path().join("lids"), aside.join("lids")).unwrap();
    fs::create_dir(dir.path().join("lids")).unwrap(); // a directory in the place of the file: no rename over it
    let error = store.save_lids(&LidMemory::from([(Guid(1), range(2, 0))])).unwrap_err();
    assert!(error.to_string().contains("lids"), "{error}");
    assert!(Store::open(&dir.path().join("lids").join("x").join("\0")).is_err());
}
