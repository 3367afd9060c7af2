//! Log lines: to standard error or to a file that can be reopened (SIGUSR1, after log rotation), never through a progress
//! bar that is being drawn. Lines that repeat are counted ([`merged`]).

mod merged;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use indicatif::MultiProgress;
use sm_core::config::{LogConfig, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt};

use self::merged::Merged;
use crate::failure::Outcome;

/// Where log lines go; cheap to clone.
#[derive(Clone)]
pub(crate) struct LogTarget {
    path: Option<PathBuf>,
    file: Arc<Mutex<Option<File>>>,
    bars: MultiProgress,
    merged: Merged,
}

/// Starts logging. Call once.
///
/// # Errors
/// The log file can't be opened.
pub(crate) fn init(config: &LogConfig) -> Outcome<LogTarget> {
    let target = LogTarget {
        path: config.file.clone(),
        file: Arc::new(Mutex::new(None)),
        bars: MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stderr()),
        merged: Merged::new(),
    };
    target.reopen()?;
    let level = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines = fmt::layer().with_ansi(false).with_target(false).with_writer(target.clone());
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    Registry::default().with(lines.with_filter(target.merged.clone())).with(level).init();
    Ok(target)
}

impl LogTarget {
    /// Opens the file anew, so that a renamed one is let go.
    ///
    /// # Errors
    /// It can't be opened; lines then still go to the old one.
    pub(crate) fn reopen(&self) -> Outcome {
        let Some(path) = &self.path else { return Ok(()) };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("log file {}", path.display()))?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    /// Writes the counts of lines that were held back: at the end.
    pub(crate) fn tell_rest(&self) {
        self.merged.tell_rest();
    }

    /// The progress bars that lines must not be written through.
    pub(crate) fn bars(&self) -> &MultiProgress {
        &self.bars
    }
}

impl Write for LogTarget {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match file.as_mut() {
            Some(file) => file.write(buffer),
            None => self.bars.suspend(|| io::stderr().write(buffer)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogTarget {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
