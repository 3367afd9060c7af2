//! `rsm query`: asks subnet administration, as saquery does: ours or any other's. Only questions are asked.
//!
//! One list says for each kind of record which of its fields a table shows ([`kinds`]); how a field reads follows from
//! its name and width in the record's component table ([`fields`]).

mod ask;
mod fields;
mod kinds;
mod show;

use mad::transport::umad::{OpenOptions, UmadTransport};
use mad::transport::{Address, Transport};
use mad::types::ServiceLevel;
use sm_core::config::DeviceConfig;

use crate::args::{Query, QueryKind};
use crate::failure::Outcome;
use crate::{host, out};

pub(super) use ask::{Asker, whole_tables};
use show::{Form, show};

pub(super) fn run(args: &Query) -> Outcome {
    let choice = DeviceConfig { name: args.device.clone(), port: args.port, guid: None };
    let selected = host::select(&choice)?;
    let transport = UmadTransport::open(&selected, &OpenOptions::client())?;
    let port = transport.smi_port().clone();
    let lid = port.sm_lid.ok_or_else(|| {
        anyhow::anyhow!("{} has no subnet manager yet: its port knows no LID of one", port.device)
    })?;
    let address = Address::gsi(lid.get(), ServiceLevel(port.sm_sl.unwrap_or(0)));
    let transport: Box<dyn Transport> = Box::new(transport);
    let mut asker = Asker::new(transport, address, args.sm_key.unwrap_or(0));
    let form = match (args.raw, args.json) {
        (true, _) => Form::Raw,
        (false, true) => Form::Json,
        (false, false) => Form::Table,
    };
    if matches!(args.kind, QueryKind::ClassPortInfo) {
        return out::write(&show::class_port_info(&asker.class_port_info()?, form)?);
    }
    let found = kinds::ask(&mut asker, &args.kind)?;
    out::write(&show(&found, form)?)
}
