//! The lists and numbers by which engines are steered on the command line.

use std::path::{Path, PathBuf};

use mad::types::Guid;
use routing::engines::RoutingInput;
use routing::fabric::SwitchGraph;
use routing::formats::{FormatError, steering, torus};

use super::offline::{text, usage};
use crate::args::Steering;
use crate::failure::{Outcome, complain};

/// A list that a flag names; where there is no flag, an empty one.
///
/// # Errors
/// It can't be used, or says nothing: whoever named it meant something.
pub(super) fn list<T: Default>(
    file: Option<&Path>,
    parse: impl Fn(&str, &str) -> Result<T, FormatError>,
) -> Outcome<T> {
    let Some(file) = file else { return Ok(T::default()) };
    let name = file.display().to_string();
    let text = text(file)?;
    if text.lines().all(|line| line.split('#').next().unwrap_or("").trim().is_empty()) {
        return Err(usage(format!("{name}: the list is empty, expected a line for each that is meant")));
    }
    parse(&name, &text).map_err(usage)
}

/// The root switches that a flag names.
///
/// # Errors
/// As [`list`]; none of them is a switch of `graph`.
pub(super) fn roots(file: Option<&Path>, graph: &SwitchGraph) -> Outcome<Vec<Guid>> {
    let named = list(file, steering::guids)?;
    match file {
        Some(file) if named.iter().all(|guid| graph.find(*guid).is_none()) => Err(usage(format!(
            "{}: none of the {} GUIDs is a switch of this topology, the first is {}",
            file.display(),
            named.len(),
            named[0]
        ))),
        _ => Ok(named),
    }
}

/// Reads the files that the flags name, and tells what in them means nothing in this fabric.
///
/// # Errors
/// The first that can't be used.
pub(super) fn input(args: &Steering, graph: &SwitchGraph) -> Outcome<RoutingInput> {
    let ports = |guid| graph.find(guid).map(|switch| graph.num_ports(switch));
    let read = |file: &Option<PathBuf>| list(file.as_deref(), steering::guids);
    let input = RoutingInput {
        root_guids: roots(args.root_guids.as_deref(), graph)?,
        compute_guids: read(&args.cn_guids)?.into_iter().collect(),
        io_guids: read(&args.io_guids)?.into_iter().collect(),
        ids: list(args.ids.as_deref(), steering::ids)?,
        hop_weights: list(args.hop_weights.as_deref(), |file, text| {
            steering::hop_weights(file, text)
                .and_then(|read| steering::has_ports(file, text, false, ports).map(|()| read))
        })?,
        port_order: list(args.port_order.as_deref(), |file, text| {
            steering::port_order(file, text)
                .and_then(|read| steering::has_ports(file, text, true, ports).map(|()| read))
        })?,
        scatter: args.scatter,
        max_vls: args.max_vls.unwrap_or(0),
        torus: list(args.torus_conf.as_deref(), |file, text| torus::read(file, text).map(Some))?,
        ..RoutingInput::default()
    };
    input.unmeant(graph).iter().for_each(|line| complain(line));
    Ok(input)
}
