//! What section `qos` and the file that it names say together.

use std::path::PathBuf;

use super::text::text;
use super::{ConfigError, QosConfig};
use crate::qos::{self, Options, Qos, Values};

impl QosConfig {
    /// The keys of the section.
    fn options(&self) -> Options {
        macro_rules! values {
            ($max_vls:ident, $high_limit:ident, $high:ident, $low:ident, $sl2vl:ident) => {
                Values {
                    max_vls: self.$max_vls,
                    high_limit: self.$high_limit,
                    high: self.$high.clone(),
                    low: self.$low.clone(),
                    sl_to_vl: self.$sl2vl,
                }
            };
        }
        Options {
            enabled: self.enabled,
            general: values!(max_vls, high_limit, vlarb_high, vlarb_low, sl2vl),
            kinds: [
                values!(ca_max_vls, ca_high_limit, ca_vlarb_high, ca_vlarb_low, ca_sl2vl),
                values!(rtr_max_vls, rtr_high_limit, rtr_vlarb_high, rtr_vlarb_low, rtr_sl2vl),
                values!(sw0_max_vls, sw0_high_limit, sw0_vlarb_high, sw0_vlarb_low, sw0_sl2vl),
                values!(swe_max_vls, swe_high_limit, swe_vlarb_high, swe_vlarb_low, swe_sl2vl),
            ],
        }
    }

    /// What the keys say, without the file.
    pub(crate) fn alone(&self) -> Qos {
        self.options().over(&Options::default())
    }

    /// What is wanted.
    ///
    /// # Errors
    /// opensm's file can't be read, or something in it can't be meant.
    pub(crate) fn wanted(&self) -> Result<Qos, ConfigError> {
        let Some(file) = &self.opensm_file else { return Ok(self.alone()) };
        let unreadable = |source| ConfigError::Unreadable { file: PathBuf::clone(file), source };
        let text = text(file).map_err(unreadable)?;
        // Options of others are passed over, so that nothing else would tell that this is no such file.
        if let Some((line, column)) = not_text(&text) {
            let message = "no text, expected opensm's options".to_owned();
            return Err(ConfigError::Invalid { file: file.clone(), line, column, key: None, message });
        }
        let options = qos::read(&text).map_err(|error| ConfigError::Invalid {
            file: file.clone(),
            line: error.line,
            column: error.column,
            key: None,
            message: error.message,
        })?;
        Ok(self.options().over(&options))
    }
}

/// Line and column, from 1, of the first character before a comment that is no text.
fn not_text(text: &str) -> Option<(usize, usize)> {
    let bad = |line: &str| {
        let options = line.split('#').next().unwrap_or_default();
        options.chars().position(|c| c == char::REPLACEMENT_CHARACTER || c == '\0')
    };
    (1..).zip(text.lines()).find_map(|(number, line)| Some((number, bad(line)? + 1)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;
    use crate::qos::PortKind;

    /// B56: with keys, with a file, with both.
    #[test]
    fn b56_the_section_comes_before_the_file_that_it_names() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("opensm.conf");
        std::fs::write(&file, "qos TRUE\nqos_vlarb_low 0:1\nqos_ca_high_limit 9\nqos_high_limit 7\n")
            .unwrap();
        let text = format!(
            "[qos]\nopensm_file = {:?}\nhigh_limit = 3\nswe_vlarb_low = \"0:2,1:2\"\n",
            file.display().to_string()
        );
        let config = Config::parse(&text, Path::new("rsm.toml")).unwrap();
        let qos = config.qos.wanted().unwrap();
        let limits = PortKind::ALL.map(|kind| qos.of(kind).high_limit);
        assert_eq!(limits, [Some(9), Some(3), Some(3), Some(3)]);
        let low = PortKind::ALL.map(|kind| qos.of(kind).low.as_ref().map(ToString::to_string));
        assert_eq!(low.map(Option::unwrap), ["0:1", "0:1", "0:1", "0:2,1:2"]);
        assert!(qos.enabled && !config.qos.alone().enabled);
        std::fs::write(&file, "qos_sl2vl 0\n").unwrap();
        let error = config.qos.wanted().unwrap_err().to_string();
        assert!(error.ends_with("opensm.conf:1:11: qos_sl2vl 0: allowed is 16 VLs from 0 to 15 with commas between, one for each SL"), "{error}");
        let wrong = Config::parse("[qos]\nca_vlarb_high = \"0;4\"\n", Path::new("rsm.toml")).unwrap_err();
        assert!(
            wrong
                .to_string()
                .starts_with("rsm.toml:2:17: qos.ca_vlarb_high = \"0;4\": allowed is up to 64 pairs"),
            "{wrong}"
        );
        std::fs::remove_file(&file).unwrap();
        assert!(config.qos.wanted().unwrap_err().to_string().contains("opensm.conf: No such file"));
    }
}
