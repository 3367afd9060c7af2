//! The text of the files that a configuration names: partitions, lists that steer routing, opensm's options, measured loads.
//!
//! What is no UTF-8 (a comment in Latin-1, a binary file taken for a list) is replaced by U+FFFD, so that whoever reads the text
//! tells where it is wrong, in place of a refusal without a position; a mark before UTF-8 is left out. Cost: one copy.

use std::io;
use std::path::Path;

use routing::formats::text_of;

/// The text of a file.
///
/// # Errors
/// It can't be read.
pub(crate) fn text(file: &Path) -> io::Result<String> {
    Ok(text_of(&std::fs::read(file)?))
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError};
    use crate::settings::SmSettings;

    /// Every file that a configuration names: what is no text has a place, and a comment in Latin-1 or a mark does no harm.
    #[test]
    fn bytes_that_are_no_text_are_told_with_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let load = |section: &str, key: &str, content: &[u8]| {
            let file = dir.path().join("file");
            std::fs::write(&file, content).unwrap();
            let named = format!("[{section}]\n{key} = {:?}\n", file.display().to_string());
            let name = dir.path().join("rsm.toml");
            SmSettings::load(&Config::parse(&named, &name).unwrap()).map(|_| ())
        };
        let torus = "\u{feff}torus 4 5 1 # Gr\u{f6}\u{df}e\nxp_link 0x1 0x2\n";
        for (section, key, good) in [
            ("routing", "root_guid_file", "\u{feff}0x2 # zw\u{f6}lf\n"),
            ("routing", "compute_guid_file", "0x2\n# \u{e9}\n"),
            ("routing", "io_guid_file", "0x2\n# \u{e9}\n"),
            ("routing", "ids_file", "0x2 7 # \u{e9}\n"),
            ("routing", "hop_weights_file", "0x2 1 7 # \u{e9}\n"),
            ("routing", "port_order_file", "0x2 1 2 # \u{e9}\n"),
            ("routing", "torus_file", torus),
            ("partitions", "file", "# \u{e9}\nDefault=0x7fff: ALL=full;\n"),
            ("qos", "opensm_file", "# \u{e9}\nqos TRUE\n"),
        ] {
            // With the letters of Latin-1 as one byte each, behind a mark that stays UTF-8.
            let rest = good.strip_prefix('\u{feff}');
            let mark = if rest.is_some() { "\u{feff}".as_bytes() } else { &[] };
            let latin = rest.unwrap_or(good).chars().map(|c| u8::try_from(u32::from(c)).unwrap());
            let good: Vec<u8> = mark.iter().copied().chain(latin).collect();
            let loaded = load(section, key, &good);
            assert!(loaded.is_ok(), "{section}.{key}: {}", loaded.unwrap_err());
            let error = load(section, key, b"\x80\xff\x00\x01 \xfe\n").unwrap_err();
            let text = error.to_string();
            let placed = match &error {
                ConfigError::Invalid { line, .. } => *line == 1,
                _ => text.contains("file:1:"),
            };
            assert!(
                placed && !text.contains("UTF-8") && text.lines().count() == 1,
                "{section}.{key}: {text}"
            );
        }
    }
}
