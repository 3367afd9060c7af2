//! Routes by the first engine of the chain that takes the fabric, and what the verifier says of them: by difference from
//! the last plan where only links between switches changed: with the result that routing from nothing has, or with the fewest
//! entries moved (`routing::engines::Standing`).

use std::sync::Arc;

use mad::types::PortNum;
use routing::adaptive::Damping;
use routing::engines::{self, RoutingInput};
use routing::fabric::{Fabric, PortRef, SwitchGraph};
use routing::routes::Routes;
use routing::verify::{self, Report};

use super::{PlanError, PlanInput, balance};
use crate::observed::Observed;
use crate::qos::PortKind;
use crate::settings::PlanSettings;

/// The verifier's opinion.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// The engine that made the tables.
    pub engine: String,
    /// What the verifier found. Tables that do not reach every LID are not used at all; credit loops are reported.
    pub report: Report,
    /// Engines before it that refused the fabric, with their reasons (B21).
    pub refused: Vec<String>,
}

/// What engine and verifier keep for the next plan.
#[derive(Clone, Debug)]
pub struct Standing {
    engine: engines::Standing,
    proof: verify::Standing,
    /// What keeps routes that follow the load from moving back.
    damping: Damping,
}

impl Standing {
    /// What the verifier kept of the planned tables.
    pub const fn proof(&self) -> &verify::Standing {
        &self.proof
    }
}

/// Routes and the opinion.
#[derive(Debug)]
pub(super) struct Routed {
    pub(super) routes: Arc<Routes>,
    pub(super) verdict: Verdict,
    pub(super) standing: Standing,
    /// What the operator should know, a line each.
    pub(super) findings: Vec<String>,
}

pub(super) fn route(
    (fabric, graph): (&Fabric, &Arc<SwitchGraph>),
    plan: &PlanInput,
) -> Result<Routed, PlanError> {
    let (observed, settings, previous) = (&*plan.observed, &plan.settings, plan.previous.as_deref());
    let standing = previous.map(|plan| &plan.standing);
    let mut input =
        RoutingInput { data_vls: data_vls(graph, observed, settings), ..settings.steering.clone() };
    balance::stand_on(&mut input, graph, previous);
    let mut damping = standing.map(|standing| standing.damping.clone()).unwrap_or_default();
    let mut findings = input.unmeant(graph);
    let in_words = |errors: Vec<engines::RoutingError>| -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    };
    let mut refused = Vec::new();
    let mut chain: Vec<&str> = settings.engines.iter().map(String::as_str).collect();
    loop {
        let engine = standing.map(|standing| &standing.engine);
        let chained = engines::route_chain_from(&chain, graph, &input, engine).map_err(|errors| {
            refused.extend(in_words(errors));
            PlanError::NoEngine(std::mem::take(&mut refused))
        })?;
        refused.extend(in_words(chained.refused));
        let mut routes = chained.routes;
        if let Some(measured) = plan.measured.as_ref().filter(|_| routes.engine == balance::ENGINE) {
            let measured = (measured, settings.load_file.as_ref());
            findings.extend(balance::follow(&mut routes, &mut damping, (fabric, graph), measured));
        }
        let routes = Arc::new(routes);
        let proof = standing.map(|standing| &standing.proof);
        let (report, proof) = verify::check_from(graph, &routes, verify::Options::default(), proof);
        if report.reaches_all() {
            let verdict = Verdict { engine: routes.engine.clone(), report, refused };
            return Ok(Routed {
                routes,
                verdict,
                standing: Standing { engine: chained.standing, proof, damping },
                findings,
            });
        }
        // Tables that are wrong are as good as none: the next engine has its turn.
        refused.push(report.to_string());
        match chain.iter().position(|name| name.eq_ignore_ascii_case(&routes.engine)) {
            Some(at) => drop(chain.drain(..=at)),
            None => return Err(PlanError::WrongRoutes { engine: routes.engine.clone(), faults: refused }),
        }
    }
}

/// Data VLs that every link between switches can have, by the capability of its ends (B06).
fn data_vls(graph: &SwitchGraph, observed: &Observed, settings: &PlanSettings) -> u8 {
    let of_kind = settings.qos.of(PortKind::SwitchExternal).max_vls.unwrap_or(15);
    let mut least = vls_of_code(settings.max_operational_vls.min(code_of_vls(of_kind)));
    for switch in 0..graph.switch_count() as u32 {
        for arc in graph.arcs(switch) {
            let end = PortRef { node: graph.node(switch), port: PortNum(arc.out_port) };
            if let Some(info) = observed.port_info(end) {
                least = least.min(vls_of_code(info.vl_cap()));
            }
        }
    }
    least
}

/// The code of as many data VLs, or of the next smaller number that has one.
pub(super) const fn code_of_vls(vls: u8) -> u8 {
    match vls {
        0 | 1 => 1,
        2 | 3 => 2,
        4..8 => 3,
        8..15 => 4,
        _ => 5,
    }
}

/// Data VLs by the code of VLCap and OperationalVLs.
pub(super) fn vls_of_code(code: u8) -> u8 {
    match code {
        2 => 2,
        3 => 4,
        4 => 8,
        5 => 15,
        _ => 1,
    }
}
