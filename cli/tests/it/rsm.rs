//! Runs the binary.

use std::process::{Command, Output, Stdio};

/// What it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
}

/// The binary, without input and without a system configuration of its own.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rsm"));
    command.args(args).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Runs it to its end.
pub(crate) fn rsm(args: &[&str]) -> Said {
    said(command(args).output().expect("rsm runs"))
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
        code: output.status.code(),
    }
}

impl Said {
    /// A failure as it has to be: the code, one line on standard error, nothing on standard output, no panic.
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "not one line: {}", self.err);
        assert!(self.err.starts_with("rsm: "), "{}", self.err);
        assert!(!self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"), "{}", self.err);
        assert_eq!(self.out, "");
        self.err.trim_end()
    }

    /// Input that can't be used, since an engine needs more than the one lane that the flag says there is; told last.
    pub(crate) fn lacks_lanes(&self, flag: &str, engine: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        let last = self.err.lines().last().expect("a line");
        assert!(last.starts_with(&format!("rsm: {flag} 1: {engine}: needs ")), "{self:?}");
        assert!(last.ends_with(" virtual lanes, the links have 1"), "{self:?}");
    }
}
