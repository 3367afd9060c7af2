//! Asks the subnet administration of the first usable port for all node records, then (with `paths`) for the paths
//! between all ports by one SubnAdmGetMulti. Shows how transport, client and time come together.
//!
//! `cargo run -p mad --example sa_query -- [--device NAME] [paths]`

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use mad::sa_client::{Answer, Query, SaClient, SaClientConfig};
use mad::transport::umad::{self, OpenOptions, PortSelector, UmadTransport};
use mad::transport::{Address, Transport};
use mad::types::{Gid, ServiceLevel, Timestamp};
use mad::wire::Attribute;
use mad::wire::sa::{MultiPathRecord, NodeRecord, PathRecord, Record};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut device, mut paths) = (None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--device" => device = arguments.next(),
            "paths" => paths = true,
            other => {
                return Err(format!("unknown argument `{other}`: expected --device NAME or paths").into());
            }
        }
    }
    let selector = PortSelector { device, ..PortSelector::default() };
    let selected = umad::select(&umad::devices()?, &selector)?;
    let lid = selected.port.sm_lid.ok_or("the port knows no subnet manager")?;
    let address = Address::gsi(lid.get(), ServiceLevel(selected.port.sm_sl.unwrap_or(0)));
    let prefix = selected.port.gid_prefix.unwrap_or(Gid::DEFAULT_PREFIX);
    let transport = UmadTransport::open(&selected, &OpenOptions::client())?;
    let mut out = std::io::stdout().lock();

    let nodes = ask(&transport, Query::get_all::<NodeRecord>(address))?;
    let may_be_cut = nodes.may_be_cut();
    let nodes = nodes.records::<NodeRecord>()?;
    for node in &nodes {
        writeln!(out, "{:>5} {} {}", node.lid.get(), node.node_info.port_guid(), node.node_description)?;
    }
    if may_be_cut {
        writeln!(out, "there may be more: the answer came without RMPP")?;
    }
    if paths {
        let gids: Vec<_> = nodes.iter().map(|n| Gid::new(prefix, n.node_info.port_guid())).collect();
        let mut template = MultiPathRecord::zeroed();
        template.set_numb_path(127);
        let names = ["NumbPath", "SGIDCount", "DGIDCount"];
        let mask = MultiPathRecord::component_mask(&names).ok_or("no such component")?;
        let attribute = template.with_gids(&gids, &gids).ok_or("more ports than SubnAdmGetMulti can name")?;
        let answer = ask(&transport, Query::get_multi(address, attribute, mask))?;
        for path in answer.records::<PathRecord>()? {
            writeln!(out, "{} -> {}: LID {} -> {}", path.sgid(), path.dgid(), path.slid, path.dlid)?;
        }
    }
    Ok(())
}

/// Runs one query to its end.
fn ask(transport: &UmadTransport, query: Query) -> Result<Answer, Box<dyn Error>> {
    let start = Instant::now();
    let now = || Timestamp::from_start(start.elapsed());
    let mut client = SaClient::new(SaClientConfig::default(), std::process::id());
    client.submit(query, ());
    loop {
        while let Some((datagram, timeout)) = client.poll_send(now()) {
            transport.send(&datagram, timeout)?;
        }
        if let Some(((), result)) = client.poll_answer() {
            return Ok(result?);
        }
        let wait = client.deadline().map_or(Duration::from_millis(100), |at| at.saturating_since(now()));
        if let Some(received) = transport.receive(wait)? {
            client.receive(&received, now());
        }
        client.expired(now());
    }
}
