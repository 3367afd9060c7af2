//! The store for sites that keep state in etcd: one copy for all subnet managers, of which only one writes at a time.
//!
//! ```text
//! PREFIX/owner        port GUID and incarnation of the manager that writes; ends with its lease
//! PREFIX/generation   the last commit: its writer and a count
//! PREFIX/e/HEX        one entry: Key::to_bytes in hexadecimal = value
//! PREFIX/journal/N    changes of a commit that is too large for one transaction
//! ```
//! Every write is one transaction that compares `owner` with ourselves and `generation` with the revision that we know
//! (compare-and-swap): a manager that lost its lease, or that has not read what another wrote, changes nothing. It gets
//! [`StoreError::Owned`] or [`StoreError::Changed`], reads again, and merges.
//!
//! etcd takes 128 operations a transaction. A larger commit is first written as a journal, made valid by one transaction on
//! `generation`, then carried out in parts; who reads meanwhile reads through the journal. So a commit is whole or not
//! there, whenever anybody stops.
//!
//! Values may be keys of the fabric: etcd's own access rights are to keep them from others.
//! Cost: one round trip a commit of up to 100 changes; a read is a page of 2,000 entries a round trip.

mod client;
mod journal;

use std::time::Duration;

use mad::types::Guid;
use serde_json::{Value, json};

use super::entry::{Change, Entries, Key};
use super::{StateStore, StoreError};
use client::{Client, decode, encode, number};

/// Changes of one transaction; etcd's own limit is 128 operations.
const AT_ONCE: usize = 100;
/// Bytes of keys and values of one transaction; etcd's own limit is 1.5 MiB a request.
const BYTES_AT_ONCE: usize = 512 << 10;
/// Entries of one page when reading.
const PAGE: usize = 2000;

/// How a cluster is reached.
#[derive(Clone)]
pub struct EtcdConfig {
    /// `http://HOST:PORT` or `https://…`; at least one.
    pub endpoints: Vec<String>,
    /// What all keys begin with, without the `/` at its end.
    pub prefix: String,
    /// User and password.
    pub user: Option<(String, String)>,
    /// Certificates in PEM of those who sign the servers' certificates; `None`: the well-known ones.
    pub ca: Option<Vec<u8>>,
    /// How long a manager that is not heard of keeps others from writing; whole seconds, at least 1.
    pub lease: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// PortGUID of our port.
    pub own: Guid,
    /// Differs from run to run.
    pub incarnation: u64,
}

/// What answers calls of a cluster's JSON gateway: a connection, or in a simulation what plays one.
pub trait Gateway: Send {
    /// What it is called in messages.
    fn endpoint(&self) -> &str;

    /// A call; `path` is without `/v3/`.
    ///
    /// # Errors
    /// No answer, or one that is no success.
    fn call(&mut self, path: &str, body: &Value) -> Result<Value, StoreError>;
}

/// A cluster as a store.
pub struct Etcd {
    client: Box<dyn Gateway>,
    prefix: String,
    lease: Duration,
    /// What `owner` holds when it is us.
    me: String,
    /// Our lease, where there is one.
    lease_id: Option<i64>,
    /// ModRevision of `generation` as we know it: of our own last read or write. 0: there is none.
    generation: i64,
    /// Commits of this run.
    count: u64,
    /// A journal that is valid and was not carried out to its end.
    unfinished: Vec<Change>,
}

impl Etcd {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The certificates can't be meant.
    pub fn new(config: &EtcdConfig) -> Result<Self, StoreError> {
        Ok(Self::with_gateway(Box::new(Client::new(config)?), config))
    }

    /// A cluster behind `gateway`; of how it is reached nothing counts in `config`.
    pub fn with_gateway(gateway: Box<dyn Gateway>, config: &EtcdConfig) -> Self {
        Self {
            client: gateway,
            prefix: config.prefix.trim_end_matches('/').to_owned(),
            lease: config.lease,
            me: format!("{} {:016x}", config.own, config.incarnation),
            lease_id: None,
            generation: 0,
            count: 0,
            unfinished: Vec::new(),
        }
    }

    fn key(&self, name: &str) -> String {
        encode(format!("{}/{name}", self.prefix).as_bytes())
    }

    fn entry(&self, key: &Key) -> String {
        let hex: String = key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.key(&format!("e/{hex}"))
    }

    /// What to do for a change.
    fn operation(&self, change: &Change) -> Value {
        match &change.value {
            Some(value) => {
                json!({ "requestPut": { "key": self.entry(&change.key), "value": encode(value) } })
            }
            None => json!({ "requestDeleteRange": { "key": self.entry(&change.key) } }),
        }
    }

    /// A put that nobody else's state is overwritten by, since it bears the number of a commit of ours.
    fn next_generation(&mut self) -> Value {
        self.count += 1;
        let value = encode(format!("{} {}", self.me, self.count).as_bytes());
        json!({ "requestPut": { "key": self.key("generation"), "value": value } })
    }

    fn is_ours(&self) -> Value {
        json!({ "key": self.key("owner"), "target": "VALUE", "result": "EQUAL", "value": encode(self.me.as_bytes()) })
    }

    fn is_known(&self) -> Value {
        json!({
            "key": self.key("generation"), "target": "MOD", "result": "EQUAL",
            "mod_revision": self.generation.to_string()
        })
    }

    /// A transaction under our claim on the generation that we know. The new generation's revision where it wrote one.
    fn write(&mut self, operations: &[Value], new_generation: bool) -> Result<(), StoreError> {
        let mut success = operations.to_vec();
        if new_generation {
            success.push(self.next_generation());
        }
        let body = json!({ "compare": [self.is_ours(), self.is_known()], "success": success });
        let answer = self.client.call("kv/txn", &body)?;
        if answer["succeeded"].as_bool() != Some(true) {
            return Err(self.why_not()?);
        }
        if new_generation {
            self.generation = number(&answer["header"]["revision"]);
        }
        Ok(())
    }

    /// Why a transaction did not succeed.
    fn why_not(&mut self) -> Result<StoreError, StoreError> {
        let store = self.name();
        Ok(match self.owner()? {
            Some(owner) if owner != self.me => StoreError::Owned { store, by: owner },
            Some(_) => StoreError::Changed { store },
            None => {
                self.lease_id = None;
                StoreError::Changed { store }
            }
        })
    }

    fn owner(&mut self) -> Result<Option<String>, StoreError> {
        let answer = self.client.call("kv/range", &json!({ "key": self.key("owner") }))?;
        let found = answer["kvs"].get(0).map(|kv| decode(&kv["value"]));
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Makes us the one who writes, or keeps us so. Held until [`Etcd::release`], or until the lease runs out.
    fn claim(&mut self) -> Result<(), StoreError> {
        if self.lease_id.is_some() {
            return Ok(());
        }
        let seconds = self.lease.as_secs().max(1).to_string();
        let granted = self.client.call("lease/grant", &json!({ "TTL": seconds }))?;
        let id = number(&granted["ID"]);
        let body = json!({
            "compare": [{ "key": self.key("owner"), "target": "CREATE", "result": "EQUAL", "create_revision": "0" }],
            "success": [{ "requestPut": {
                "key": self.key("owner"), "value": encode(self.me.as_bytes()), "lease": id.to_string()
            } }],
        });
        let taken = self.client.call("kv/txn", &body)?["succeeded"].as_bool() == Some(true);
        if taken {
            self.lease_id = Some(id);
            return Ok(());
        }
        self.client.call("lease/revoke", &json!({ "ID": id.to_string() }))?;
        match self.owner()? {
            Some(owner) if owner != self.me => Err(StoreError::Owned { store: self.name(), by: owner }),
            // Ours of an answer that was lost: its lease can't be renewed, so it runs out and is taken again.
            _ => Err(StoreError::Changed { store: self.name() }),
        }
    }

    /// All under a prefix, at one revision of etcd: keys without the prefix, values.
    fn read(&mut self, under: &str) -> Result<Vec<(String, Vec<u8>, i64)>, StoreError> {
        let prefix = format!("{}/{under}", self.prefix);
        let mut end = prefix.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1; // '/' + 1: the first key that no longer begins so
        }
        let (mut from, mut revision, mut found) = (prefix.clone().into_bytes(), 0, Vec::new());
        loop {
            let body = json!({
                "key": encode(&from), "range_end": encode(&end), "limit": PAGE.to_string(),
                "revision": revision.to_string()
            });
            let answer = self.client.call("kv/range", &body)?;
            if revision == 0 {
                revision = number(&answer["header"]["revision"]);
            }
            let page = answer["kvs"].as_array().map_or(&[][..], Vec::as_slice);
            for kv in page {
                let key = decode(&kv["key"]);
                let name = String::from_utf8_lossy(&key).strip_prefix(&prefix).unwrap_or_default().to_owned();
                found.push((name, decode(&kv["value"]), number(&kv["mod_revision"])));
                from = key;
            }
            from.push(0);
            if answer["more"].as_bool() != Some(true) || page.is_empty() {
                return Ok(found);
            }
        }
    }

    /// Entries, generation and journal of one moment.
    fn read_all(&mut self) -> Result<(Entries, i64, Vec<Change>), StoreError> {
        let (mut entries, mut generation, mut journal) = (Entries::new(), 0, Vec::new());
        for (name, value, revision) in self.read("")? {
            match name.split_once('/') {
                None if name == "generation" => generation = revision,
                Some(("e", hex)) => {
                    if let Some(key) = bytes_of(hex).and_then(|bytes| Key::from_bytes(&bytes)) {
                        entries.insert(key, value);
                    }
                }
                Some(("journal", part)) => journal.push((part.to_owned(), value)),
                _ => {}
            }
        }
        let journal = journal::read(&journal);
        journal.iter().cloned().for_each(|change| change.apply_to(&mut entries));
        Ok((entries, generation, journal))
    }

    /// Deletes all under a prefix, and nothing where we have not the claim.
    fn delete(&mut self, under: &str) -> Result<(), StoreError> {
        let start = format!("{}/{under}", self.prefix);
        let mut end = start.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let delete = json!({ "requestDeleteRange": {
            "key": encode(start.as_bytes()), "range_end": encode(&end)
        } });
        self.write(&[delete], true)
    }
}

impl StateStore for Etcd {
    fn name(&self) -> String {
        format!("etcd at {}, {}", self.client.endpoint(), self.prefix)
    }

    fn load(&mut self) -> Result<Entries, StoreError> {
        let (entries, generation, journal) = self.read_all()?;
        (self.generation, self.unfinished) = (generation, journal);
        Ok(entries)
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.claim()?;
        self.finish_journal()?;
        let size: usize = changes.iter().map(journal::size).sum();
        if changes.len() > AT_ONCE || size > BYTES_AT_ONCE {
            return self.commit_by_journal(changes);
        }
        let operations: Vec<Value> = changes.iter().map(|change| self.operation(change)).collect();
        self.write(&operations, true)
    }

    fn set_aside(&mut self, why: &str) -> Result<String, StoreError> {
        self.claim()?;
        let entries = self.load()?;
        self.finish_journal()?;
        let to = format!("{}.{why}", self.prefix);
        let all: Vec<(&Key, &Vec<u8>)> = entries.iter().collect();
        for part in all.chunks(AT_ONCE) {
            let put = |(key, value): &(&Key, &Vec<u8>)| {
                let hex: String = key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                let name = encode(format!("{to}/e/{hex}").as_bytes());
                json!({ "requestPut": { "key": name, "value": encode(value) } })
            };
            self.write(&part.iter().map(put).collect::<Vec<_>>(), false)?;
        }
        self.delete("e/")?;
        Ok(to)
    }

    fn keep_alive(&mut self) -> Result<(), StoreError> {
        let Some(id) = self.lease_id else { return self.claim() };
        let answer = self.client.call("lease/keepalive", &json!({ "ID": id.to_string() }))?;
        if number(&answer["result"]["TTL"]) == 0 {
            self.lease_id = None;
            return self.claim();
        }
        Ok(())
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.client.call("kv/range", &json!({ "key": self.key("generation") })).map(drop)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let Some(id) = self.lease_id.take() else { return Ok(()) };
        self.client.call("lease/revoke", &json!({ "ID": id.to_string() })).map(drop)
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !hex.len().is_multiple_of(2) {
        return None;
    }
    hex.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
