//! `rsm route --adaptive`: port groups for switches with adaptive routing, as a table or JSON.
//!
//! Exit codes: 0 right, 1 refused or some choice is wrong.

use comfy_table::{CellAlignment, Table, presets};
use mad::types::Guid;
use routing::adaptive::PortSet;
use routing::adaptive::groups::{self, Abilities, GroupTable, Summary, detours};
use routing::engines::{RoutingEngine, RoutingError, RoutingInput};
use routing::fabric::SwitchGraph;
use routing::verify::choices::ChoiceReport;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::out;

/// What became of one engine.
#[derive(Serialize)]
struct Grouped {
    engine: &'static str,
    refused: Option<String>,
    summary: Option<Summary>,
    report: Option<ChoiceReport>,
    switches: Vec<Switch>,
}

/// The groups of a switch.
#[derive(Serialize)]
struct Switch {
    guid: Guid,
    name: String,
    groups: Vec<Group>,
    /// For packets that came in over a global link, where there are detours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after_global: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    ports: PortSet,
    lids: Vec<u16>,
}

pub(super) fn run(
    graph: &SwitchGraph,
    engines: &[&'static dyn RoutingEngine],
    input: &RoutingInput,
    group_cap: u16,
    with_detours: bool,
    json: bool,
) -> Outcome {
    let abilities = Abilities { switches: None, group_cap };
    let grouped: Vec<Grouped> =
        engines.iter().map(|engine| Grouped::new(*engine, graph, input, &abilities, with_detours)).collect();
    if json {
        out::json(&grouped)?;
    } else {
        out::write(&as_text(&grouped))?;
    }
    let right = grouped.iter().all(|g| g.report.as_ref().is_some_and(ChoiceReport::is_right));
    if right { Ok(()) } else { Err(Failure::Reported) }
}

impl Grouped {
    fn new(
        engine: &'static dyn RoutingEngine,
        graph: &SwitchGraph,
        input: &RoutingInput,
        abilities: &Abilities,
        with_detours: bool,
    ) -> Self {
        let engine = engine.name();
        let found = if with_detours && engine == "dragonfly-plus" {
            detours::route(graph, input, abilities).map(|(found, report)| (found.first, found.second, report))
        } else if with_detours {
            let reason = "it has no detours; dragonfly-plus has".into();
            Err(RoutingError::Unsuitable { engine, reason })
        } else {
            groups::route(engine, graph, input, abilities)
                .map(|(routes, report)| (routes, Vec::new(), report))
        };
        match found {
            Ok((routes, second, report)) => {
                let switch = |s: u32| {
                    let table = &routes.tables[s as usize];
                    let listed = |table: &GroupTable| {
                        let groups = table.groups.iter().zip(table.lids());
                        groups.map(|(ports, lids)| Group { ports: *ports, lids }).collect::<Vec<_>>()
                    };
                    Switch {
                        guid: graph.guid(s),
                        name: graph.name(s).to_owned(),
                        groups: listed(table),
                        after_global: second.get(s as usize).map(listed).unwrap_or_default(),
                    }
                };
                let switches = (0..graph.switch_count() as u32).map(switch).collect();
                let summary = Some(routes.summary(graph));
                Self { engine, refused: None, summary, report: Some(report), switches }
            }
            Err(error) => {
                let refused = Some(error.to_string());
                Self { engine, refused, summary: None, report: None, switches: Vec::new() }
            }
        }
    }

    /// What the check of all choices says.
    fn verdict(&self) -> String {
        let Some(report) = &self.report else { return String::new() };
        match (&report.first_fault, &report.credit_loop) {
            (Some(fault), _) => {
                format!("WRONG: LID {}: {}: {}", fault.lid, fault.kind.name(), path(&fault.path))
            }
            (None, Some(found)) => format!("WRONG: credit loop: {found}"),
            (None, None) => "right: all choices arrive, no credit loop".to_owned(),
        }
    }
}

fn path(hops: &[routing::verify::Hop]) -> String {
    hops.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn as_text(grouped: &[Grouped]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "engine",
        "switches",
        "most groups",
        "LIDs per group",
        "exits per group",
        "adaptive",
        "smaller",
        "limited",
        "left out",
        "verdict",
    ]);
    for i in 1..9 {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for found in grouped {
        let Some(summary) = &found.summary else { continue };
        table.add_row([
            found.engine.to_owned(),
            summary.switches.to_string(),
            summary.most_groups.to_string(),
            format!("{:.1}", summary.reuse),
            format!("{:.2}", summary.members),
            format!("{:.1} %", 100.0 * summary.adaptive),
            summary.smaller.to_string(),
            summary.limited.to_string(),
            summary.narrowed.to_string(),
            found.verdict(),
        ]);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    for refused in grouped.iter().filter_map(|found| found.refused.as_ref()) {
        text += &format!("refused: {refused}\n");
    }
    text
}
