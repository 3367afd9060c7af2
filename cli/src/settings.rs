//! The effective configuration: defaults, then the file, then flags.

use std::path::{Path, PathBuf};

use routing::engines;
use sm_core::config::{Config, ConfigError, SteeringError};
use sm_core::settings::SmSettings;

use crate::args::{PortChoice, Settings};
use crate::failure::{Failure, Outcome};

/// The file that is read when none is named, if it exists.
const DEFAULT_FILE: &str = "/etc/rsm/rsm.toml";

/// Reads the file and lays the flags over it. Called again at SIGHUP.
///
/// # Errors
/// The file is unreadable or refused: exit code 2 when it is wrong, 1 when it can't be read.
pub(crate) fn effective(settings: &Settings) -> Outcome<Config> {
    let mut config = match file_of(settings) {
        Some(path) => load(&path)?,
        None => Config::default(),
    };
    choose_port(&mut config, &settings.port);
    if let Some(priority) = settings.priority {
        config.sm.priority = priority;
    }
    check_chain(&settings.engine)?;
    if !settings.engine.is_empty() {
        config.routing.engines.clone_from(&settings.engine);
    }
    if let Some(dir) = &settings.state_dir {
        config.state.dir.clone_from(dir);
    }
    if let Some(level) = settings.log_level {
        config.log.level = level;
    }
    Ok(config)
}

/// Refuses a chain of engines with a name that is none, or with `no_fallback` elsewhere than at its end.
///
/// # Errors
/// Exit code 2.
pub(crate) fn check_chain(chain: &[String]) -> Outcome {
    for name in chain.iter().filter(|name| *name != engines::NO_FALLBACK) {
        engines::by_name(name).map_err(|unknown| Failure::Usage(unknown.to_string()))?;
    }
    match chain.iter().position(|name| name == engines::NO_FALLBACK) {
        Some(at) if at == 0 || at + 1 < chain.len() => {
            let (chain, word) = (chain.join(","), engines::NO_FALLBACK);
            Err(Failure::Usage(format!("--engine {chain}: {word} stands at the end, after an engine")))
        }
        _ => Ok(()),
    }
}

/// What a list that steers routing costs when it can't be used.
pub(crate) fn steering_failure(error: SteeringError) -> Failure {
    match error {
        SteeringError::Wrong(_) => Failure::Usage(error.to_string()),
        SteeringError::Unreadable { .. } => Failure::Failed(error.into()),
    }
}

/// The file that applies: the one named, else the default one where it exists.
pub(crate) fn file_of(settings: &Settings) -> Option<PathBuf> {
    settings.config.clone().or_else(|| {
        let default = Path::new(DEFAULT_FILE);
        default.exists().then(|| default.to_path_buf())
    })
}

/// Reads one file.
///
/// # Errors
/// As [`effective`].
pub(crate) fn load(path: &Path) -> Outcome<Config> {
    Config::load(path).map_err(config_failure)
}

/// The manager's settings of a configuration, with the files that it names.
///
/// # Errors
/// One of the files can't be used: exit code 2, with `file`, the configuration's own, in front when one can't be read.
pub(crate) fn manager(config: &Config, file: Option<&Path>) -> Outcome<SmSettings> {
    SmSettings::load(config).map_err(|error| match (error, file) {
        (error @ ConfigError::Missing { .. }, Some(file)) => {
            Failure::Usage(format!("{}: {error}", file.display()))
        }
        (error, _) => config_failure(error),
    })
}

/// What a configuration, or a file that it names, costs when it can't be used.
fn config_failure(error: ConfigError) -> Failure {
    match error {
        ConfigError::Invalid { .. } | ConfigError::Exposed { .. } | ConfigError::Missing { .. } => {
            Failure::Usage(error.to_string())
        }
        ConfigError::Unreadable { .. } => Failure::Failed(error.into()),
        ConfigError::Steering(error) => steering_failure(error),
    }
}

/// A port named by flags replaces the file's choice as a whole: half of one and half of the other means neither.
fn choose_port(config: &mut Config, choice: &PortChoice) {
    if choice.device.is_none() && choice.port.is_none() && choice.guid.is_none() {
        return;
    }
    config.device.name.clone_from(&choice.device);
    config.device.port = choice.port;
    config.device.guid = choice.guid;
}
