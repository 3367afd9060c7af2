//! One file for each command.

mod config;
mod devices;
mod discover;
mod emulate;
mod run;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};

/// Runs the command that was asked for.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Config(command) => config::run(&command),
        Command::Devices(args) => devices::run(&args),
        Command::Discover(args) => discover::run(&args),
        Command::Emulate(args) => emulate::run(&args),
        Command::Run(args) => run::run(&args),
        _ => Err(Failure::Usage("not built yet".into())),
    }
}
