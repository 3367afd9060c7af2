//! Files for other programs, by a thread of their own: the subnet manager waits for no disk.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use routing::formats::slurm;
use sm_core::config::FilesConfig;
use sm_core::metrics::Metrics;
use sm_core::observed::Observed;
use sm_core::sa::Figures;
use sm_core::sm::Report;
use sm_core::snapshot::Snapshot;

use crate::failure::Outcome;

/// Everybody may read what is written, as what runs beside us are others' programs.
const FOR_ALL: u32 = 0o644;
/// Where nothing is written at intervals.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// What is to be written; cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    state: Arc<Mutex<State>>,
    wake: Sender<()>,
}

#[derive(Default)]
struct State {
    metrics: Metrics,
    observed: Option<Arc<Observed>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread; ends when it is dropped after all [`Files`], with a last writing.
pub(crate) struct Writing(Option<JoinHandle<()>>);

impl Files {
    /// Starts writing; `None` where nothing is to be written.
    ///
    /// # Errors
    /// A file can't be written.
    pub(crate) fn start(config: &FilesConfig) -> Outcome<Option<(Self, Writing)>> {
        if config.metrics.is_none() && config.slurm_topology.is_none() {
            return Ok(None);
        }
        let (wake, woken) = bounded(1);
        let files = Self { state: Arc::default(), wake };
        let mut writer = Writer { config: config.clone(), state: Arc::clone(&files.state), topology: None };
        // Whoever named a place that can't be written to learns it at once.
        if let Some(path) = &config.metrics {
            replace(path, &lock(&writer.state).metrics.text(), FOR_ALL)
                .with_context(|| path.display().to_string())?;
        }
        if let Some(path) = &config.slurm_topology {
            check(path).with_context(|| path.display().to_string())?;
        }
        let thread = thread::Builder::new().name("files".into()).spawn(move || writer.run(&woken));
        Ok(Some((files, Writing(Some(thread.context("a thread for files")?)))))
    }

    pub(crate) fn report(&self, report: &Report) {
        lock(&self.state).metrics.round(report);
    }

    pub(crate) fn published(&self, snapshot: &Snapshot) {
        let mut state = lock(&self.state);
        state.metrics.picture(&snapshot.observed);
        state.observed = Some(Arc::clone(&snapshot.observed));
        // A wake that waits is one for this picture too.
        let _ = self.wake.try_send(());
    }

    pub(crate) fn figures(&self, figures: &Figures) {
        lock(&self.state).metrics.administration(figures);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

struct Writer {
    config: FilesConfig,
    state: Arc<Mutex<State>>,
    /// What was written last.
    topology: Option<String>,
}

impl Writer {
    fn run(&mut self, woken: &Receiver<()>) {
        let interval = match &self.config.metrics {
            Some(_) => Duration::from_secs(self.config.metrics_interval_s.into()),
            None => NEVER,
        };
        let mut next = Instant::now();
        loop {
            match woken.recv_deadline(next) {
                Ok(()) => self.write_topology(),
                Err(RecvTimeoutError::Timeout) => {
                    next = Instant::now() + interval;
                    self.write_metrics();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.write_topology();
        self.write_metrics();
    }

    fn write_metrics(&self) {
        let Some(path) = &self.config.metrics else { return };
        let metrics = lock(&self.state).metrics.clone();
        tell(path, replace(path, &metrics.text(), FOR_ALL));
    }

    /// A picture that differs in LIDs or groups only leaves the file alone.
    fn write_topology(&mut self) {
        let Some(path) = &self.config.slurm_topology else { return };
        let Some(observed) = lock(&self.state).observed.take() else { return };
        let text = slurm::write(&observed.fabric);
        if self.topology.as_ref() == Some(&text) {
            return;
        }
        let written = replace(path, &text, FOR_ALL);
        if written.is_ok() {
            self.topology = Some(text);
        }
        tell(path, written);
    }
}

fn tell(path: &Path, written: std::io::Result<()>) {
    if let Err(error) = written {
        tracing::error!(%error, "\"{}\" was not written", path.display());
    }
}

fn folder(path: &Path) -> PathBuf {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
        .to_path_buf()
}

fn check(path: &Path) -> std::io::Result<()> {
    tempfile::NamedTempFile::new_in(folder(path)).map(drop)
}

/// Writes a file whole, with these rights: a reader never sees half of it.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.persist(path)?;
    Ok(())
}
