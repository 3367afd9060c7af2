//! Brings up the fabric at the first usable port and prints the report as JSON. For measuring without the command line's
//! ceremony: `bringup [STATE_DIR [SECONDS]]`. With SECONDS it goes on for so long and prints one line for each round.

use std::sync::Arc;

use mad::transport::umad::{IsSm, OpenOptions, PortSelector, UmadTransport, devices, select};
use sm_core::config::Config;
use sm_core::daemon::{Control, Hooks, Setup, run, run_once};
use sm_core::sa::ServerConfig;
use sm_core::settings::SmSettings;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let selected = select(&devices()?, &PortSelector::default())?;
    let transport = Arc::new(UmadTransport::open(&selected, &OpenOptions::subnet_manager())?);
    let mut config = Config::default();
    if let Some(window) = std::env::var("WINDOW").ok().and_then(|w| w.parse().ok()) {
        config.transactions.window = window;
    }
    let seconds: Option<u64> = std::env::args().nth(2).and_then(|s| s.parse().ok());
    let setup = Setup {
        transport: Arc::clone(&transport) as Arc<_>,
        own: mad::types::Guid::NONE,
        settings: SmSettings::load(&config)?,
        state_dir: std::env::args().nth(1).map(Into::into),
        state_sync: sm_core::config::StateSync::Grouped,
        reassign: false,
        sa: ServerConfig::default(),
        mirror: None,
        etcd: None,
    };
    let mut held = None;
    let hooks = Hooks {
        is_sm: Box::new(move |on| {
            drop(held.take());
            held = if on { Some(IsSm::set(transport.smi_port()).map_err(|e| e.to_string())?) } else { None };
            Ok(())
        }),
        report: Box::new(move |report| {
            if seconds.is_some()
                && let Ok(text) = serde_json::to_string(report)
            {
                print(&(text + "\n"));
            }
        }),
        ..Hooks::default()
    };
    if let Some(seconds) = seconds {
        let (stop, control) = crossbeam_channel::bounded(1);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(seconds));
            stop.send(Control::Stop)
        });
        return Ok(run(setup, hooks, &control)?);
    }
    let report = run_once(setup, hooks)?;
    print(&serde_json::to_string_pretty(&report)?);
    Ok(())
}

fn print(text: &str) {
    // A reader that has gone is no reason to stop.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
