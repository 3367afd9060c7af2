//! Section `m_key`: what is wanted of the keys of ports, with the files that hold them. No message tells a key.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use mad::types::{Guid, MKey};

use super::{ConfigError, MKeyConfig};
use crate::keys::{KeyPolicy, KeySource};
use crate::replication::Secret;

/// A key in the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretKey(pub MKey);

impl SecretKey {
    /// From hexadecimal text; `None` for none, and for anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x")?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let key = u64::from_str_radix(digits, 16).ok().filter(|key| plain && *key != 0)?;
        Some(Self(MKey(key)))
    }
}

impl MKeyConfig {
    /// What the keys and files of the section say.
    ///
    /// # Errors
    /// The first file that can't be used, or that others than its owner may read.
    pub fn policy(&self) -> Result<KeyPolicy, ConfigError> {
        let source = match (&self.key, &self.secret_file) {
            (Some(key), _) => KeySource::One(key.0),
            (None, Some(file)) => KeySource::Derived(secret(file)?),
            (None, None) => KeySource::None,
        };
        let by_port = match &self.file {
            Some(file) => lines(file, "a port GUID and an M_Key such as 0x0011223344556677", port_and_key)?,
            None => Vec::new(),
        };
        let before = match &self.before_file {
            Some(file) => lines(file, "an M_Key such as 0x0011223344556677", key_alone)?,
            None => Vec::new(),
        };
        Ok(KeyPolicy {
            source,
            by_port: Arc::new(BTreeMap::from_iter(by_port)),
            before: Arc::new(before),
            protect: self.protect,
            lease_s: self.lease_s,
        })
    }
}

/// A file that holds keys may be read by its owner only.
///
/// # Errors
/// It can't be read, or others may.
pub(super) fn private(file: &Path) -> Result<(), ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { file: file.to_path_buf(), source };
    let mode = fs::metadata(file).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(ConfigError::Exposed { file: file.to_path_buf(), mode }) }
}

fn read(file: &Path) -> Result<Vec<u8>, ConfigError> {
    private(file)?;
    fs::read(file).map_err(|source| ConfigError::Unreadable { file: file.to_path_buf(), source })
}

fn wrong(file: &Path, line: usize, message: String) -> ConfigError {
    ConfigError::Invalid { file: file.to_path_buf(), line, column: 1, key: None, message }
}

fn secret(file: &Path) -> Result<Secret, ConfigError> {
    let bytes = read(file)?;
    Secret::new(bytes.trim_ascii_end())
        .ok_or_else(|| wrong(file, 1, format!("a secret needs {} bytes or more", Secret::LEAST)))
}

/// The lines of a file that are neither empty nor begin with `#`.
fn lines<T>(
    file: &Path,
    expected: &str,
    parse: impl Fn(&[&str]) -> Option<T>,
) -> Result<Vec<T>, ConfigError> {
    let bytes = read(file)?;
    let text = String::from_utf8_lossy(&bytes);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(number, line): (usize, &str)| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        parse(&words).ok_or_else(|| wrong(file, number, format!("expected {expected}")))
    };
    lines.map(read).collect()
}

fn port_and_key(words: &[&str]) -> Option<(Guid, MKey)> {
    let [guid, key] = words else { return None };
    let guid: Guid = guid.parse().ok()?;
    // As in opensm's file, 0 is a port without a key.
    let none = key.strip_prefix("0x").is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b == b'0'));
    let key = if none { MKey::NONE } else { SecretKey::read(key)?.0 };
    guid.is_some().then_some((guid, key))
}

fn key_alone(words: &[&str]) -> Option<MKey> {
    let [key] = words else { return None };
    SecretKey::read(key).map(|key| key.0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::path::PathBuf;

    use super::super::Config;
    use super::*;

    fn written(dir: &tempfile::TempDir, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn policy(text: &str) -> Result<KeyPolicy, ConfigError> {
        Config::parse(text, Path::new("rsm.toml"))?.m_key.policy()
    }

    #[test]
    fn keys_come_from_one_key_a_secret_or_a_file_of_ports() {
        let dir = tempfile::tempdir().unwrap();
        let ports = written(&dir, "guid2mkey", "# ports\n0x10 0x2a\n\n0x0000000000000011 0x0\n", 0o600);
        let before = written(&dir, "before", "0x7\n0x8\n", 0o600);
        let text = format!(
            "[m_key]\nkey = \"0x0123456789abcdef\"\nfile = {ports:?}\nbefore_file = {before:?}\nprotect = 2\nlease_s = 60\n"
        );
        let read = policy(&text).unwrap();
        let keys = [0x10, 0x11, 0x12].map(|guid| read.key_of(Guid(guid)));
        assert_eq!(keys, [MKey(0x2a), MKey::NONE, MKey(0x0123_4567_89ab_cdef)]);
        assert_eq!((read.before.to_vec(), read.protect, read.lease_s), (vec![MKey(7), MKey(8)], 2, 60));
        let secret = written(&dir, "secret", "0123456789abcdef\n", 0o600);
        let read = policy(&format!("[m_key]\nsecret_file = {secret:?}\n")).unwrap();
        assert!(read.key_of(Guid(0x10)).is_some() && read.protect == 1);
        assert!(!policy("").unwrap().is_some());
    }

    #[test]
    fn a_file_with_keys_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["file", "before_file", "secret_file"] {
            let path = written(&dir, name, "0x10 0x2a\n", 0o640);
            let said = policy(&format!("[m_key]\n{name} = {path:?}\n")).unwrap_err().to_string();
            let path = path.display();
            assert_eq!(
                said,
                format!(
                    "{path}: holds M_Keys, and others than its owner may read it (mode 0640): chmod 600 {path}"
                )
            );
        }
        let path = written(&dir, "rsm.toml", "[m_key]\nkey = \"0x0123456789abcdef\"\n", 0o644);
        let said = Config::load(&path).unwrap_err().to_string();
        assert!(said.ends_with(&format!("chmod 600 {}", path.display())), "{said}");
        written(&dir, "rsm.toml", "[m_key]\nkey = \"0x0123456789abcdef\"\n", 0o600);
        assert!(Config::load(&path).is_ok());
        written(&dir, "rsm.toml", "[m_key]\nprotect = 2\n", 0o644);
        assert!(Config::load(&path).is_ok(), "it holds no key");
    }

    /// What is wrong is told by its place, and without the key.
    #[test]
    fn no_key_is_told_in_errors_in_debug_output_or_by_config_show() {
        let dir = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        for text in
            ["0x10 0x123456789abcdefg\n", "0x10\n", "0x10 0x123456789abcdef 5\n", "x 0x123456789abcdef\n"]
        {
            let path = written(&dir, "keys", text, 0o600);
            said.push(policy(&format!("[m_key]\nfile = {path:?}\n")).unwrap_err().to_string());
            if text != "0x10\n" {
                said.push(policy(&format!("[m_key]\nbefore_file = {path:?}\n")).unwrap_err().to_string());
            }
        }
        assert!(said.iter().all(|text| text.contains("keys:1:1: expected ")), "{said:?}");
        for value in
            ["\"0x123456789abcdefg\"", "\"123456789abcdef\"", "81985529216486895", "[\"0x123456789abcdef\"]"]
        {
            said.push(policy(&format!("[m_key]\nkey = {value}\n")).unwrap_err().to_string());
        }
        let config = Config::parse("[m_key]\nkey = \"0x123456789abcdef\"\n", Path::new("rsm.toml")).unwrap();
        said.push(format!("{config:?} {:?}", config.m_key.policy().unwrap()));
        let shown = config.to_commented_toml();
        assert!(shown.contains("# key is set, and not shown"), "{shown}");
        said.push(shown);
        for text in said {
            assert!(!text.contains("123456789abcdef") && !text.contains("81985529216486895"), "{text}");
        }
    }

    #[test]
    fn keys_that_contradict_each_other_or_run_out_too_soon_are_refused() {
        let said = policy("[m_key]\nkey = \"0x1\"\nsecret_file = \"/x\"\n").unwrap_err().to_string();
        assert_eq!(said, "rsm.toml:3:15: m_key.secret_file: m_key.key gives all ports one key");
        let said = policy("[m_key]\nlease_s = 9\n").unwrap_err().to_string();
        assert!(said.starts_with("rsm.toml:2:11: m_key.lease_s: 9 s is too short"), "{said}");
        assert!(policy("[m_key]\nlease_s = 10\n").is_ok());
    }
}
