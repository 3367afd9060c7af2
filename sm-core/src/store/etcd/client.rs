//! etcd's JSON gateway (`/v3/…` since etcd 3.4): HTTP POST with JSON in and out, keys and values in base64, 64-bit numbers
//! as text, and fields left out where they are 0 or false.
//!
//! One request at a time. Endpoints are tried in turn, the last that answered first. With user and password a token is asked
//! for, and again when it is no longer taken. Cost: one round trip a call; none waits longer than the configured time for
//! each endpoint.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::{EtcdConfig, Gateway};
use crate::store::StoreError;

/// The most that is read of one answer, in bytes.
const ANSWER: u64 = 64 << 20;

/// A connection to a cluster.
pub(super) struct Client {
    agent: Agent,
    endpoints: Vec<String>,
    /// Index of the endpoint that answered last.
    current: usize,
    user: Option<(String, String)>,
    token: Option<String>,
}

/// An answer that is not success.
struct Failed {
    status: u16,
    message: String,
}

impl Client {
    pub(super) fn new(config: &EtcdConfig) -> Result<Self, StoreError> {
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(config.timeout))
            .proxy(None)
            .max_idle_age(Duration::from_secs(60));
        if let Some(pem) = &config.ca {
            let items: Vec<Certificate<'static>> = parse_pem(pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                })
                .collect();
            if items.is_empty() {
                return Err(StoreError::Refused {
                    store: config.endpoints.join(", "),
                    reason: "etcd.ca_file holds no certificate in PEM".into(),
                });
            }
            let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&items)).build();
            builder = builder.tls_config(tls);
        }
        Ok(Self {
            agent: builder.build().new_agent(),
            endpoints: config.endpoints.clone(),
            current: 0,
            user: config.user.clone(),
            token: None,
        })
    }

    fn log_in(&mut self) -> Result<(), StoreError> {
        let Some((name, password)) = self.user.clone() else { return Ok(()) };
        let path = "auth/authenticate";
        match self.post(path, &json!({ "name": name, "password": password }))? {
            Ok(answer) => self.token = answer["token"].as_str().map(str::to_owned),
            // A cluster without authentication takes everybody.
            Err(failed) if failed.message.contains("authentication is not enabled") => {}
            Err(failed) => return Err(self.error(path, failed)),
        }
        Ok(())
    }

    fn current(&self) -> &str {
        self.endpoints.get(self.current).map_or("", String::as_str)
    }

    /// One POST to the first endpoint that answers; the outer error is that none did.
    fn post(&mut self, path: &str, body: &Value) -> Result<Result<Value, Failed>, StoreError> {
        let mut last = String::new();
        for _ in 0..self.endpoints.len() {
            let url = format!("{}/v3/{path}", self.current());
            let mut request = self.agent.post(&url).header("Content-Type", "application/json");
            if let Some(token) = &self.token {
                request = request.header("Authorization", token);
            }
            let answer = request.send(body.to_string()).and_then(|mut response| {
                let text = response.body_mut().with_config().limit(ANSWER).read_to_string()?;
                Ok((response.status().as_u16(), text))
            });
            match answer {
                Ok((200, text)) => match serde_json::from_str(&text) {
                    Ok(answer) => return Ok(Ok(answer)),
                    Err(error) => last = format!("not JSON: {error}"),
                },
                // 503: this member has no leader. Another may have.
                Ok((503, text)) => last = message_of(&text),
                Ok((status, text)) => return Ok(Err(Failed { status, message: message_of(&text) })),
                Err(error) => last = error.to_string(),
            }
            self.current = (self.current + 1) % self.endpoints.len();
        }
        let store = self.endpoints.join(", ");
        if last.contains("invalid peer certificate") {
            return Err(StoreError::Untrusted { store, reason: last });
        }
        Err(StoreError::Remote { store, what: "no answer", reason: last })
    }

    fn error(&self, path: &str, failed: Failed) -> StoreError {
        let store = self.current().to_owned();
        let said = &failed.message;
        let refused = ["authentication failed", "permission denied", "user name is empty", "auth token"];
        if failed.status == 401 || refused.iter().any(|words| said.contains(words)) {
            return StoreError::Refused { store, reason: failed.message };
        }
        let reason = format!("{path}: {said} (HTTP {})", failed.status);
        StoreError::Remote { store, what: "refused", reason }
    }
}

impl Gateway for Client {
    fn endpoint(&self) -> &str {
        self.current()
    }

    /// The token is renewed once where it has run out.
    fn call(&mut self, path: &str, body: &Value) -> Result<Value, StoreError> {
        if self.token.is_none() {
            self.log_in()?;
        }
        match self.post(path, body)? {
            Ok(answer) => Ok(answer),
            Err(failed) if self.user.is_some() && failed.message.contains("invalid auth token") => {
                self.log_in()?;
                self.post(path, body)?.map_err(|failed| self.error(path, failed))
            }
            Err(failed) => Err(self.error(path, failed)),
        }
    }
}

/// The gateway's error text, which is JSON, or whatever else came.
fn message_of(text: &str) -> String {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let told = parsed["error"].as_str().or_else(|| parsed["message"].as_str());
    told.unwrap_or(text).trim().chars().take(200).collect()
}

pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decode(value: &Value) -> Vec<u8> {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
}

/// A 64-bit number, which the gateway writes as text and leaves out when it is 0.
pub(super) fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_i64()).unwrap_or(0)
}
