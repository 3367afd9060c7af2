//! `rsm config show|check`.

use crate::args::Config;
use crate::failure::Outcome;
use crate::{out, settings};

pub(super) fn run(command: &Config) -> Outcome {
    match command {
        Config::Show(flags) => out::write(&settings::effective(flags)?.to_commented_toml()),
        Config::Check { file } => {
            settings::manager(&settings::load(file)?, Some(file))?;
            out::line(&format!("{}: no errors", file.display()))
        }
    }
}
