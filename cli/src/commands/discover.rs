//! `rsm discover`: the topology, in the words of ibnetdiscover or in other forms. Only Gets are sent.

use std::sync::Arc;

use mad::transactions::TransactionConfig;
use mad::transport::umad::{OpenOptions, UmadTransport};
use mad::types::Guid;
use routing::formats::{dot, ibnetdiscover, json, slurm};
use sm_core::config::{DeviceConfig, LogConfig, LogLevel};
use sm_core::daemon::{self, DaemonError};
use sm_core::keys::KeyRing;
use sm_core::observed::Observed;
use sm_core::store;
use sm_core::sweep::SweepSettings;

use crate::args::{Discover, TopologyFormat};
use crate::failure::{Failure, Outcome, complain};
use crate::progress::Progress;
use crate::{host, logging, out, settings};

/// More than this at once overruns the fabric simulator ibsim; real fabrics gain nothing from more either.
const WINDOW: usize = 128;

pub(super) fn run(args: &Discover) -> Outcome {
    let log = logging::init(&LogConfig { level: LogLevel::Warn, ..LogConfig::default() })?;
    let choice = DeviceConfig { name: args.port.device.clone(), port: args.port.port, guid: args.port.guid };
    let selected = host::select(&choice)?;
    let transport = UmadTransport::open(&selected, &OpenOptions::client())?;
    let transport = host::captured(transport, args.capture.as_deref())?;
    let progress = Progress::start(&log, "discovering");
    let config = TransactionConfig { window: WINDOW, per_destination: 8, ..TransactionConfig::default() };
    let keys = keys(args)?;
    let knows_keys = keys.in_use();
    let own = selected.port.port_guid.unwrap_or(Guid::NONE);
    let sweep = SweepSettings { keys: Arc::new(keys), own, ..SweepSettings::default() };
    let found = daemon::discover(&transport, sweep, config, |now| {
        progress.say(|| format!("{} nodes, {} answers", now.nodes, now.answered));
    });
    drop(progress);
    let found = found.map_err(|error| match error {
        DaemonError::Sweep(_) => anyhow::anyhow!("{error}{}", hint(knows_keys)).into(),
        other => Failure::from(other),
    })?;
    for finding in &found.observed.findings {
        complain(&finding.text);
    }
    for end in found.observed.dangling() {
        complain(&format!(
            "port {} of {} has a link, and nothing answers behind it{}",
            end.port,
            found.observed.name(end.node),
            hint(knows_keys)
        ));
    }
    let mut virtual_ports = found.observed.can_have_virtual_ports();
    if let Some(first) = virtual_ports.next() {
        complain(&format!(
            "{} ports can have virtual ports, which rsm run does not serve and leaves DOWN, the first of them port {} of {}",
            virtual_ports.count() + 1,
            first.port,
            found.observed.name(first.node)
        ));
    }
    out::write(&render(&found.observed, args.format)?)
}

/// Who answers nobody without a key.
const fn hint(knows_keys: bool) -> &'static str {
    if knows_keys {
        ": it may hold an M_Key that is not among those given"
    } else {
        ": it may be locked with an M_Key; --config names a file with the section m_key"
    }
}

/// The keys that ports may hold, as far as they were named.
fn keys(args: &Discover) -> Outcome<KeyRing> {
    let policy = match &args.config {
        Some(file) => settings::manager(&settings::load(file)?, Some(file))?.m_keys,
        None => Arc::default(),
    };
    let remembered = args.state_dir.as_deref().map(store::peek).transpose()?;
    Ok(KeyRing::new(policy, remembered.map(|restored| restored.keys).unwrap_or_default()))
}

fn render(observed: &Observed, format: TopologyFormat) -> Outcome<String> {
    Ok(match format {
        TopologyFormat::Text => {
            let generated = jiff::ZonedDateTime::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
            let options =
                ibnetdiscover::WriteOptions { from: observed.local, generated: &generated, full: false };
            ibnetdiscover::write(&observed.fabric, &options)
        }
        TopologyFormat::Json => json::write(&observed.fabric, Some(observed.local)),
        TopologyFormat::Dot => dot::write(&observed.fabric, false),
        TopologyFormat::Slurm => slurm::write(&observed.fabric),
    })
}
