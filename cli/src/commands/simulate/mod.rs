//! `rsm simulate`: fabrics and faults that exist only here. One file for each kind of study.

mod chaos;
mod failures;
mod scenario;
mod trace;
mod traffic;

use crate::args::Simulate;
use crate::failure::Outcome;

pub(super) fn run(command: &Simulate) -> Outcome {
    match command {
        Simulate::Scenario(args) => scenario::run(args),
        Simulate::Chaos(args) => chaos::run(args),
        Simulate::Failures(args) => failures::run(args),
        Simulate::Traffic(args) => traffic::run(args),
    }
}
