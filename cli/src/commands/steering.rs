//! The lists and numbers by which engines are steered on the command line.

use routing::engines::RoutingInput;
use routing::fabric::SwitchGraph;
use routing::formats::{steering, torus};
use sm_core::config;

use super::offline::usage;
use crate::args::Steering;
use crate::failure::{Outcome, complain};

/// Reads the files that the flags name, and tells what in them means nothing in this fabric.
///
/// # Errors
/// The first that can't be used.
pub(super) fn input(args: &Steering, graph: &SwitchGraph) -> Outcome<RoutingInput> {
    let ports = |guid| graph.find(guid).map(|switch| graph.num_ports(switch));
    let read = |file: &Option<_>| config::read(file.as_deref(), steering::guids).map_err(usage);
    let input = RoutingInput {
        root_guids: read(&args.root_guids)?,
        compute_guids: read(&args.cn_guids)?.into_iter().collect(),
        io_guids: read(&args.io_guids)?.into_iter().collect(),
        ids: config::read(args.ids.as_deref(), steering::ids).map_err(usage)?,
        hop_weights: config::read(args.hop_weights.as_deref(), |file, text| {
            steering::hop_weights(file, text)
                .and_then(|read| steering::has_ports(file, text, false, ports).map(|()| read))
        })
        .map_err(usage)?,
        port_order: config::read(args.port_order.as_deref(), |file, text| {
            steering::port_order(file, text)
                .and_then(|read| steering::has_ports(file, text, true, ports).map(|()| read))
        })
        .map_err(usage)?,
        scatter: args.scatter,
        max_vls: args.max_vls.unwrap_or(0),
        torus: config::read(args.torus_conf.as_deref(), |file, text| torus::read(file, text).map(Some))
            .map_err(usage)?,
        ..RoutingInput::default()
    };
    input.unmeant(graph).iter().for_each(|line| complain(line));
    Ok(input)
}
