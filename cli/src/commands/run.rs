//! `rsm run`: the subnet manager at a port of this host.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{Sender, bounded};
use mad::transport::umad::{DevicePort, IsSm, OpenOptions, UmadTransport};
use mad::types::Guid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use sm_core::config::{self, Config};
use sm_core::daemon::{self, Control, Hooks, Mirror, Setup};
use sm_core::sa::ServerConfig;
use sm_core::sm::{Progress as Stage, Report};
use sm_core::store::etcd::EtcdConfig;

use crate::args::{Run, Settings};
use crate::dump::Dump;
use crate::failure::{Failure, Outcome};
use crate::files::Files;
use crate::logging::LogTarget;
use crate::progress::Progress;
use crate::{host, logging, out, secret, settings, summary};

pub(super) fn run(args: &Run) -> Outcome {
    let config = settings::effective(&args.settings)?;
    let manager = settings::manager(&config, settings::file_of(&args.settings).as_deref())?;
    let log = logging::init(&config.log)?;
    let dump = args.dump_dir.as_deref().map(Dump::new).transpose()?;
    let selected = host::select(&config.device)?;
    for skipped in &selected.skipped {
        tracing::info!("passed over {skipped}");
    }
    let transport = UmadTransport::open(&selected, &OpenOptions::subnet_manager())?;
    let (port, knows_rmpp) = (transport.smi_port().clone(), !transport.is_simulator());
    tracing::info!(device = %port.device, port = port.number.0, guid = ?port.port_guid, "taking the port");
    let setup = Setup {
        transport: host::captured(transport, args.capture.as_deref())?,
        own: port.port_guid.unwrap_or(Guid::NONE),
        settings: manager,
        state_dir: Some(config.state.dir.clone()),
        state_sync: config.state.sync,
        reassign: config.lids.reassign,
        sa: server(&config, knows_rmpp),
        mirror: mirror(&config, &port)?,
        etcd: etcd(&config.etcd, &port)?,
    };
    let (files, writing) = Files::start(&config.files)?.unzip();
    let told = Told { port: &port, log: &log, dump, files };
    let outcome = if args.once { once(args, setup, told) } else { forever(args, setup, told) };
    drop(writing);
    log.tell_rest();
    outcome
}

/// `knows_rmpp`: whether hosts' devices acknowledge segments; ibsim's don't.
fn server(config: &Config, knows_rmpp: bool) -> ServerConfig {
    let workers = usize::from(config.sa.workers);
    let mut server = ServerConfig { queue: config.sa.queue as usize, workers, ..ServerConfig::default() };
    if !knows_rmpp {
        server.rmpp.retries_to_strangers = 0;
    }
    server
}

/// What mirroring needs, where a secret is configured.
fn mirror(config: &Config, port: &DevicePort) -> Outcome<Option<Mirror>> {
    let Some(path) = &config.failover.secret_file else { return Ok(None) };
    let own = port.port_guid.context("the port's GUID is not known")?;
    let (secret, incarnation) = (secret::read(path)?, secret::unguessable()?);
    Ok(Some(Mirror { secret, own, incarnation, acknowledge: config.failover.acknowledge }))
}

/// How etcd is reached, where it is configured.
fn etcd(config: &config::EtcdConfig, port: &DevicePort) -> Outcome<Option<EtcdConfig>> {
    if config.endpoints.0.is_empty() {
        return Ok(None);
    }
    let user = match (&config.user, &config.password_file) {
        (Some(user), Some(file)) => {
            let password = String::from_utf8(secret::private(file)?);
            let password =
                password.map_err(|_| Failure::Usage(format!("{}: a password is text", file.display())))?;
            Some((user.clone(), password))
        }
        _ => None,
    };
    let read = |file: &PathBuf| fs::read(file).with_context(|| format!("{}: can't be read", file.display()));
    Ok(Some(EtcdConfig {
        endpoints: config.endpoints.0.clone(),
        prefix: config.prefix.clone(),
        user,
        ca: config.ca_file.as_ref().map(read).transpose()?,
        lease: Duration::from_secs(u64::from(config.lease_s)),
        timeout: Duration::from_millis(u64::from(config.timeout_ms)),
        own: port.port_guid.context("the port's GUID is not known")?,
        incarnation: secret::unguessable()?,
    }))
}

/// One bring-up, its summary, and success only when all is programmed and confirmed.
fn once(args: &Run, setup: Setup, told: Told<'_>) -> Outcome {
    let report = daemon::run_once(setup, hooks(told, |_| ()))?;
    if args.json {
        out::json(&summary::as_json(&report))?;
    } else {
        out::write(&summary::as_text(&report))?;
    }
    if report.is_complete() { Ok(()) } else { Err(Failure::Reported) }
}

/// Until a signal ends it.
fn forever(args: &Run, setup: Setup, told: Told<'_>) -> Outcome {
    let (controls, control) = bounded(16);
    watch_signals(args.settings.clone(), told.log.clone(), controls)?;
    let json = args.json;
    // A reader of our output who leaves takes nothing away from the fabric.
    let show = move |report: &Report| {
        if report.verdict.is_some() || !report.failures.is_empty() {
            let _ = if json {
                out::line(&summary::as_json(report).to_string())
            } else {
                out::line(&summary::as_line(report))
            };
        }
    };
    Ok(daemon::run(setup, hooks(told, show), &control)?)
}

/// Who is told while the subnet manager runs.
struct Told<'a> {
    port: &'a DevicePort,
    log: &'a LogTarget,
    dump: Option<Dump>,
    files: Option<Files>,
}

/// What is told while the subnet manager runs.
fn hooks<'a>(told: Told<'a>, mut show: impl FnMut(&Report) + 'a) -> Hooks<'a> {
    let Told { port, log, dump, files } = told;
    let (pictures, figures) = (files.clone(), files.clone());
    let mut held: Option<IsSm> = None;
    let mut progress: Option<Progress> = None;
    Hooks {
        is_sm: Box::new(move |on| {
            drop(held.take());
            if on {
                held = Some(IsSm::set(port).map_err(|e| e.to_string())?);
            }
            Ok(())
        }),
        progress: Box::new(move |stage| {
            if stage == Stage::Idle {
                progress = None;
            } else {
                progress
                    .get_or_insert_with(|| Progress::start(log, "bringing up"))
                    .say(|| summary::stage(&stage));
            }
        }),
        report: Box::new(move |report| {
            files.iter().for_each(|files| files.report(report));
            show(report);
        }),
        published: Box::new(move |snapshot| {
            pictures.iter().for_each(|files| files.published(snapshot));
            dump.iter().for_each(|dump| dump.write(snapshot));
        }),
        figures: Box::new(move |told| figures.iter().for_each(|files| files.figures(told))),
    }
}

/// SIGTERM and SIGINT end, SIGHUP reads the configuration again and sweeps, SIGUSR1 opens the log file anew.
fn watch_signals(flags: Settings, log: LogTarget, controls: Sender<Control>) -> Outcome {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).context("signals")?;
    let watch = move || {
        for signal in signals.forever() {
            let control = match signal {
                SIGHUP => reload(&flags),
                SIGUSR1 => {
                    if let Err(failure) = log.reopen() {
                        tracing::error!("{}", failure.into_text());
                    }
                    continue;
                }
                _ => Control::Stop,
            };
            if controls.send(control).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).context("a thread for signals")?;
    Ok(())
}

/// The new settings; of a file that is wrong nothing is used, and the old settings stay (B69).
fn reload(flags: &Settings) -> Control {
    let file = settings::file_of(flags);
    match settings::effective(flags).and_then(|config| settings::manager(&config, file.as_deref())) {
        Ok(settings) => Control::Reload(Box::new(settings)),
        Err(failure) => {
            tracing::error!("configuration not reloaded, the old one stays: {}", failure.into_text());
            Control::Sweep
        }
    }
}
