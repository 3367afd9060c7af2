//! An etcd of the scenario: what a cluster answers at its JSON gateway, in virtual time, with the troubles that the scenario lays
//! down. Ranges, transactions with comparisons, and leases, as far as `sm_core::store::etcd` uses them.
//!
//! A call takes time of its own: it is done at once, and [`Cluster::spent`] says how long whoever called is busy with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mad::types::Timestamp;
use serde_json::{Value, json};
use simulations::scenario::{EtcdSpec, EtcdTrouble};
use sm_core::store::StoreError;
use sm_core::store::etcd::Gateway;

/// How long a manager waits for an answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
const NAME: &str = "etcd of the scenario";

/// A value, and what goes with it.
#[derive(Clone, Debug)]
struct Held {
    value: Vec<u8>,
    created: i64,
    modified: i64,
    lease: i64,
}

#[derive(Debug)]
struct Lease {
    length: Duration,
    ends: Timestamp,
}

/// The data, and the time that it is for whoever calls.
#[derive(Debug)]
pub(crate) struct Cluster {
    spec: EtcdSpec,
    revision: i64,
    leases_so_far: i64,
    data: BTreeMap<Vec<u8>, Held>,
    leases: BTreeMap<i64, Lease>,
    /// When its data was last lost, of those times that are in the past.
    wiped: u64,
    now: Timestamp,
    spent: Duration,
}

impl Cluster {
    pub(crate) fn new(spec: &EtcdSpec) -> Self {
        Self {
            spec: spec.clone(),
            revision: 1,
            leases_so_far: 0,
            data: BTreeMap::new(),
            leases: BTreeMap::new(),
            wiped: 0,
            now: Timestamp::ZERO,
            spent: Duration::ZERO,
        }
    }

    /// Somebody begins to call.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        (self.now, self.spent) = (now, Duration::ZERO);
    }

    /// How long the calls since took.
    pub(crate) const fn spent(&self) -> Duration {
        self.spent
    }

    /// The time that it is for whoever calls.
    pub(crate) fn time(&self) -> Timestamp {
        self.now + self.spent
    }

    /// Brings the data to a time: leases end, a disk is lost.
    fn pass(&mut self, at: Timestamp) {
        let ended: Vec<i64> = self.leases.iter().filter(|(_, l)| l.ends <= at).map(|(id, _)| *id).collect();
        ended.into_iter().for_each(|id| self.revoke(id));
        let ms = at.as_nanos() / 1_000_000;
        let wipes = self.spec.trouble.iter().filter(|t| matches!(t, EtcdTrouble::Wiped { .. }));
        let last = wipes.map(EtcdTrouble::at_ms).filter(|wiped| *wiped <= ms).max().unwrap_or(0);
        if last > self.wiped {
            self.wiped = last;
            self.revision += 1;
            self.data.clear();
        }
    }

    fn revoke(&mut self, id: i64) {
        if self.leases.remove(&id).is_some() {
            self.revision += 1;
            self.data.retain(|_, held| held.lease != id);
        }
    }

    /// What keeps it from answering now.
    fn trouble(&self, at: Timestamp) -> Option<&EtcdTrouble> {
        let ms = at.as_nanos() / 1_000_000;
        self.spec.trouble.iter().find(|trouble| trouble.lasts_at(ms))
    }

    fn call(&mut self, path: &str, body: &Value) -> Result<Value, StoreError> {
        let no_answer = |what: &str| {
            Err(StoreError::Remote { store: NAME.into(), what: "no answer", reason: what.into() })
        };
        let mut takes = Duration::from_micros(self.spec.answer_us);
        match self.trouble(self.time()) {
            Some(EtcdTrouble::Refusing { .. }) => return no_answer("connection refused"),
            Some(EtcdTrouble::Silent { .. }) => {
                self.spent += TIMEOUT;
                return no_answer("timeout");
            }
            Some(EtcdTrouble::Late { by_ms, .. }) => takes = Duration::from_millis(*by_ms),
            Some(EtcdTrouble::Wiped { .. }) | None => {}
        }
        let at = self.time() + takes.min(TIMEOUT);
        self.pass(at);
        let answer = self.answer(path, body);
        self.spent += takes.min(TIMEOUT);
        // Done, but nobody is told.
        if takes > TIMEOUT { no_answer("timeout") } else { Ok(answer) }
    }

    fn answer(&mut self, path: &str, body: &Value) -> Value {
        match path {
            "kv/range" => self.range(body),
            "kv/txn" => self.transact(body),
            "lease/grant" => {
                self.leases_so_far += 1;
                let length = Duration::from_secs(number(&body["TTL"]).unsigned_abs());
                let lease = Lease { length, ends: self.time() + length };
                self.leases.insert(self.leases_so_far, lease);
                json!({ "ID": self.leases_so_far.to_string() })
            }
            "lease/keepalive" => {
                let now = self.time();
                let left = self.leases.get_mut(&number(&body["ID"])).map_or(0, |lease| {
                    lease.ends = now + lease.length;
                    lease.length.as_secs()
                });
                json!({ "result": { "TTL": left.to_string() } })
            }
            "lease/revoke" => {
                self.revoke(number(&body["ID"]));
                json!({})
            }
            other => unreachable!("{other} is not asked for"),
        }
    }

    fn range(&self, body: &Value) -> Value {
        let from = decode(&body["key"]);
        let to = body.get("range_end").map_or_else(|| [&from[..], &[0]].concat(), decode);
        let limit =
            usize::try_from(number(&body["limit"])).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let found: Vec<_> = self.data.range(from..to).collect();
        let kvs: Vec<Value> = found.iter().take(limit).map(|(key, held)| {
            json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(&held.value), "mod_revision": held.modified.to_string() })
        }).collect();
        json!({ "header": { "revision": self.revision.to_string() }, "kvs": kvs, "more": found.len() > limit })
    }

    fn transact(&mut self, body: &Value) -> Value {
        let holds = |compare: &Value| {
            let held = self.data.get(&decode(&compare["key"]));
            match compare["target"].as_str() {
                Some("VALUE") => held.is_some_and(|held| held.value == decode(&compare["value"])),
                Some("MOD") => held.map_or(0, |held| held.modified) == number(&compare["mod_revision"]),
                _ => held.map_or(0, |held| held.created) == number(&compare["create_revision"]),
            }
        };
        let succeeded = list(&body["compare"]).iter().all(holds);
        if succeeded {
            self.revision += 1;
            for operation in list(&body["success"]) {
                self.operate(operation);
            }
        }
        json!({ "header": { "revision": self.revision.to_string() }, "succeeded": succeeded })
    }

    fn operate(&mut self, operation: &Value) {
        if let Some(put) = operation.get("requestPut") {
            let (key, revision) = (decode(&put["key"]), self.revision);
            let created = self.data.get(&key).map_or(revision, |held| held.created);
            let lease = number(&put["lease"]);
            self.data.insert(key, Held { value: decode(&put["value"]), created, modified: revision, lease });
        } else if let Some(delete) = operation.get("requestDeleteRange") {
            let from = decode(&delete["key"]);
            let to = delete.get("range_end").map_or_else(|| [&from[..], &[0]].concat(), decode);
            let deleted = from..to;
            self.data.retain(|key, _| !deleted.contains(key));
        }
    }
}

/// What a manager calls.
pub(crate) struct Calls(pub(crate) Arc<Mutex<Cluster>>);

impl Gateway for Calls {
    fn call(&mut self, path: &str, body: &Value) -> Result<Value, StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).call(path, body)
    }

    fn endpoint(&self) -> &str {
        NAME
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn decode(value: &Value) -> Vec<u8> {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
