//! What is wrong with a configuration: one line with file, line, column, key and what is allowed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::sections::{KEYS, Refused, SECTIONS};
use super::setting::Allowed;
use super::steering::SteeringError;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that a key names can't be read.
    #[error("{key}: {}: {source}", .file.display())]
    Missing {
        /// The key, as `section.name`.
        key: String,
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds keys, and others may read it.
    #[error("{0}: holds M_Keys, and others than its owner may read it (mode {mode:04o}): chmod 600 {0}", .file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Something in it can't be meant.
    #[error("{}:{line}:{column}: {message}", .file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The key, as `section.name`, where it is known.
        key: Option<String>,
        /// What is wrong and what is allowed, the key in front.
        message: String,
    },
    /// A list that steers routing can't be used.
    #[error(transparent)]
    Steering(#[from] SteeringError),
}

/// The text that errors point into.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a Path,
}

impl Source<'_> {
    fn invalid(&self, at: usize, key: Option<String>, message: String) -> ConfigError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        ConfigError::Invalid { file: self.name.to_path_buf(), line, column, key, message }
    }

    /// An error of the TOML reader: broken syntax, unknown key, wrong type.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map_or(0, |span| span.start);
        let said = error.message().replace('\n', " ");
        let key = self.key_at(at);
        let message = match (&key, said.strip_prefix("unknown field ")) {
            (Some(key), Some(_)) => unknown(key),
            (Some(key), None) if said == "duplicate key" => format!("`{key}` is given twice"),
            (Some(key), None) => explain(key, &said),
            (None, _) if said == "duplicate key" => {
                let name = error.span().and_then(|span| self.text.get(span)).unwrap_or_default();
                format!("`{name}` is given twice")
            }
            (None, _) => said,
        };
        self.invalid(at, key, message)
    }

    /// A value outside of what is allowed.
    pub(super) fn refused(&self, refused: &Refused) -> ConfigError {
        let message = format!("{} = {}: allowed is {}", refused.key, refused.given, refused.allowed);
        self.invalid(refused.span.start, Some(refused.key.to_owned()), message)
    }

    /// Two keys that don't fit each other.
    pub(super) fn contradiction(&self, key: &str, message: &str) -> ConfigError {
        let at = self.places().into_iter().find(|(k, ..)| k == key).map_or(0, |(.., value)| value.start);
        self.invalid(at, Some(key.to_owned()), format!("{key}: {message}"))
    }

    /// The key whose name or value covers a byte.
    fn key_at(&self, at: usize) -> Option<String> {
        let inside = |r: &Range<usize>| r.contains(&at) || r.start == at;
        self.places().into_iter().find(|(_, name, value)| inside(name) || inside(value)).map(|(key, ..)| key)
    }

    /// All keys with the places of name and value; keys of sections first, since a section's own place may cover them.
    fn places(&self) -> Vec<(String, Range<usize>, Range<usize>)> {
        let (root, _) = DeTable::parse_recoverable(self.text);
        let mut found = Vec::new();
        let mut outer = Vec::new();
        for (section, value) in root.get_ref() {
            for (key, inner) in value.get_ref().as_table().into_iter().flatten() {
                found.push((format!("{}.{}", section.get_ref(), key.get_ref()), key.span(), inner.span()));
            }
            outer.push((section.get_ref().to_string(), section.span(), value.span()));
        }
        found.extend(outer);
        found
    }
}

/// The line for a key or section that does not exist.
fn unknown(key: &str) -> String {
    let quote = |names: Vec<&str>| names.join(", ");
    match key.split_once('.') {
        Some((section, name)) if SECTIONS.iter().any(|s| s.name == section) => {
            let names = KEYS.iter().filter(|k| k.section == section).map(|k| k.name).collect();
            format!("unknown key `{name}` in [{section}]; its keys are: {}", quote(names))
        }
        Some((section, _)) => unknown(section),
        None => {
            let names = SECTIONS.iter().map(|s| s.name).collect();
            format!("unknown section or key `{key}`; the sections are: {}", quote(names))
        }
    }
}

/// A reader's error about a known key, with what is allowed.
fn explain(key: &str, said: &str) -> String {
    let said = said.split_once(", expected ").map_or(said, |(what, _)| what);
    match KEYS.iter().find(|k| format!("{}.{}", k.section, k.name) == key) {
        // What was said may hold the key.
        Some(known) if matches!(known.allowed, Allowed::Key) => {
            format!("{key}: allowed is {}", known.allowed)
        }
        Some(known) => format!("{key}: {said}; allowed is {}", known.allowed),
        None if SECTIONS.iter().any(|s| s.name == key) => format!("{key}: {said}; it is a section: [{key}]"),
        None => format!("{key}: {said}"),
    }
}
