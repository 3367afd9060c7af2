//! `rsm simulate failures`: every case routed from the tables that stood before, as the daemon does, and laid beside these, as a
//! table, CSV or JSON; beside that, what routing from nothing would take and move.
//!
//! Exit codes: 0 done, 1 some case could not be routed right or an engine refused the whole fabric, 2 input that can't be used,
//! `--data-vls` that are too few for one of the engines on the whole fabric included.

use std::sync::Arc;
use std::time::Instant;

use comfy_table::{CellAlignment, Table, presets};
use routing::engines::{self, NO_FALLBACK, RoutingEngine, RoutingError, RoutingInput};
use routing::fabric::{Fabric, SwitchGraph};
use routing::study::failures::{self, Case, Cost, Kind, Standing};
use serde::Serialize;

use crate::args::{FailureKind, Failures};
use crate::commands::offline::{routable, too_few_vls, usage};
use crate::failure::{Failure, Outcome, complain};
use crate::out;
use crate::progress::Bar;

/// What became of one case with one engine.
#[derive(Serialize)]
struct Row {
    engine: &'static str,
    failed: String,
    /// Why the engine does not route what is left.
    refused: Option<String>,
    /// Milliseconds of routing from nothing, on this machine.
    milliseconds: f64,
    /// The same from the tables that stood before; engines that can't go from these route from nothing.
    milliseconds_from_standing: f64,
    /// Entries that would change by routing from nothing; `None` where the engine refuses that.
    moved_from_nothing: Option<usize>,
    /// Of the tables from those that stood before.
    cost: Option<Cost>,
}

pub(super) fn run(args: &Failures) -> Outcome {
    let (fabric, graph) = routable(&args.topology)?;
    let graph = Arc::new(graph);
    let cases = failures::draw(&fabric, kind(&args.kind), args.cases as usize, args.seed)
        .map_err(|error| usage(format!("{}: {error}", args.topology.display())))?;
    let chosen: Vec<_> =
        args.engine.iter().map(|name| engines::by_name(name)).collect::<Result<_, _>>().map_err(usage)?;
    let input = RoutingInput { data_vls: args.data_vls, ..RoutingInput::default() };
    let bar = Bar::start(chosen.len() * cases.len(), "cases");
    let mut rows = Vec::new();
    let (alone, mut refusals) = (chosen.len() == 1, Vec::new());
    for engine in chosen {
        let whole = match engine.route(&graph, &input) {
            Ok(whole) => whole,
            Err(refused) => {
                refusals.push(refused);
                cases.iter().for_each(|_| bar.step());
                continue;
            }
        };
        let chain = [engine.name(), NO_FALLBACK];
        let kept =
            engines::route_chain_from(&chain, &graph, &input, None).ok().map(|chained| chained.standing);
        let standing = Standing::new(&graph, whole);
        for case in &cases {
            rows.push(play(engine, &fabric, (&standing, kept.as_ref()), case, &input));
            bar.step();
        }
    }
    drop(bar);
    let too_few = refusals.iter().find_map(|refused| too_few_vls((args.data_vls, None), refused));
    if let Some(refused) = refusals.pop_if(|_| alone) {
        return Err(too_few.map_or_else(|| Failure::Failed(refused.into()), usage));
    }
    if args.json {
        out::json(&rows)?;
    } else if args.csv {
        out::write(&as_csv(&rows)?)?;
    } else {
        out::write(&as_text(&rows))?;
    }
    let said_last = |text: &String| too_few.as_ref().is_some_and(|last| last.ends_with(text));
    refusals.iter().map(ToString::to_string).filter(|text| !said_last(text)).for_each(|text| complain(&text));
    let right =
        refusals.is_empty() && rows.iter().all(|row| row.cost.as_ref().is_some_and(|cost| cost.right));
    match too_few {
        Some(text) => Err(usage(text)),
        None if right => Ok(()),
        None => Err(Failure::Reported),
    }
}

fn kind(kind: &FailureKind) -> Kind {
    match (kind.links, kind.switches) {
        (Some(links), _) => Kind::Links(links as usize),
        (None, Some(switches)) => Kind::Switches(switches as usize),
        (None, None) => Kind::EachLink,
    }
}

fn play(
    engine: &'static dyn RoutingEngine,
    fabric: &Fabric,
    (standing, kept): (&Standing, Option<&engines::Standing>),
    case: &Case,
    input: &RoutingInput,
) -> Row {
    let left = Arc::new(SwitchGraph::new(&failures::without(fabric, case)));
    let began = Instant::now();
    let from_nothing = engine.route(&left, input);
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
    let routed = engines::route_chain_from(&[engine.name(), NO_FALLBACK], &left, input, kept);
    let milliseconds_from_standing = began.elapsed().as_secs_f64() * 1e3;
    let in_words = |errors: &Vec<RoutingError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    Row {
        engine: engine.name(),
        failed: case.describe(fabric),
        milliseconds,
        milliseconds_from_standing,
        refused: routed.as_ref().err().map(|errors| in_words(errors).join("; ")),
        moved_from_nothing: from_nothing.ok().map(|routes| failures::moved(standing, &left, &routes)),
        cost: routed.ok().map(|chained| failures::compare(standing, &left, &chained.routes)),
    }
}

const COLUMNS: [&str; 19] = [
    "engine",
    "failed",
    "connected",
    "hosts lost",
    "right",
    "ms",
    "ms from standing",
    "must move",
    "moved",
    "moved from nothing",
    "blocks",
    "switches",
    "load before",
    "load after",
    "loops",
    "cuts",
    "steps",
    "credit loop",
    "refused",
];

impl Row {
    fn cells(&self) -> [String; COLUMNS.len()] {
        let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
        let of = |cell: &dyn Fn(&Cost) -> String| self.cost.as_ref().map(cell).unwrap_or_default();
        [
            self.engine.to_owned(),
            self.failed.clone(),
            of(&|c| yes(c.connected)),
            of(&|c| c.hosts_lost.to_string()),
            of(&|c| yes(c.right)),
            format!("{:.2}", self.milliseconds),
            format!("{:.2}", self.milliseconds_from_standing),
            of(&|c| c.must_move.to_string()),
            of(&|c| c.moved.to_string()),
            self.moved_from_nothing.map(|moved| moved.to_string()).unwrap_or_default(),
            of(&|c| c.blocks.to_string()),
            of(&|c| c.switches.to_string()),
            of(&|c| c.worst_before.to_string()),
            of(&|c| c.worst_after.to_string()),
            of(&|c| c.loops.to_string()),
            of(&|c| c.cuts.to_string()),
            of(&|c| c.steps.to_string()),
            of(&|c| yes(c.credit_loop)),
            self.refused.clone().unwrap_or_default(),
        ]
    }
}

fn as_csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS)?;
    for row in rows {
        csv.write_record(row.cells())?;
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}

fn as_text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(COLUMNS);
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.add_rows(rows.iter().map(Row::cells));
    if rows.iter().all(|row| row.refused.is_none())
        && let Some(column) = table.column_mut(COLUMNS.len() - 1)
    {
        column.set_constraint(comfy_table::ColumnConstraint::Hidden);
    }
    let mut text = format!("{}\n\n", table.trim_fmt());
    for of_engine in rows.chunk_by(|a, b| a.engine == b.engine) {
        text += &format!("{}\n", summary(of_engine));
    }
    text
}

/// The worst of all cases of one engine, in a line.
fn summary(rows: &[Row]) -> String {
    let costs: Vec<&Cost> = rows.iter().filter_map(|row| row.cost.as_ref()).collect();
    let most = |value: &dyn Fn(&Cost) -> usize| costs.iter().map(|cost| value(cost)).max().unwrap_or(0);
    let count = |what: &dyn Fn(&Cost) -> bool| costs.iter().filter(|cost| what(cost)).count();
    let slowest = rows.iter().map(|row| row.milliseconds).fold(0.0, f64::max);
    let from_standing = rows.iter().map(|row| row.milliseconds_from_standing).fold(0.0, f64::max);
    let from_nothing = rows.iter().filter_map(|row| row.moved_from_nothing).max().unwrap_or(0);
    format!(
        "{}: {} cases, {} refused, {} not connected, {} not right; at most {slowest:.2} ms from nothing, {from_standing:.2} ms from the tables before, {} entries moved, {} that had to \
         (from nothing {from_nothing}), load {}; {} with possible loops, {} with possible credit loops on the way",
        rows.first().map_or("", |row| row.engine),
        rows.len(),
        rows.len() - costs.len(),
        count(&|c| !c.connected),
        count(&|c| !c.right),
        most(&|c| c.moved),
        most(&|c| c.must_move),
        most(&|c| c.worst_after as usize),
        count(&|c| c.loops > 0),
        count(&|c| c.credit_loop),
    )
}
