//! The one place that writes to standard output. `println!` panics when the reader has left; this ends the command.

use std::io::{ErrorKind, Write};

use anyhow::Context;

use crate::failure::{Failure, Outcome};

/// Writes text as it is.
pub(crate) fn write(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderLeft),
        Err(error) => Err(error).context("standard output").map_err(Failure::Failed),
    }
}

/// Writes text and a line end.
pub(crate) fn line(text: &str) -> Outcome {
    write(&format!("{text}\n"))
}

/// Writes a value as one JSON document.
pub(crate) fn json(value: &impl serde::Serialize) -> Outcome {
    line(&serde_json::to_string_pretty(value)?)
}
