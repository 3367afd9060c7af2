//! One file for each command.

mod adaptive;
mod config;
mod console;
mod demo;
mod devices;
mod discover;
mod emulate;
mod generate;
mod load;
mod offline;
mod plan;
mod query;
mod run;
mod simulate;
mod steering;
pub(crate) mod tables;
#[cfg(feature = "verbs")]
mod verbs;
mod verify;
mod without_lid;

use crate::args::{Cli, Command};
use crate::failure::Outcome;

/// Runs the command that was asked for.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Config(command) => config::run(&command),
        Command::Demo(args) => demo::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Discover(args) => discover::run(&args),
        Command::Emulate(args) => emulate::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Route(args) => offline::route(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Simulate(command) => simulate::run(&command),
    }
}
