//! Progress on a terminal; nothing anywhere else.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::logging::LogTarget;

/// One line that says how far a stage is.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A line on standard error, if that is a terminal.
    pub(crate) fn start(log: &LogTarget, what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = log.bars().add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {prefix}: {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    /// Replaces what it says.
    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_message(text());
        }
    }
}

/// A bar for work of known length.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// On standard error; shows nothing where that is no terminal.
    pub(crate) fn start(length: usize, what: &str) -> Self {
        let bar = ProgressBar::new(length as u64);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {eta:>4} left") {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        Self(bar)
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
