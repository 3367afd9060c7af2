//! `rsm config show|check`.

use crate::args::Config;
use crate::failure::{Failure, Outcome};
use crate::{out, settings};

pub(super) fn run(command: &Config) -> Outcome {
    match command {
        Config::Show(flags) => out::write(&settings::effective(flags)?.to_commented_toml()),
        Config::Check { file } => {
            // What is asked is whether this file can be used: one that can't be read can't.
            let unreadable = |failure: Failure| match failure {
                failure @ Failure::Failed(_) => Failure::Usage(failure.into_text()),
                failure => failure,
            };
            let config = settings::load(file).map_err(unreadable)?;
            settings::manager(&config, Some(file)).map_err(unreadable)?;
            out::line(&format!("{}: no errors", file.display()))
        }
    }
}
