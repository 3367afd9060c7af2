//! Which M_Key each port shall hold: one for all, one for each port from a file, or one for each port derived from a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use mad::types::{Guid, MKey};
use sha2::Sha256;

use crate::replication::Secret;

/// Where keys come from, for ports that no file names.
#[derive(Clone, Debug, Default)]
pub enum KeySource {
    /// Ports get no key, and lose one that is known.
    #[default]
    None,
    /// All get the same.
    One(MKey),
    /// Each gets one that is made of the secret and its GUID: who learns one knows no other.
    Derived(Secret),
}

impl PartialEq for KeySource {
    /// Secrets are told apart by the keys that they make.
    fn eq(&self, other: &Self) -> bool {
        self.of(Guid(1)) == other.of(Guid(1)) && self.of(Guid(2)) == other.of(Guid(2))
    }
}

impl KeySource {
    fn of(&self, port: Guid) -> MKey {
        match self {
            Self::None => MKey::NONE,
            Self::One(key) => *key,
            Self::Derived(secret) => derived(secret, port),
        }
    }
}

/// What is wanted of the keys of a fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyPolicy {
    /// Keys of ports that no file names.
    pub source: KeySource,
    /// Keys by PortGUID.
    pub by_port: Arc<BTreeMap<Guid, MKey>>,
    /// Keys that ports may hold from before, in the order in which they are tried.
    pub before: Arc<Vec<MKey>>,
    /// M_KeyProtectBits, 0 to 3.
    pub protect: u8,
    /// M_KeyLeasePeriod in seconds; 0: without end.
    pub lease_s: u16,
}

impl KeyPolicy {
    /// Whether ports get keys.
    pub fn is_some(&self) -> bool {
        !matches!(self.source, KeySource::None) || !self.by_port.is_empty()
    }

    /// The key that a port shall hold.
    pub fn key_of(&self, port: Guid) -> MKey {
        self.by_port.get(&port).copied().unwrap_or_else(|| self.source.of(port))
    }

    /// The key of all ports that no file names, where they have the same.
    pub(super) const fn of_all(&self) -> Option<MKey> {
        if let KeySource::One(key) = self.source { Some(key) } else { None }
    }
}

/// The first eight bytes of HMAC-SHA256 over the GUID; never 0.
fn derived(secret: &Secret, port: Guid) -> MKey {
    // HMAC takes keys of every length.
    #[expect(clippy::unwrap_used, reason = "only lengths are refused, and none is")]
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.bytes()).unwrap();
    mac.update(b"rsm M_Key");
    mac.update(&port.0.to_be_bytes());
    let bytes = mac.finalize().into_bytes();
    let number = bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    MKey(number.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_keys_differ_from_port_to_port_and_secret_to_secret_and_are_the_same_tomorrow() {
        let secret = |text: &str| Secret::new(text.as_bytes()).unwrap();
        let one = KeySource::Derived(secret("0123456789abcdef"));
        let other = KeySource::Derived(secret("0123456789abcdeg"));
        // As HMAC-SHA256 of another implementation has it (Python's hmac).
        assert_eq!(one.of(Guid(0x10)), MKey(0x5d6c_7ec1_3c11_351b));
        assert_ne!(one.of(Guid(0x10)), one.of(Guid(0x11)));
        assert_ne!(one.of(Guid(0x10)), other.of(Guid(0x10)));
        assert_ne!(one, other);
        assert_eq!(one, one.clone());
    }

    #[test]
    fn a_port_that_a_file_names_has_that_key_and_no_other() {
        let by_port = Arc::new(BTreeMap::from([(Guid(5), MKey(7))]));
        let policy = KeyPolicy { source: KeySource::One(MKey(1)), by_port, ..KeyPolicy::default() };
        assert_eq!((policy.key_of(Guid(5)), policy.key_of(Guid(6))), (MKey(7), MKey(1)));
        assert!(policy.is_some() && !KeyPolicy::default().is_some());
    }
}
