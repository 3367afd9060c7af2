//! One question after the other, and finding a node by what the user calls it.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use mad::rmpp::RmppConfig;
use mad::sa_client::{Answer, Query, QueryError, SaClient, SaClientConfig};
use mad::transport::{Address, Transport};
use mad::types::{Lid, Timestamp};
use mad::wire::sa::{ClassPortInfo, NodeRecord, Record, SaMad};
use mad::wire::{Attribute, Method, Status};

use crate::args::NodeChoice;
use crate::failure::{Failure, Outcome, complain};

/// Room for the longest tables: all paths of 4,000 ports are a gigabyte. One acknowledgement for 32 segments.
pub(in crate::commands) fn whole_tables() -> RmppConfig {
    RmppConfig { window: 64, max_message: 1 << 30, max_bytes: 1 << 30, ..RmppConfig::default() }
}

/// Asks subnet administration through a device.
pub(in crate::commands) struct Asker {
    transport: Box<dyn Transport>,
    address: Address,
    sm_key: u64,
    client: SaClient<()>,
    start: Instant,
}

impl Asker {
    pub(in crate::commands) fn new(transport: Box<dyn Transport>, address: Address, sm_key: u64) -> Self {
        let config = SaClientConfig { rmpp: whole_tables(), ..SaClientConfig::default() };
        let client = SaClient::new(config, std::process::id());
        Self { transport, address, sm_key, client, start: Instant::now() }
    }

    /// Whether an SM_Key is given.
    pub(super) fn is_trusted(&self) -> bool {
        self.sm_key != 0
    }

    /// All records that agree with a template in the named components.
    pub(in crate::commands) fn table<R: Record>(
        &mut self,
        template: &R,
        components: &[&str],
    ) -> Outcome<Vec<R>> {
        let mask = R::component_mask(components).context("a component that the record does not have")?;
        let answer = match self.ask(Query::get_table(self.address, template, mask))? {
            // Some answer an empty table so.
            Err(QueryError::Status(Status::SA_NO_RECORDS)) => return Ok(Vec::new()),
            answer => answer.map_err(explained)?,
        };
        if answer.may_be_cut() {
            complain("the answer may be cut: it came without RMPP, in one datagram");
        }
        Ok(answer.records::<R>()?)
    }

    pub(super) fn class_port_info(&mut self) -> Outcome<ClassPortInfo> {
        let head = SaMad::request(Method::GET, ClassPortInfo::ID, 0);
        let query = Query { address: self.address, head, segments: None };
        let answer = self.ask(query)?.map_err(explained)?;
        Ok(ClassPortInfo::decode(&answer.data).context("a ClassPortInfo that is too short")?)
    }

    /// The LIDs of the nodes that are meant; `None`: all nodes.
    ///
    /// # Errors
    /// Nothing on the fabric is called so.
    pub(super) fn lids(&mut self, choice: &NodeChoice) -> Outcome<Option<Vec<Lid>>> {
        if let Some(lid) = choice.lid {
            return Ok(Some(vec![lid]));
        }
        if choice.name.is_none() && choice.guid.is_none() {
            return Ok(None);
        }
        let nodes = self.table(&NodeRecord::zeroed(), &[])?;
        let meant = |record: &&NodeRecord| {
            let info = &record.node_info;
            choice.name.as_ref().is_none_or(|name| *name == record.node_description.to_string())
                && choice.guid.is_none_or(|guid| guid == info.node_guid() || guid == info.port_guid())
        };
        let found: Vec<Lid> =
            nodes.iter().filter(meant).filter_map(|record| Lid::new(record.lid.get())).collect();
        if found.is_empty() {
            let what = match (&choice.name, choice.guid) {
                (Some(name), _) => format!("no node is called \"{name}\""),
                (None, guid) => format!("no node or port has GUID {}", guid.unwrap_or_default()),
            };
            return Err(Failure::Failed(anyhow!("{what}; `rsm query node` lists them")));
        }
        Ok(Some(found))
    }

    /// The LID of the one node that a word means: a LID, a GUID with 0x before it, or a name.
    pub(super) fn one(&mut self, word: &str) -> Outcome<Lid> {
        let choice = NodeChoice::from_word(word);
        match self.lids(&choice)?.as_deref() {
            Some([lid]) => Ok(*lid),
            Some(several) => {
                Ok(Err(anyhow!("\"{word}\" means {} ports; name one by LID or port GUID", several.len()))?)
            }
            None => Ok(Err(anyhow!("\"{word}\" means no port"))?),
        }
    }

    /// One question and its end; the outer error is the device's.
    fn ask(&mut self, query: Query) -> Outcome<Result<Answer, QueryError>> {
        self.client.submit(query.with_sm_key(self.sm_key), ());
        loop {
            while let Some((datagram, timeout)) = self.client.poll_send(self.now()) {
                self.transport.send(&datagram, timeout)?;
            }
            if let Some(((), result)) = self.client.poll_answer() {
                return Ok(result);
            }
            let now = self.now();
            let wait =
                self.client.deadline().map_or(Duration::from_millis(100), |at| at.saturating_since(now));
            if let Some(received) = self.transport.receive(wait)? {
                self.client.receive(&received, self.now());
            }
            self.client.expired(self.now());
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }
}

/// What to do about the answers that users meet.
fn explained(error: QueryError) -> anyhow::Error {
    match error {
        QueryError::Status(Status::SA_REQ_INVALID) => {
            anyhow!("{error}: refused as invalid; what only trusted clients may see needs --sm-key")
        }
        QueryError::Timeout => anyhow!("{error}; a wrong --sm-key is not answered either"),
        _ => anyhow!(error),
    }
}
