//! Brings up the fabric at the first usable port and prints the report as JSON. For measuring without the command line's
//! ceremony: `bringup [STATE_DIR]`.

use std::sync::Arc;

use mad::transport::umad::{IsSm, OpenOptions, PortSelector, UmadTransport, devices, select};
use sm_core::config::Config;
use sm_core::daemon::{Hooks, Setup, run_once};
use sm_core::sa::ServerConfig;
use sm_core::settings::SmSettings;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let selected = select(&devices()?, &PortSelector::default())?;
    let transport = Arc::new(UmadTransport::open(&selected, &OpenOptions::subnet_manager())?);
    let mut config = Config::default();
    if let Some(window) = std::env::var("WINDOW").ok().and_then(|w| w.parse().ok()) {
        config.transactions.window = window;
    }
    let setup = Setup {
        transport: Arc::clone(&transport) as Arc<_>,
        settings: SmSettings::from(&config),
        state_dir: std::env::args().nth(1).map(Into::into),
        reassign: false,
        sa: ServerConfig::default(),
    };
    let mut held = None;
    let hooks = Hooks {
        is_sm: Box::new(move |on| {
            held.take();
            if on {
                held.insert(IsSm::set(transport.smi_port()).map_err(|e| e.to_string())?);
            }
            Ok(())
        }),
        ..Hooks::default()
    };
    let report = run_once(setup, hooks)?;
    let text = serde_json::to_string_pretty(&report)?;
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    Ok(())
}
