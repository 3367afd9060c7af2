//! Topology and tables as files that stock tools read (`ibdmchk`, `opensm` with its file engine, `ibdiagnet`), written after
//! each change.

use std::path::{Path, PathBuf};

use anyhow::Context;
use routing::formats::{fdbs, lst, mcfdbs};
use sm_core::snapshot::Snapshot;

use crate::commands::tables;
use crate::failure::Outcome;
use crate::files::replace;

/// A folder for dumps.
pub(crate) struct Dump {
    dir: PathBuf,
}

impl Dump {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// It can't be made.
    pub(crate) fn new(dir: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("dump directory {}", dir.display()))?;
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// Writes all files. One that can't be written is told in the log; the fabric does not wait for it.
    pub(crate) fn write(&self, snapshot: &Snapshot) {
        let fabric = &snapshot.observed.fabric;
        let files = [
            ("opensm-subnet.lst", lst::write(fabric, Some(snapshot.sm.lid))),
            ("opensm.fdbs", fdbs::write(&snapshot.graph, &snapshot.routes)),
            ("opensm.mcfdbs", mcfdbs::write(&mcfdbs::by_guid(&snapshot.graph, &snapshot.multicast))),
        ];
        let levels = tables::levels(&snapshot.graph, &snapshot.routes);
        for (name, text) in files.map(|(name, text)| (name, Some(text))).into_iter().chain(levels) {
            let path = self.dir.join(name);
            let written = match text {
                Some(text) => replace(&path, &text, 0o600),
                None => tables::remove(&path),
            };
            if let Err(error) = written {
                tracing::error!(file = %path.display(), %error, "the dump was not written");
            }
        }
    }
}
