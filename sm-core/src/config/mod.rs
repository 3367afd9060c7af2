//! The configuration file: TOML, every key with a default, and an error that names file, line, column, key and what is
//! allowed for anything that can't be meant (B69: a value is never clamped or read as something else).
//!
//! Serde reads the text into raw types that keep where each value stood; those are then checked into [`Config`]. The
//! sections are declared in one table ([`sections`]), from which the types, the defaults, the checks and the comments of
//! `rsm config show` come.

mod error;
mod keys;
mod qos;
mod render;
mod sections;
mod setting;
mod steering;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

pub use error::ConfigError;
pub use keys::SecretKey;
pub use sections::{
    Config, DeviceConfig, EtcdConfig, FailoverConfig, FilesConfig, LidsConfig, LogConfig, MKeyConfig,
    PartitionsConfig, PortsConfig, QosConfig, RoutingConfig, SaConfig, SmConfig, StateConfig,
    TransactionsConfig,
};
pub use setting::{Acknowledge, Hex64, LidTakeover, LogFormat, LogLevel, StateSync, Urls};
pub use steering::{SteeringError, read};
pub(crate) use text::text;

use error::Source;
use sections::raw;

/// A third of it is the time in which all ports are asked.
const SHORTEST_LEASE_S: u16 = 10;

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file can't be read, or something in it can't be meant; nothing of it is used then.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = std::fs::read(path)
            .map_err(|source| ConfigError::Unreadable { file: path.to_path_buf(), source })?;
        let text = String::from_utf8(bytes).map_err(|error| not_text(path, &error))?;
        let config = Self::parse(&text, path)?;
        if config.m_key.key.is_some() {
            keys::private(path)?;
        }
        Ok(config)
    }

    /// Checks the text of a file; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, name: &Path) -> Result<Self, ConfigError> {
        let source = Source { text, name };
        let raw: raw::Root = toml::from_str(text).map_err(|e| source.syntax(&e))?;
        let config = Self::check(raw).map_err(|refused| source.refused(&refused))?;
        match config.contradiction() {
            Some((key, message)) => Err(source.contradiction(key, &message)),
            None => Ok(config),
        }
    }

    /// Puts the key that names a file in front of an error of reading it.
    pub(crate) fn blame(&self, error: ConfigError) -> ConfigError {
        let (file, source) = match error {
            ConfigError::Unreadable { file, source }
            | ConfigError::Steering(SteeringError::Unreadable { file, source }) => (file, source),
            other => return other,
        };
        let named = toml::Value::String(file.display().to_string());
        let key = sections::KEYS.iter().zip(self.values()).find(|(_, value)| value.as_ref() == Some(&named));
        match key {
            Some((key, _)) => {
                ConfigError::Missing { key: format!("{}.{}", key.section, key.name), file, source }
            }
            None => ConfigError::Unreadable { file, source },
        }
    }

    /// What two keys say together that can't be meant: the key to blame and why.
    fn contradiction(&self) -> Option<(&'static str, String)> {
        let t = &self.transactions;
        if t.per_destination > t.window {
            let text =
                format!("{} is more than transactions.window, which is {}", t.per_destination, t.window);
            return Some(("transactions.per_destination", text));
        }
        if self.device.guid.is_some() && (self.device.name.is_some() || self.device.port.is_some()) {
            return Some(("device.guid", "stands instead of device.name and device.port".into()));
        }
        let keys = &self.m_key;
        if keys.key.is_some() && keys.secret_file.is_some() {
            return Some(("m_key.secret_file", "m_key.key gives all ports one key".into()));
        }
        if (1..SHORTEST_LEASE_S).contains(&keys.lease_s) {
            let text = format!(
                "{} s is too short to be renewed in time; allowed are 0 and {SHORTEST_LEASE_S} and more",
                keys.lease_s
            );
            return Some(("m_key.lease_s", text));
        }
        match (&self.etcd.user, &self.etcd.password_file) {
            (Some(_), None) => Some(("etcd.user", "needs etcd.password_file".into())),
            (None, Some(_)) => Some(("etcd.password_file", "needs etcd.user".into())),
            _ => None,
        }
    }

    /// The effective configuration as a commented file that [`Config::parse`] reads back to the same value.
    pub fn to_commented_toml(&self) -> String {
        render::commented(self)
    }
}

/// The place of the first byte that is no text.
fn not_text(file: &Path, error: &std::string::FromUtf8Error) -> ConfigError {
    let at = error.utf8_error().valid_up_to();
    let before = &error.as_bytes()[..at];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    ConfigError::Invalid {
        file: file.to_path_buf(),
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        key: None,
        message: format!("byte {} of the file, 0x{:02x}, is no UTF-8 text", at + 1, error.as_bytes()[at]),
    }
}
