//! `rsm simulate traffic`: the congestion of a pattern on several sets of tables, as a table, JSON and a picture.
//!
//! Exit codes: 0 done, 1 an engine refused the fabric, 2 input that can't be used, `--data-vls` that are too few for one of the
//! engines included.

use std::path::Path;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use routing::engines::{self, RoutingError, RoutingInput};
use routing::fabric::{Fabric, SwitchGraph};
use routing::formats::flows;
use routing::routes::LftMatrix;
use routing::study::picture::{self, Panel};
use routing::study::traffic::{self, Congestion, Pattern};
use serde::Serialize;

use crate::args::Traffic;
use crate::commands::offline::{routable, too_few_vls, usage};
use crate::commands::tables::without_levels;
use crate::failure::{Failure, Outcome};
use crate::out;

/// Links that are named in the JSON.
const BUSIEST: usize = 10;

/// What became of one engine or dump.
#[derive(Serialize)]
struct Study {
    /// Engine or file.
    tables: String,
    /// Why the engine does not route this fabric.
    refused: Option<String>,
    congestion: Option<Congestion>,
    busiest: Vec<LinkLoad>,
}

/// A link between switches, in one direction.
#[derive(Serialize)]
struct LinkLoad {
    from: String,
    port: u8,
    to: String,
    to_port: u8,
    /// In the sum of all rounds.
    load: u64,
}

pub(super) fn run(args: &Traffic) -> Outcome {
    let (fabric, graph) = routable(&args.topology)?;
    let pattern = pattern(args, &fabric, &graph)?;
    let candidates = candidates(args, &graph)?;
    let mut refused = candidates.iter().filter_map(|(_, routed)| routed.as_ref().err());
    let too_few = refused.find_map(|reason| too_few_vls((args.data_vls, None), reason));
    if let (Some(text), [_]) = (&too_few, &candidates[..]) {
        return Err(usage(text));
    }
    let studies = candidates
        .into_iter()
        .map(|(tables, routed)| Study::new(tables, routed, &graph, &pattern))
        .collect::<Vec<_>>();
    if let Some(file) = &args.svg {
        std::fs::write(file, draw(args, &graph, &studies)).with_context(|| format!("{}", file.display()))?;
    }
    if args.json {
        out::json(&studies)?;
    } else {
        out::write(&as_text(&studies))?;
    }
    match too_few {
        Some(text) => Err(usage(text)),
        None if studies.iter().all(|s| s.refused.is_none()) => Ok(()),
        None => Err(Failure::Reported),
    }
}

fn pattern(args: &Traffic, fabric: &Fabric, graph: &SwitchGraph) -> Outcome<Pattern> {
    let rounds = args.rounds as usize;
    Ok(match args.pattern.to_str() {
        Some("shift") => Pattern::Shift,
        Some("alltoall") => Pattern::AllToAll,
        Some("bisection") => Pattern::Bisection { rounds, seed: args.seed },
        Some("hotspot") => Pattern::HotSpot { rounds, seed: args.seed },
        _ => Pattern::Flows(flows_of(&args.pattern, fabric, graph)?),
    })
}

fn flows_of(path: &Path, fabric: &Fabric, graph: &SwitchGraph) -> Outcome<Vec<traffic::Flow>> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        usage(format!("{name}: {error}, expected shift, alltoall, bisection, hotspot or a file of flows"))
    })?;
    flows::read(&name, &String::from_utf8_lossy(&bytes), fabric, graph).map_err(usage)
}

/// Tables, or why there are none.
type Routed = Result<LftMatrix, RoutingError>;

/// Tables by name.
fn candidates(args: &Traffic, graph: &SwitchGraph) -> Outcome<Vec<(String, Routed)>> {
    let default = ["minhop".to_owned()];
    let names = if args.engine.is_empty() && args.tables.is_empty() { &default[..] } else { &args.engine };
    let chosen: Vec<_> =
        names.iter().map(|name| engines::by_name(name)).collect::<Result<_, _>>().map_err(usage)?;
    let input = RoutingInput { data_vls: args.data_vls, ..RoutingInput::default() };
    let route = |engine: &dyn engines::RoutingEngine| {
        (engine.name().to_owned(), engine.route(graph, &input).map(|routes| routes.lfts))
    };
    let mut all: Vec<_> = chosen.into_iter().map(route).collect();
    for file in &args.tables {
        all.push((file.display().to_string(), Ok(without_levels(file, graph)?)));
    }
    Ok(all)
}

impl Study {
    fn new(tables: String, routed: Routed, graph: &SwitchGraph, pattern: &Pattern) -> Self {
        match routed {
            Ok(lfts) => {
                let congestion = traffic::run(graph, &lfts, pattern);
                let busiest = busiest(graph, &congestion.links);
                Self { tables, refused: None, congestion: Some(congestion), busiest }
            }
            Err(reason) => {
                Self { tables, refused: Some(reason.to_string()), congestion: None, busiest: Vec::new() }
            }
        }
    }
}

fn busiest(graph: &SwitchGraph, links: &[u64]) -> Vec<LinkLoad> {
    let switches = 0..graph.switch_count() as u32;
    let arcs = switches.flat_map(|s| graph.arcs(s).iter().map(move |arc| (s, arc)));
    let mut all: Vec<_> = arcs.zip(links).filter(|(_, load)| **load > 0).collect();
    all.sort_by_key(|(_, load)| std::cmp::Reverse(**load));
    let named = |((s, arc), load): (_, &u64)| {
        let (s, arc): (u32, &routing::fabric::Arc) = (s, arc);
        LinkLoad {
            from: graph.name(s).to_owned(),
            port: arc.out_port,
            to: graph.name(arc.to).to_owned(),
            to_port: arc.in_port,
            load: *load,
        }
    };
    all.into_iter().take(BUSIEST).map(named).collect()
}

fn draw(args: &Traffic, graph: &SwitchGraph, studies: &[Study]) -> String {
    let drawn: Vec<(String, &Congestion)> = studies
        .iter()
        .filter_map(|study| {
            let congestion = study.congestion.as_ref()?;
            let bandwidth = congestion.bandwidth.mean;
            Some((format!("{}: bandwidth {bandwidth:.3}", study.tables), congestion))
        })
        .collect();
    let panels: Vec<_> = drawn.iter().map(|(title, found)| Panel { title, links: &found.links }).collect();
    let heading = format!("Load by link: {}, pattern {}", args.topology.display(), args.pattern.display());
    picture::load_by_link(graph, &heading, &panels)
}

fn as_text(studies: &[Study]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "tables",
        "rounds",
        "flows",
        "lost",
        "bandwidth",
        "deviation",
        "lowest",
        "worst load",
        "mean worst",
        "free rounds",
        "mean load",
        "unused links",
    ]);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let mut text = String::new();
    for study in studies {
        let Some(found) = &study.congestion else { continue };
        table.add_row([
            study.tables.clone(),
            found.rounds.to_string(),
            found.flows.to_string(),
            found.lost.to_string(),
            format!("{:.4}", found.bandwidth.mean),
            format!("{:.4}", found.bandwidth.deviation),
            format!("{:.4}", found.bandwidth.min),
            found.worst.max.to_string(),
            format!("{:.2}", found.worst.mean),
            found.free.to_string(),
            format!("{:.3}", found.mean_load),
            found.unused.to_string(),
        ]);
    }
    text += &format!("{}\n\n", table.trim_fmt());
    text += &histograms(studies);
    for refused in studies.iter().filter_map(|study| study.refused.as_ref()) {
        text += &format!("refused: {refused}\n");
    }
    text
}

/// Per cent of the flows by the load of the most loaded link on their way, a column for each set of tables.
fn histograms(studies: &[Study]) -> String {
    let found: Vec<_> = studies.iter().filter_map(|s| Some((&s.tables, s.congestion.as_ref()?))).collect();
    // The widest, into whose bins those of the others fall.
    let width = found.iter().map(|(_, c)| c.histogram.width).max().unwrap_or(1).max(1);
    let rebin = |congestion: &Congestion| {
        let mut bins: Vec<u64> = Vec::new();
        for (i, count) in (1..).zip(&congestion.histogram.counts) {
            let bin = (i * congestion.histogram.width).div_ceil(width) as usize - 1;
            bins.resize(bins.len().max(bin + 1), 0);
            bins[bin] += count;
        }
        bins
    };
    let columns: Vec<Vec<u64>> = found.iter().map(|(_, c)| rebin(c)).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(
        std::iter::once("flows by worst load").chain(found.iter().map(|(tables, _)| tables.as_str())),
    );
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let filled = |column: &Vec<u64>| column.iter().position(|count| *count > 0);
    let first = columns.iter().filter_map(filled).min().unwrap_or(0);
    for bin in first..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let (low, high) = (bin as u64 * width + 1, (bin as u64 + 1) * width);
        let label = if low == high { low.to_string() } else { format!("{low} to {high}") };
        let share = |column: &Vec<u64>| {
            let all: u64 = column.iter().sum();
            let count = column.get(bin).copied().unwrap_or(0);
            format!("{:.2} %", 100.0 * count as f64 / all.max(1) as f64)
        };
        table.add_row(std::iter::once(label).chain(columns.iter().map(share)));
    }
    if columns.is_empty() { String::new() } else { format!("{}\n", table.trim_fmt()) }
}
