//! Types of single values: how each is read from TOML, checked, and written back.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use mad::types::Guid;
use routing::engines;
use serde::de::DeserializeOwned;
use toml::Value;

use super::SecretKey;
use crate::qos::{VlMap, VlWeights};

/// What a key accepts, in a form that both checks and explains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowed {
    /// An integer in a closed range.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
    /// 16 hexadecimal digits and not zero.
    Guid,
    /// A list of them.
    Guids,
    /// A 64-bit number as text.
    Hex,
    /// A key that is never shown.
    Key,
    /// A list of engine names.
    Engines,
    /// Entries of a VL arbitration table.
    Weights,
    /// A lane for each service level.
    Lanes,
    /// A list of addresses of servers.
    Urls,
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(low, high) => write!(f, "an integer from {low} to {high}"),
            Self::Boolean => f.write_str("true or false"),
            Self::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
                write!(f, "{}", quoted.join(", "))
            }
            Self::Text => f.write_str("text that is not empty"),
            Self::Guid => f.write_str("a GUID as text, such as \"0x0002c90300a1b2c1\""),
            Self::Guids => f.write_str("a list of GUIDs as text, such as [\"0x0002c90300a1b2c1\"]"),
            Self::Urls => f.write_str("a list of URLs, such as [\"http://127.0.0.1:2379\"]"),
            Self::Hex => f.write_str("a 64-bit number as text, such as \"0x0000000000000001\""),
            Self::Key => f.write_str(
                "an M_Key as text, 0x and up to 16 hexadecimal digits, not 0 (it is not shown here)",
            ),
            Self::Weights => f.write_str(VlWeights::ALLOWED),
            Self::Lanes => f.write_str(VlMap::ALLOWED),
            Self::Engines => {
                let names: Vec<&str> = engines::names().collect();
                write!(
                    f,
                    "a list of routing engines: {}; {} at its end, after an engine",
                    names.join(", "),
                    engines::NO_FALLBACK
                )
            }
        }
    }
}

/// A type that a key can have.
pub(super) trait Setting: Sized {
    /// What serde reads.
    type Raw: DeserializeOwned;

    /// The value, or `None` when it is not allowed.
    fn read(raw: &Self::Raw, allowed: Allowed) -> Option<Self>;

    /// The value as given, for the error.
    fn show(raw: &Self::Raw) -> String;

    /// The value as TOML; `None` when it is not set.
    fn write(&self) -> Option<Value>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Setting for $ty {
            type Raw = i64;
            fn read(raw: &i64, allowed: Allowed) -> Option<Self> {
                let Allowed::Integer(low, high) = allowed else { return None };
                if (low..=high).contains(raw) { Self::try_from(*raw).ok() } else { None }
            }
            fn show(raw: &i64) -> String {
                raw.to_string()
            }
            fn write(&self) -> Option<Value> {
                Some(Value::Integer(i64::from(*self)))
            }
        }
    )*};
}
integers!(u8, u16, u32);

impl Setting for bool {
    type Raw = Self;
    fn read(raw: &Self, _: Allowed) -> Option<Self> {
        Some(*raw)
    }
    fn show(raw: &Self) -> String {
        raw.to_string()
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Boolean(*self))
    }
}

impl<T: Setting> Setting for Option<T> {
    type Raw = T::Raw;
    fn read(raw: &T::Raw, allowed: Allowed) -> Option<Self> {
        T::read(raw, allowed).map(Some)
    }
    fn show(raw: &T::Raw) -> String {
        T::show(raw)
    }
    fn write(&self) -> Option<Value> {
        self.as_ref().and_then(T::write)
    }
}

impl Setting for String {
    type Raw = Self;
    fn read(raw: &Self, _: Allowed) -> Option<Self> {
        (!raw.trim().is_empty()).then(|| raw.clone())
    }
    fn show(raw: &Self) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::String(self.clone()))
    }
}

macro_rules! lists {
    ($($ty:ty),*) => {$(
        impl Setting for $ty {
            type Raw = String;
            fn read(raw: &String, _: Allowed) -> Option<Self> {
                raw.parse().ok()
            }
            fn show(raw: &String) -> String {
                format!("{raw:?}")
            }
            fn write(&self) -> Option<Value> {
                Some(Value::String(self.to_string()))
            }
        }
    )*};
}
lists!(VlWeights, VlMap);

impl Setting for PathBuf {
    type Raw = String;
    fn read(raw: &String, allowed: Allowed) -> Option<Self> {
        String::read(raw, allowed).map(Self::from)
    }
    fn show(raw: &String) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::String(self.display().to_string()))
    }
}

impl Setting for Guid {
    type Raw = String;
    fn read(raw: &String, _: Allowed) -> Option<Self> {
        raw.parse().ok().filter(|g: &Self| g.is_some())
    }
    fn show(raw: &String) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::String(self.to_string()))
    }
}

impl Setting for Vec<Guid> {
    type Raw = Vec<String>;
    fn read(raw: &Vec<String>, allowed: Allowed) -> Option<Self> {
        raw.iter().map(|text| Guid::read(text, allowed)).collect()
    }
    fn show(raw: &Vec<String>) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Array(self.iter().map(|g| Value::String(g.to_string())).collect()))
    }
}

impl Setting for Vec<String> {
    type Raw = Self;
    fn read(raw: &Self, _: Allowed) -> Option<Self> {
        is_chain(raw).then(|| raw.clone())
    }
    fn show(raw: &Self) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Array(self.iter().cloned().map(Value::String).collect()))
    }
}

/// Addresses of servers: `http://HOST:PORT` or `https://HOST:PORT`, without a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Urls(pub Vec<String>);

impl Setting for Urls {
    type Raw = Vec<String>;
    fn read(raw: &Vec<String>, _: Allowed) -> Option<Self> {
        let urls = raw.iter().map(|text| text.trim_end_matches('/').to_owned());
        let is_url = |url: &String| {
            let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@', ' ']))
        };
        let urls: Vec<String> = urls.collect();
        urls.iter().all(is_url).then_some(Self(urls))
    }
    fn show(raw: &Vec<String>) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::Array(self.0.iter().cloned().map(Value::String).collect()))
    }
}

/// Whether this is a chain of engines: one or more, and at most at its end the word that nothing follows.
fn is_chain(names: &[String]) -> bool {
    let engines = match names {
        [engines @ .., last] if last == engines::NO_FALLBACK => engines,
        all => all,
    };
    !engines.is_empty() && engines.iter().all(|name| engines::by_name(name).is_ok())
}

/// A 64-bit number that the file holds as hexadecimal text: TOML's integers end at 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex64(pub u64);

impl Setting for Hex64 {
    type Raw = String;
    fn read(raw: &String, _: Allowed) -> Option<Self> {
        let digits = raw.strip_prefix("0x")?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u64::from_str_radix(digits, 16).ok().map(Self)).flatten()
    }
    fn show(raw: &String) -> String {
        format!("{raw:?}")
    }
    fn write(&self) -> Option<Value> {
        Some(Value::String(format!("0x{:016x}", self.0)))
    }
}

impl Setting for SecretKey {
    type Raw = String;
    fn read(raw: &String, _: Allowed) -> Option<Self> {
        Self::read(raw)
    }
    fn show(_: &String) -> String {
        "what is given".into()
    }
    fn write(&self) -> Option<Value> {
        Some(Value::String("set".into()))
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant),* }

        impl $name {
            /// All words, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word of this value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("there are: {}", Self::WORDS.join(", "))),
                }
            }
        }

        impl Setting for $name {
            type Raw = String;
            fn read(raw: &String, _: Allowed) -> Option<Self> {
                raw.parse().ok()
            }
            fn show(raw: &String) -> String {
                format!("{raw:?}")
            }
            fn write(&self) -> Option<Value> {
                Some(Value::String(self.as_str().to_owned()))
            }
        }
    };
}

words! {
    /// How much is logged.
    LogLevel {
        /// Only what failed.
        Error = "error",
        /// And what needs an eye.
        Warn = "warn",
        /// And what happened.
        Info = "info",
        /// And what was decided.
        Debug = "debug",
        /// And each datagram.
        Trace = "trace",
    }
}

words! {
    /// The form of log lines.
    LogFormat {
        /// For people.
        Text = "text",
        /// One object a line.
        Json = "json",
    }
}

words! {
    /// When the state is safe from a power cut. It is safe from the end of the process in any case.
    StateSync {
        /// Within a tenth of a second, many changes together.
        Grouped = "grouped",
        /// Before a change is acknowledged.
        Each = "each",
    }
}

words! {
    /// When a registration is acknowledged, where standbys hold a copy.
    Acknowledge {
        /// When those that are level have it too.
        Mirrored = "mirrored",
        /// When the master has written it.
        Local = "local",
    }
}

words! {
    /// When a new master's port takes the LID of the master before.
    LidTakeover {
        /// Where no port of the fabric has it any more.
        WhenGone = "when-gone",
        /// Never.
        Never = "never",
    }
}
