//! The `rsm` command line: arguments, output, progress, nothing else.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod dump;
mod failure;
mod files;
mod host;
mod logging;
mod out;
mod progress;
mod secret;
mod settings;
mod summary;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::run(args::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
