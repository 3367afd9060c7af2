//! The files that steer routing, named in section `routing`: read when settings are made of a configuration, so at the start
//! and at SIGHUP. A file that is missing or wrong is an error with its place, and the settings in force stay (B23).

use std::path::{Path, PathBuf};

use routing::engines::RoutingInput;
use routing::formats::{FormatError, steering, torus};

use super::RoutingConfig;
use super::text::text;

/// Why a file that steers routing can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SteeringError {
    /// It can't be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something in it can't be meant.
    #[error(transparent)]
    Wrong(#[from] FormatError),
}

impl RoutingConfig {
    /// What the keys and files of the section say.
    ///
    /// # Errors
    /// The first file that can't be used.
    pub fn steering(&self) -> Result<RoutingInput, SteeringError> {
        let mut input = RoutingInput {
            root_guids: self.root_guids.clone(),
            scatter: (self.scatter > 0).then_some(u64::from(self.scatter)),
            max_vls: self.max_vls,
            nue_max_vls: self.nue_max_vls,
            ..RoutingInput::default()
        };
        input.root_guids.extend(read(self.root_guid_file.as_deref(), steering::guids)?);
        input.compute_guids.extend(read(self.compute_guid_file.as_deref(), steering::guids)?);
        input.io_guids.extend(read(self.io_guid_file.as_deref(), steering::guids)?);
        input.ids = read(self.ids_file.as_deref(), steering::ids)?;
        input.hop_weights = read(self.hop_weights_file.as_deref(), steering::hop_weights)?;
        input.port_order = read(self.port_order_file.as_deref(), steering::port_order)?;
        input.torus = read(self.torus_file.as_deref(), |file, text| torus::read(file, text).map(Some))?;
        Ok(input)
    }
}

/// Reads one file, if there is to be one.
///
/// # Errors
/// It can't be used.
pub fn read<T: Default>(
    file: Option<&Path>,
    parse: impl Fn(&str, &str) -> Result<T, FormatError>,
) -> Result<T, SteeringError> {
    let Some(file) = file else { return Ok(T::default()) };
    let text = text(file).map_err(|source| SteeringError::Unreadable { file: file.to_path_buf(), source })?;
    Ok(parse(&file.display().to_string(), &text)?)
}

#[cfg(test)]
mod tests {
    use mad::types::Guid;

    use super::*;

    #[test]
    fn keys_and_files_make_one_steering_and_a_bad_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let mut config = RoutingConfig {
            root_guids: vec![Guid(1)],
            root_guid_file: file("roots", "0x2 # the second\r\n"),
            io_guid_file: file("io", "0x30\n"),
            scatter: 7,
            ..crate::config::Config::default().routing
        };
        let input = config.steering().unwrap();
        assert_eq!(input.root_guids, [Guid(1), Guid(2)]);
        assert!(input.io_guids.contains(&Guid(0x30)) && input.compute_guids.is_empty());
        assert_eq!(input.scatter, Some(7));
        config.torus_file = file("torus", "torus 4 5 1\nxp_link 0x1 0x2\n");
        let torus = config.steering().unwrap().torus.unwrap();
        assert_eq!((torus.dimensions[1].radix, torus.seeds[0].origin), (5, Guid(1)));
        config.ids_file = file("ids", "0x2\n");
        let error = config.steering().unwrap_err().to_string();
        assert!(
            error.ends_with("ids:1:4: the end of the line, expected an id, decimal or with 0x"),
            "{error}"
        );
        config.ids_file = Some(dir.path().join("none"));
        assert!(config.steering().unwrap_err().to_string().contains("none: No such file"));
    }
}
