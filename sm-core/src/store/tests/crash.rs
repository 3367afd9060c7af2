//! The manager is killed, or the power goes, at every single write of the database.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use redb::{Database, StorageBackend};

use super::*;
use crate::store::embedded::{read_all, write};

/// A disk with a cache: what was not synced may or may not be there after the end.
#[derive(Debug, Default)]
struct Disk {
    synced: Vec<u8>,
    cached: Vec<u8>,
    /// Writes since the last sync.
    dirty: Vec<(usize, Vec<u8>)>,
    /// Operations until the end.
    left: u64,
}

impl Disk {
    fn use_up(&mut self) -> Result<(), io::Error> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the machine is off"))?;
        Ok(())
    }

    /// What the platters hold after the end: any of the writes since the last sync, one of them perhaps in part.
    fn after_power_loss(&self, random: &mut Pcg64Mcg) -> Vec<u8> {
        let mut image = self.synced.clone();
        image.resize(self.cached.len().max(image.len()), 0);
        for (at, bytes) in &self.dirty {
            let kept = match random.random_range(0..4_u8) {
                0 => 0,
                1 => random.random_range(0..=bytes.len()),
                _ => bytes.len(),
            };
            image[*at..at + kept].copy_from_slice(&bytes[..kept]);
        }
        image
    }
}

#[derive(Clone, Debug, Default)]
struct Backend(Arc<Mutex<Disk>>);

impl Backend {
    fn holding(image: Vec<u8>, left: u64) -> Self {
        Self(Arc::new(Mutex::new(Disk { synced: image.clone(), cached: image, dirty: Vec::new(), left })))
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.0.lock().unwrap().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let disk = self.0.lock().unwrap();
        let from = offset as usize;
        let part = disk.cached.get(from..from + out.len());
        out.copy_from_slice(part.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let mut disk = self.0.lock().unwrap();
        disk.use_up()?;
        disk.cached.resize(len as usize, 0);
        disk.synced.resize(len as usize, 0); // lengths are kept in order by the file system
        disk.dirty.retain(|(at, bytes)| at + bytes.len() <= len as usize);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut disk = self.0.lock().unwrap();
        disk.use_up()?;
        disk.synced = disk.cached.clone();
        disk.dirty.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut disk = self.0.lock().unwrap();
        disk.use_up()?;
        let from = offset as usize;
        disk.cached[from..from + data.len()].copy_from_slice(data);
        disk.dirty.push((from, data.to_vec()));
        Ok(())
    }
}

fn open(backend: Backend) -> Result<Database, redb::DatabaseError> {
    Database::builder().create_with_backend(backend)
}

/// Commits of a few entries each, in turn set, overwritten and removed.
fn commits() -> Vec<Vec<Change>> {
    (0..6_u8)
        .map(|n| {
            let long = vec![n; 600];
            let mut changes = vec![set(n, &long), set(100, &[n]), set(n / 2, &[n, n])];
            if n > 2 {
                changes.push(Change { key: Key::new(Kind::Lids, vec![n - 2]), value: None });
            }
            changes
        })
        .collect()
}

/// Runs until the end; returns how many commits were reported as done.
fn run(backend: &Backend, commits: &[Vec<Change>]) -> usize {
    let Ok(database) = open(backend.clone()) else { return 0 };
    commits.iter().take_while(|changes| write(&database, changes).is_ok()).count()
}

fn seed() -> u64 {
    std::env::var("RSM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn b48_killed_at_every_write_point_every_reported_commit_is_there_and_whole() {
    let seed = seed();
    println!("RSM_SEED={seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let commits = commits();
    let mut states = vec![Entries::new()];
    for changes in &commits {
        let mut next = states.last().unwrap().clone();
        changes.iter().cloned().for_each(|change| change.apply_to(&mut next));
        states.push(next);
    }
    let whole = Backend::holding(Vec::new(), u64::MAX);
    assert_eq!(run(&whole, &commits), commits.len());
    let operations = u64::MAX - whole.0.lock().unwrap().left;
    assert!(operations > 20, "{operations} write points");
    let mut seen = BTreeMap::new();
    for end in 0..operations {
        let backend = Backend::holding(Vec::new(), end);
        let reported = run(&backend, &commits);
        // Twice: as after SIGKILL, where the system still writes what it has, and as after a power cut.
        let images = {
            let disk = backend.0.lock().unwrap();
            [disk.cached.clone(), disk.after_power_loss(&mut random)]
        };
        for (power_cut, image) in images.into_iter().enumerate() {
            let after = Backend::holding(image, u64::MAX);
            let context = format!("end at write {end}, power cut {power_cut}, {reported} commits reported");
            let database = match open(after.clone()) {
                Ok(database) => database,
                // The file's own head was being written: there was nothing in it yet.
                Err(error) => {
                    assert_eq!(reported, 0, "{context}: {error}");
                    continue;
                }
            };
            let found = read_all(Path::new("disk"), &database).unwrap();
            let which = states[reported..].iter().take(2).position(|state| *state == found);
            assert!(which.is_some(), "{context}: {} entries", found.len());
            *seen.entry(reported + which.unwrap_or(0)).or_insert(0) += 1;
            write(&database, &[set(200, b"goes on")]).unwrap();
        }
    }
    assert_eq!(seen.len(), states.len(), "each state was met: {seen:?}");
}

/// A store on a disk that fails now and then, for as long as it is told.
struct Failing {
    entries: Entries,
    broken: Arc<Mutex<bool>>,
}

impl StateStore for Failing {
    fn name(&self) -> String {
        "disk".into()
    }

    fn load(&mut self) -> Result<Entries, StoreError> {
        Ok(self.entries.clone())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        if *self.broken.lock().unwrap() {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            return Err(StoreError::File { path: "disk".into(), what: "can't write", source });
        }
        changes.iter().cloned().for_each(|change| change.apply_to(&mut self.entries));
        Ok(())
    }

    fn set_aside(&mut self, _: &str) -> Result<String, StoreError> {
        self.entries.clear();
        Ok("aside".into())
    }
}

#[test]
fn b18_a_full_disk_keeps_changes_waiting_and_they_are_written_later() {
    let broken = Arc::new(Mutex::new(true));
    let store = Failing { entries: Entries::new(), broken: Arc::clone(&broken) };
    let mut outbox = Outbox::new(Box::new(store));
    let at = |ms: u64| Timestamp(ms * 1_000_000);
    outbox.write(&[set(1, b"a"), set(2, b"b")], at(0));
    outbox.write(&[set(1, b"c")], at(10));
    assert_eq!(outbox.waiting(), 2, "merged by key");
    assert!(outbox.trouble().unwrap().contains("can't write"));
    *broken.lock().unwrap() = false;
    let deadline = outbox.deadline().unwrap();
    assert_eq!(deadline, at(2000));
    outbox.write(&[], deadline);
    assert_eq!((outbox.waiting(), outbox.trouble(), outbox.deadline()), (0, None, None));
}
