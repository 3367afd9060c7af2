//! `rsm load`: asks subnet administration, ours or any other's, as many things at once as many hosts would, checks every
//! answer, and says how fast they came. The storm of a job's start, of a restart of all IPoIB interfaces, of a service that
//! everybody looks up; what clients join and register they leave and take back.

mod client;
mod figures;
mod work;

use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use mad::rmpp::RmppConfig;
use mad::sa_client::SaClientConfig;
use mad::transport::Address;
use mad::transport::umad::{AgentSpec, OpenOptions, Registration, Selected, UmadTransport};
use mad::types::{Gid, NodeType, ServiceLevel};
use mad::wire::sa::NodeRecord;
use mad::wire::{Attribute, MgmtClass};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sm_core::config::DeviceConfig;

use super::query::{Asker, whole_tables};
use crate::args::Load;
use crate::failure::{Failure, Outcome};
use crate::{host, out};

use client::End;
use figures::{Figures, Tally};
use work::{Port, Slot};

pub(super) fn run(args: &Load) -> Outcome {
    let choice = DeviceConfig { name: args.device.clone(), port: args.port, guid: None };
    let selected = host::select(&choice)?;
    let port = port(&selected)?;
    let config = SaClientConfig {
        window: args.window.into(),
        timeout: Duration::from_millis(args.timeout.into()),
        retries: args.retries,
        rmpp: RmppConfig { max_bytes: 2 << 30, ..whole_tables() },
        ..SaClientConfig::default()
    };
    let transports: Vec<_> = (0..args.clients).map(|_| open(&selected)).collect::<Outcome<_>>()?;
    let start = Instant::now();
    let end = match args.count {
        Some(count) => End::After { begun: AtomicU64::new(0), count },
        None => End::At(start + Duration::from_secs(args.seconds.into())),
    };
    let tallies: Vec<_> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, transport) in (0..).zip(&transports) {
            let (port, end) = (&port, &end);
            let window = u32::from(args.window);
            let slots = (0..window).map(|slot| Slot::new(args.work, number * window + slot)).collect();
            let random = Pcg64Mcg::seed_from_u64(args.seed.wrapping_add(number.into()));
            // The kernel tells agents apart by the upper half of the transaction ID, simulators don't.
            let first_tid = (number << 24) + 1;
            let work = move || client::run(transport, config, first_tid, port, slots, end, random);
            threads.push(scope.spawn(work));
        }
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))).collect()
    });
    let took = start.elapsed();
    let mut sum = Tally::default();
    for tally in tallies {
        sum.add(tally??);
    }
    let figures = Figures::new(sum, took);
    if args.json {
        out::json(&figures)?;
    } else {
        out::write(&figures.table())?;
    }
    figures.complaint().map_or(Ok(()), |complaint| Err(Failure::Failed(anyhow!(complaint))))
}

fn open(selected: &Selected) -> Outcome<UmadTransport> {
    let agents = vec![AgentSpec::client(MgmtClass::SUBN_ADM, true)];
    Ok(UmadTransport::open(selected, &OpenOptions { agents, registration: Registration::default() })?)
}

/// Who asks whom, and for whom.
fn port(selected: &Selected) -> Outcome<Port> {
    let transport = open(selected)?;
    let port = transport.smi_port().clone();
    let lid = port
        .sm_lid
        .ok_or_else(|| anyhow!("{} has no subnet manager yet: its port knows no LID of one", port.device))?;
    let guid = port.port_guid.with_context(|| format!("{port} has no GID"))?;
    let prefix = port.gid_prefix.with_context(|| format!("{port} has no GID"))?;
    let address = Address::gsi(lid.get(), ServiceLevel(port.sm_sl.unwrap_or(0)));
    let mut asker = Asker::new(Box::new(transport), address, 0);
    let nodes = asker.table(&NodeRecord::zeroed(), &[])?;
    let hosts = nodes.iter().filter(|node| node.node_info.node_type() == Some(NodeType::Ca));
    let destinations = hosts.map(|node| Gid::new(prefix, node.node_info.port_guid())).collect();
    Ok(Port { address, gid: Gid::new(prefix, guid), destinations })
}
