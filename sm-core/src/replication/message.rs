//! Requests and answers as bytes, with their authentication.
//!
//! ```text
//! request   version=2, 7 zeros, sender, incarnation, number, stream, after (8 bytes each), MAC (32)
//! answer    version=2, flags (bit 0: HELLO, bit 1: in step), 6 zeros, sender, stream, the request's incarnation and number, since, until,
//!           newest, serial (8 bytes each), changes (encrypted), MAC (32)
//! change    length of the key (2), key, length of the value (4; all ones: removed), value
//! ```
//! The MAC is HMAC-SHA256 over a word for the kind of message and all bytes before it, and is compared in constant time.
//! Changes hold M_Keys and the keys of services, so they are encrypted first: XChaCha20, its key made of the secret, its nonce
//! of stream and serial, which no two answers have in common.

use std::fmt;

use chacha20::XChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use mad::types::Guid;
use sha2::Sha256;

use crate::store::{Change, Key};

const VERSION: u8 = 2;
const MAC_LEN: usize = 32;
const REMOVED: u32 = u32::MAX;
const HELLO: u8 = 1;
const IN_STEP: u8 = 2;

/// The secret that managers share. Never printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Fewest bytes of a secret.
    pub const LEAST: usize = 16;

    /// A secret; `None` when it has less than [`Secret::LEAST`] bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::LEAST).then(|| Self(bytes.to_vec()))
    }

    /// What other keys are made of.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn mac(&self, kind: &[u8], message: &[u8]) -> Hmac<Sha256> {
        // HMAC takes keys of every length.
        #[expect(clippy::unwrap_used, reason = "only lengths are refused, and none is")]
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).unwrap();
        mac.update(kind);
        mac.update(message);
        mac
    }

    fn sign(&self, kind: &[u8], mut message: Vec<u8>) -> Vec<u8> {
        let mac = self.mac(kind, &message).finalize().into_bytes();
        message.extend_from_slice(&mac);
        message
    }

    /// Encrypts the contents of an answer, or decrypts them.
    fn crypt(&self, stream: u64, serial: u64, contents: &mut [u8]) {
        let key = self.mac(b"rsm mirror contents", &[]).finalize().into_bytes();
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&stream.to_be_bytes());
        nonce[8..16].copy_from_slice(&serial.to_be_bytes());
        XChaCha20::new(&key.0.into(), &nonce.into()).apply_keystream(contents);
    }

    /// The message without its MAC, if that is right.
    fn verify<'a>(&self, kind: &[u8], signed: &'a [u8]) -> Option<&'a [u8]> {
        let (message, mac) = signed.split_at_checked(signed.len().checked_sub(MAC_LEN)?)?;
        self.mac(kind, message).verify_slice(mac).ok()?;
        Some(message)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a standby asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// PortGUID of the standby.
    pub sender: Guid,
    /// Its run.
    pub incarnation: u64,
    /// Grows with each request of the run.
    pub number: u64,
    /// The stream that it follows; 0 for none yet.
    pub stream: u64,
    /// The version up to which it knows that stream.
    pub after: u64,
}

impl Request {
    const KIND: &'static [u8] = b"rsm mirror request";
    /// Bytes with the MAC.
    pub const LEN: usize = 48 + MAC_LEN;

    /// Signed bytes.
    pub fn encode(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = vec![VERSION, 0, 0, 0, 0, 0, 0, 0];
        for number in [self.sender.0, self.incarnation, self.number, self.stream, self.after] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        secret.sign(Self::KIND, bytes)
    }

    /// From the head of `data`; `None` when it does not verify.
    pub fn decode(secret: &Secret, data: &[u8]) -> Option<Self> {
        let mut reader = Reader(secret.verify(Self::KIND, data.get(..Self::LEN)?)?);
        if reader.take(8)?[0] != VERSION {
            return None;
        }
        Some(Self {
            sender: Guid(reader.u64()?),
            incarnation: reader.u64()?,
            number: reader.u64()?,
            stream: reader.u64()?,
            after: reader.u64()?,
        })
    }
}

/// What a master answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// PortGUID of the master.
    pub sender: Guid,
    /// Its stream.
    pub stream: u64,
    /// Incarnation and number of the request.
    pub to: (u64, u64),
    /// The version that the changes follow; 0: they are the beginning of a snapshot.
    pub since: u64,
    /// The version up to which they go.
    pub until: u64,
    /// The master's newest version.
    pub newest: u64,
    /// Differs from answer to answer of a stream.
    pub serial: u64,
    /// The changes.
    pub changes: Vec<Change>,
    /// Only the stream's number: the request named another.
    pub hello: bool,
    /// From now on nothing is acknowledged that the asker has not confirmed, or has failed to for so long that it may be gone.
    pub in_step: bool,
}

impl Answer {
    const KIND: &'static [u8] = b"rsm mirror answer";

    /// Signed bytes.
    pub fn encode(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = vec![VERSION, 0, 0, 0, 0, 0, 0, 0];
        bytes[1] = if self.hello { HELLO } else { 0 } | if self.in_step { IN_STEP } else { 0 };
        let Self { sender, stream, to, since, until, newest, serial, .. } = self;
        for number in [sender.0, *stream, to.0, to.1, *since, *until, *newest, *serial] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let head = bytes.len();
        for change in &self.changes {
            let key = change.key.to_bytes();
            // Keys have 49 bytes at most; no value is near 4 GiB.
            bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
            bytes.extend_from_slice(&key);
            let length = change.value.as_ref().map_or(REMOVED, |value| value.len() as u32);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(change.value.as_deref().unwrap_or_default());
        }
        secret.crypt(*stream, *serial, &mut bytes[head..]);
        secret.sign(Self::KIND, bytes)
    }

    /// Back; `None` when it does not verify or is cut. Entries of kinds that are not known are left out.
    pub fn decode(secret: &Secret, signed: &[u8]) -> Option<Self> {
        let mut reader = Reader(secret.verify(Self::KIND, signed)?);
        let head = reader.take(8)?;
        if head[0] != VERSION {
            return None;
        }
        let mut answer = Self {
            hello: head[1] & HELLO != 0,
            in_step: head[1] & IN_STEP != 0,
            sender: Guid(reader.u64()?),
            stream: reader.u64()?,
            to: (reader.u64()?, reader.u64()?),
            since: reader.u64()?,
            until: reader.u64()?,
            newest: reader.u64()?,
            serial: reader.u64()?,
            changes: Vec::new(),
        };
        let mut contents = reader.0.to_vec();
        secret.crypt(answer.stream, answer.serial, &mut contents);
        let mut reader = Reader(&contents);
        while !reader.0.is_empty() {
            let length = u16::from_be_bytes(reader.take(2)?.try_into().ok()?);
            let key = Key::from_bytes(reader.take(length.into())?);
            let value = match u32::from_be_bytes(reader.take(4)?.try_into().ok()?) {
                REMOVED => None,
                length => Some(reader.take(length as usize)?.to_vec()),
            };
            answer.changes.extend(key.map(|key| Change { key, value }));
        }
        Some(answer)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }
}
