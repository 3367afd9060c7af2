//! `rsm config show`: every key with its value and its comment.

use std::fmt::Write;

use super::Config;
use super::sections::{KEYS, SECTIONS};
use super::setting::Allowed;

/// The whole configuration as text.
pub(super) fn commented(config: &Config) -> String {
    let mut out = String::new();
    let values = config.values();
    for section in SECTIONS {
        if !out.is_empty() {
            out.push('\n');
        }
        for line in section.doc {
            let _ = writeln!(out, "# {}", line.trim());
        }
        let _ = writeln!(out, "[{}]", section.name);
        for (key, value) in KEYS.iter().zip(&values).filter(|(key, _)| key.section == section.name) {
            for line in key.doc {
                let _ = writeln!(out, "# {}", line.trim());
            }
            let _ = writeln!(out, "# Allowed: {}.", key.allowed);
            let _ = match value {
                Some(_) if matches!(key.allowed, Allowed::Key) => {
                    writeln!(out, "# {} is set, and not shown", key.name)
                }
                Some(value) => writeln!(out, "{} = {value}", key.name),
                None => writeln!(out, "# {} is not set", key.name),
            };
        }
    }
    out
}
