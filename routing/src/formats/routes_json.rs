//! Routes as JSON for programs: the tables, and with them what the text dumps of unicast tables have no room for, service
//! levels and SL-to-VL tables.

use mad::types::Guid;
use serde::Serialize;

use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{PathSl, Routes, SlToVl};

#[derive(Serialize)]
struct Document<'a> {
    engine: &'a str,
    /// Data VLs that the routes need.
    vls: u8,
    switches: Vec<Switch<'a>>,
    sl: Sl<'a>,
    sl_to_vl: Mapping<'a>,
}

#[derive(Serialize)]
struct Switch<'a> {
    guid: Guid,
    name: &'a str,
    /// Exit port by LID, 255 for none.
    lft: &'a [u8],
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Sl<'a> {
    /// SL 0 everywhere.
    Default,
    /// By LID of the destination.
    ByDestination(&'a [u8]),
    /// For each switch that packets enter at, by LID of the destination.
    BySourceSwitch(Vec<&'a [u8]>),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Mapping<'a> {
    /// VL = SL.
    Identity,
    /// VL by SL.
    Uniform(&'a [u8; 16]),
    /// For each switch, VL by SL for each pair of ports: entry · (ports + 1) + exit.
    PerSwitch(&'a [Vec<[u8; 16]>]),
}

/// The document.
pub fn write(graph: &SwitchGraph, routes: &Routes) -> String {
    let all = || 0..graph.switch_count() as SwitchIndex;
    let document = Document {
        engine: &routes.engine,
        vls: routes.vls,
        switches: all()
            .map(|s| Switch { guid: graph.guid(s), name: graph.name(s), lft: routes.lfts.row(s) })
            .collect(),
        sl: match &routes.sl {
            PathSl::Default => Sl::Default,
            PathSl::ByDestination(table) => Sl::ByDestination(table),
            PathSl::BySourceSwitch(table) => Sl::BySourceSwitch(all().map(|s| table.row(s)).collect()),
        },
        sl_to_vl: match &routes.sl_to_vl {
            SlToVl::Identity => Mapping::Identity,
            SlToVl::Uniform(map) => Mapping::Uniform(map),
            SlToVl::PerSwitch(tables) => Mapping::PerSwitch(tables),
        },
    };
    // Numbers, texts and lists always have a form in JSON.
    serde_json::to_string(&document).unwrap_or_default() + "\n"
}
