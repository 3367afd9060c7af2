//! Every capture of a real fabric is read, routed and verified. The folder of captures is `RSM_CAPTURES`, or
//! `shared/captures` of a folder above; where there is none the test says so, and checks two files of our own.
#![allow(clippy::print_stdout, reason = "tests say what they leave out")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../testdata/captures.rs"]
mod captures;

use mad::types::{Lid, PortNum};
use routing::engines::{RoutingInput, route_chain};
use routing::fabric::{Fabric, NodeId, SwitchGraph};
use routing::formats;
use routing::verify::{self, Options};

/// Gives LIDs to end ports that have none, as a subnet manager would.
fn complete_lids(fabric: &mut Fabric) {
    let ids: Vec<NodeId> = fabric.node_ids().collect();
    let ends = |f: &Fabric, id| f.node(id).end_ports().map(|(n, p)| (n, p.lid, p.lmc)).collect::<Vec<_>>();
    let all = ids.iter().flat_map(|id| ends(fabric, *id));
    let mut next = all.filter_map(|(_, lid, lmc)| Some(lid?.get() + (1 << lmc))).max().unwrap_or(1);
    for id in ids {
        for (number, lid, _) in ends(fabric, id) {
            let linked = number == PortNum(0)
                || fabric.peer(routing::fabric::PortRef { node: id, port: number }).is_some();
            if lid.is_none() && linked {
                fabric.node_mut(id).port_mut(number).unwrap().lid = Lid::new(next);
                next += 1;
            }
        }
    }
}

#[test]
fn every_capture_routes_and_verifies() {
    let files = captures::files();
    assert!(files.len() >= 2);
    for path in files {
        let loaded = formats::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.wrong_lid, None, "{}", path.display());
        let mut fabric = loaded.fabric;
        complete_lids(&mut fabric);
        let graph = SwitchGraph::new(&fabric);
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let large = graph.destinations().len() > 1000;
        let chains: &[&str] =
            if large { &["updn", "dfsssp"] } else { &["updn", "dfsssp", "ftree", "nue", "lash"] };
        for name in chains {
            let (routes, refused) = route_chain(&[*name, "updn"], &graph, &input).unwrap();
            assert!(refused.is_empty() || *name == "ftree", "{}: {refused:?}", path.display());
            let report = verify::check(&graph, &routes, Options { management: false, data_vls: 8 });
            assert!(report.is_right(), "{} with {name}: {report}", path.display());
        }
    }
}
