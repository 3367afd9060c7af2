//! `rsm discover`: the topology, in the words of ibnetdiscover or in other forms. Only Gets are sent.

use mad::transactions::TransactionConfig;
use mad::transport::umad::{OpenOptions, UmadTransport};
use routing::formats::{dot, ibnetdiscover, json, slurm};
use sm_core::config::{DeviceConfig, LogConfig, LogLevel};
use sm_core::daemon;
use sm_core::observed::Observed;
use sm_core::sweep::SweepSettings;

use crate::args::{Discover, TopologyFormat};
use crate::failure::{Outcome, complain};
use crate::progress::Progress;
use crate::{host, logging, out};

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
    let found = daemon::discover(&transport, SweepSettings::default(), config, |now| {
        progress.say(|| format!("{} nodes, {} answers", now.nodes, now.answered));
    })?;
    drop(progress);
    for finding in &found.observed.findings {
        complain(&finding.text);
    }
    out::write(&render(&found.observed, args.format)?)
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
