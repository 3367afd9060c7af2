//! Routes as JSON for programs: the tables, and with them what the text dumps of unicast tables have no room for, service
//! levels and SL-to-VL tables; written and read.

use mad::types::Guid;
use serde::{Deserialize, Serialize};

use super::error::FormatError;
use super::tables::{self, Tables, owned_lids, without_table};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl, Routes, Row, SlToVl};

#[derive(Serialize)]
struct Document<'a> {
    engine: &'a str,
    /// Data VLs that the routes need.
    vls: u8,
    switches: Vec<Switch<'a>>,
    sl: Sl<'a>,
    sl_to_vl: Mapping<'a>,
    /// Place of each switch in the order that up/down paths keep, where the engine claims it.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'a [u32]>,
}

#[derive(Serialize)]
struct Switch<'a> {
    guid: Guid,
    name: &'a str,
    /// Exit port by LID, 255 for none.
    lft: Row<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Sl<'a> {
    /// SL 0 everywhere.
    Default,
    /// By LID of the destination.
    ByDestination(&'a [u8]),
    /// For each switch that packets enter at, by LID of the destination.
    BySourceSwitch(Vec<Row<'a>>),
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
        order: routes.order.as_deref(),
    };
    // Numbers, texts and lists always have a form in JSON.
    serde_json::to_string(&document).unwrap_or_default() + "\n"
}

/// Whether a text is meant to be such a document.
pub fn is(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

#[derive(Deserialize)]
struct Stored {
    engine: String,
    vls: u8,
    switches: Vec<StoredSwitch>,
    sl: StoredSl,
    sl_to_vl: StoredMapping,
    #[serde(default)]
    order: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct StoredSwitch {
    guid: Guid,
    lft: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredSl {
    Default,
    ByDestination(Vec<u8>),
    BySourceSwitch(Vec<Vec<u8>>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredMapping {
    Identity,
    Uniform([u8; 16]),
    PerSwitch(Vec<Vec<[u8; 16]>>),
}

/// Reads the document for the switches of `graph`.
///
/// # Errors
/// JSON that does not parse (with line and column) or has another layout; switches or ports that the graph does not have, SLs
/// or VLs above 15, lists of another length than there are switches, lists of SLs that don't reach to the last LID or beyond the
/// tables.
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Tables, FormatError> {
    let stored: Stored = serde_json::from_str(text).map_err(|error| FormatError {
        file: file.into(),
        line: error.line(),
        column: error.column(),
        found: error.to_string(),
        expected: "the routes.json that `rsm route -o` writes".into(),
    })?;
    let wrong = |found: String, expected: &str| FormatError::file(file, found, expected);
    let mut rows = Vec::with_capacity(stored.switches.len());
    let mut named = vec![false; graph.switch_count()];
    let mut top = graph.top_lid();
    for (number, switch) in stored.switches.iter().enumerate() {
        let found = graph.find(switch.guid).filter(|s| !std::mem::replace(&mut named[*s as usize], true));
        let s = found.ok_or_else(|| {
            wrong(format!("switches[{number}], {}", switch.guid), "each switch of this topology once")
        })?;
        let ports = graph.num_ports(s);
        if let Some(lid) = switch.lft.iter().position(|port| *port > ports && *port != NO_PORT) {
            let found =
                format!("switches[{number}].lft[{lid}], port {} of \"{}\"", switch.lft[lid], graph.name(s));
            return Err(wrong(found, &format!("a port from 0 to {ports}, or 255 for none")));
        }
        if switch.lft.len() > 0xc000 {
            return Err(wrong(
                format!("switches[{number}].lft, {} entries", switch.lft.len()),
                "at most 49152",
            ));
        }
        top = top.max(switch.lft.len().saturating_sub(1) as u16);
        rows.push(s);
    }
    let mut routes = Routes::empty(&stored.engine, graph);
    routes.vls = stored.vls;
    routes.lfts = LftMatrix::new(graph.switch_count(), top);
    for (s, switch) in rows.iter().zip(&stored.switches) {
        routes.lfts.row_mut(*s).update(|row| row[..switch.lft.len()].copy_from_slice(&switch.lft));
    }
    let (least, most) = (usize::from(graph.top_lid()) + 1, routes.lfts.stride());
    let sl_fits = |what: String, row: &[u8]| match row.iter().find(|sl| **sl > 15 && **sl != NO_PORT) {
        Some(sl) => Err(wrong(format!("{what}, SL {sl}"), "SLs from 0 to 15, or 255 for none")),
        None if !(least..=most).contains(&row.len()) => {
            let found = format!("{what}, a list of {} SLs", row.len());
            Err(wrong(found, &format!("one for each LID from 0 to {}, {least} to {most} of them", least - 1)))
        }
        None => Ok(()),
    };
    let count = rows.len();
    routes.sl = match stored.sl {
        StoredSl::Default => PathSl::Default,
        StoredSl::ByDestination(table) => {
            sl_fits("sl".into(), &table)?;
            PathSl::ByDestination(table)
        }
        StoredSl::BySourceSwitch(table) if table.len() == count => {
            let mut matrix = LftMatrix::filled(graph.switch_count(), top, NO_PORT);
            for (number, (s, row)) in rows.iter().zip(&table).enumerate() {
                sl_fits(format!("sl[{number}]"), row)?;
                matrix.row_mut(*s).update(|into| into[..row.len()].copy_from_slice(row));
            }
            PathSl::BySourceSwitch(matrix)
        }
        StoredSl::BySourceSwitch(table) => {
            return Err(wrong(
                format!("sl, {} lists", table.len()),
                &format!("one for each of {count} switches"),
            ));
        }
    };
    routes.sl_to_vl = match stored.sl_to_vl {
        StoredMapping::Identity => SlToVl::Identity,
        StoredMapping::Uniform(map) => SlToVl::Uniform(map),
        StoredMapping::PerSwitch(tables) if tables.len() == count => {
            let mut all = vec![Vec::new(); graph.switch_count()];
            for (s, table) in rows.iter().zip(tables) {
                all[*s as usize] = table;
            }
            SlToVl::PerSwitch(all)
        }
        StoredMapping::PerSwitch(tables) => {
            let found = format!("sl_to_vl, {} lists", tables.len());
            return Err(wrong(found, &format!("one for each of {count} switches")));
        }
    };
    if let Some(order) = stored.order {
        if order.len() != count {
            let found = format!("order, {} places", order.len());
            return Err(wrong(found, &format!("one for each of {count} switches")));
        }
        // Switches that the file does not name come last: nothing is said of them.
        let mut places = vec![u32::MAX; graph.switch_count()];
        rows.iter().zip(order).for_each(|(s, place)| places[*s as usize] = place);
        routes.order = Some(places.into());
    }
    let mut warnings: Vec<String> = without_table(file, graph, &named).into_iter().collect();
    warnings.extend(unknown_lids(file, graph, &routes));
    Ok(Tables { routes, warnings })
}

/// What is said of entries for LIDs that nobody has.
fn unknown_lids(file: &str, graph: &SwitchGraph, routes: &Routes) -> Option<String> {
    let owned = owned_lids(graph);
    let mut unknown = (0..graph.switch_count() as SwitchIndex).flat_map(|s| {
        let entries = routes.lfts.row(s).iter().enumerate().skip(1);
        let owned = &owned;
        entries.filter(move |(lid, port)| **port != NO_PORT && !owned[*lid]).map(move |(lid, _)| (s, lid))
    });
    let (s, lid) = unknown.next()?;
    let first = format!("LID {lid} of switch \"{}\"", graph.name(s));
    Some(tables::unknown_lids(file, 1 + unknown.count(), &first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RoutingInput, by_name};
    use crate::fabric::testing;

    #[test]
    fn what_every_engine_writes_is_read_back() {
        let graph = SwitchGraph::new(&testing::torus(&[4, 4], 1, 0));
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        for engine in ["minhop", "updn", "dfsssp", "lash", "nue", "torus-2qos"] {
            let routes = by_name(engine).unwrap().route(&graph, &input).unwrap();
            let read = read("r", &write(&graph, &routes), &graph).unwrap();
            assert!(read.warnings.is_empty());
            // Room for multicast is a planner's matter, not the tables'.
            assert_eq!(read.routes, Routes { spanning: Vec::new(), ..routes }, "{engine}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let graph = SwitchGraph::new(&testing::torus(&[4], 1, 0));
        let routes = by_name("minhop").unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let text = write(&graph, &routes);
        let said = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            read("r", &text.replacen(from, to, 1), &graph).unwrap_err().to_string()
        };
        let guid = graph.guid(0).to_string();
        assert!(said("}", "").starts_with("r:1:"), "truncated or torn: the place");
        assert!(
            said(&guid, "0x0000000000000099")
                .contains("switches[0], 0x0000000000000099, expected each switch")
        );
        assert!(
            said("[255,", "[99,")
                .contains("switches[0].lft[0], port 99 of \"S1\", expected a port from 0 to")
        );
        assert!(
            said("\"default\"", "{\"by-destination\":[16]}").contains("sl, SL 16, expected SLs from 0 to 15")
        );
        let by_destination = |count: usize| format!("{{\"by-destination\":{:?}}}", vec![0; count]);
        let top = usize::from(graph.top_lid());
        for count in [0, top, routes.lfts.stride() + 1] {
            let found = said("\"default\"", &by_destination(count));
            let expected =
                format!("r: sl, a list of {count} SLs, expected one for each LID from 0 to {top}, ");
            assert!(found.starts_with(&expected), "{found}");
        }
        for count in [top + 1, routes.lfts.stride()] {
            let fits = text.replacen("\"default\"", &by_destination(count), 1);
            assert!(read("r", &fits, &graph).is_ok(), "{count}");
        }
        assert!(
            said("\"default\"", "{\"by-source-switch\":[[],[],[],[]]}").contains("r: sl[0], a list of 0 SLs"),
        );
        assert!(
            said("\"default\"", "{\"by-source-switch\":[[0]]}")
                .contains("sl, 1 lists, expected one for each of 4")
        );
        assert!(
            said("\"identity\"", "{\"per-switch\":[]}")
                .contains("sl_to_vl, 0 lists, expected one for each of 4")
        );
    }
}
