//! Text files of versions before the database: read once, and set aside as `NAME.adopted`.

use std::path::Path;

use super::entry::{Change, Entries, difference};
use super::{StateStore, StoreError, file, lids, quirks, typed};

/// Takes the text files of a state directory into a store that has no entries of their kind. Returns lines for the log.
///
/// # Errors
/// A file can't be read, or the store not written; the files are still there then.
pub fn adopt(
    dir: &Path,
    store: &mut dyn StateStore,
    entries: &mut Entries,
) -> Result<Vec<String>, StoreError> {
    let mut told = Vec::new();
    let old = [
        (lids::FILE, file::read(&dir.join(lids::FILE))?),
        (quirks::FILE, file::read(&dir.join(quirks::FILE))?),
    ];
    let mut found = Entries::new();
    for (name, bytes) in &old {
        let Some(bytes) = bytes else { continue };
        let complaints = if *name == lids::FILE {
            let parsed = lids::parse(bytes);
            found.extend(typed::lid_entries(&parsed.entries));
            parsed.complaints
        } else {
            let parsed = quirks::parse(bytes);
            found.extend(typed::quirk_entries(&parsed.entries));
            parsed.complaints
        };
        told.extend(complaints.iter().map(|c| format!("{}: {c}", dir.join(name).display())));
    }
    let changes: Vec<Change> = difference(&Entries::new(), &found)
        .into_iter()
        .filter(|change| !entries.keys().any(|key| key.kind == change.key.kind))
        .collect();
    if !changes.is_empty() {
        store.commit(&changes)?;
        changes.into_iter().for_each(|change| change.apply_to(entries));
    }
    for (name, _) in old.iter().filter(|(_, bytes)| bytes.is_some()) {
        let to = file::set_aside(&dir.join(name), "adopted")?;
        told.push(format!("{}: taken over, and set aside as {}", dir.join(name).display(), to.display()));
    }
    Ok(told)
}
