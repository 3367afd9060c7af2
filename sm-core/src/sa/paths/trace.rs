//! SubnAdmGetTraceTable: the nodes on a path, in order, as TraceRecords (specification volume 1, 15.2.5.19).
//!
//! The request names the path as a PathRecord does. IDs are the GUIDs themselves, so that IDGeneration is always 0. Cost:
//! O(hops).

use mad::types::Lid;
use mad::wire::sa::{PathRecord, Record, SaMad, TraceRecord};
use mad::wire::{Attribute, Status};
use routing::fabric::{NodeId, PortRef};
use zerocopy::FromZeros;

use super::record::Asked;
use crate::sa::answer::Reply;
use crate::sa::records::Context;
use crate::snapshot::Snapshot;

/// Answers a GetTraceTable with the hops of the best path between two ports.
pub(in crate::sa) fn answer(context: &Context<'_>, request: &SaMad) -> Result<Reply, Status> {
    let template = PathRecord::decode(&request.data).ok_or(Status::SA_REQ_INVALID)?;
    let asked = Asked { template, mask: request.component_mask.get() };
    let snapshot = context.snapshot;
    let query = asked.query()?;
    if query.target == super::Side::default() {
        return Err(Status::SA_INSUFFICIENT_COMPONENTS);
    }
    let mut table = Vec::new();
    if let Some(path) = query.best(snapshot, context.requester)? {
        for record in hops(snapshot, path.slid, path.dlid) {
            record.push_to(&mut table);
        }
    }
    Ok(Reply::table::<TraceRecord>(table))
}

/// The records of a path that exists, from the source's node to the destination's.
fn hops(snapshot: &Snapshot, slid: Lid, dlid: Lid) -> Vec<TraceRecord> {
    let (Some(source), Some(target)) = (snapshot.port_at(slid), snapshot.port_at(dlid)) else {
        return Vec::new();
    };
    let fabric = &snapshot.observed.fabric;
    let mut records = Vec::new();
    let (mut node, mut entry) = (source.end.node, 0);
    // A path has no more switches than there are; the walk has been made before, so this is only a belt.
    for _ in 0..=snapshot.graph.switch_count() + 1 {
        if node == target.end.node {
            records.push(record(snapshot, node, entry, 0));
            break;
        }
        let exit = match snapshot.graph.index_of(node) {
            Some(switch) => snapshot.routes.lfts.port(switch, dlid),
            None => source.end.port.0,
        };
        records.push(record(snapshot, node, entry, exit));
        let Some(peer) = fabric.peer(PortRef { node, port: mad::types::PortNum(exit) }) else { break };
        (node, entry) = (peer.node, peer.port.0);
    }
    records
}

fn record(snapshot: &Snapshot, node: NodeId, entry: u8, exit: u8) -> TraceRecord {
    let mut record = TraceRecord::new_zeroed();
    record.gid_prefix.set(snapshot.sm.gid_prefix);
    (record.entry_port, record.exit_port) = (entry, exit);
    let fabric = &snapshot.observed.fabric;
    let Some(facts) = fabric.get(node) else { return record };
    record.node_type = facts.kind.to_wire();
    record.node_id.set(facts.guid.0);
    record.chassis_id.set(facts.system_image_guid.0);
    let guid = |port: u8| {
        let port = if facts.is_switch() { 0 } else { port };
        fabric.port(PortRef { node, port: mad::types::PortNum(port) }).map_or(0, |port| port.guid.0)
    };
    record.entry_port_id.set(if entry == 0 { 0 } else { guid(entry) });
    record.exit_port_id.set(if exit == 0 { 0 } else { guid(exit) });
    record
}

#[cfg(test)]
mod tests {
    use mad::transport::Address;
    use mad::types::{ServiceLevel, Timestamp};
    use mad::wire::Method;
    use mad::wire::ids::sa;

    use crate::sa::{Answer, Registry, Request, answer as ask};
    use crate::testing::Tree;

    use super::*;

    #[test]
    fn a_trace_names_every_node_of_the_path_and_its_ports() {
        let snapshot = Tree { leaves: 2, spines: 1, hosts: 2, lmc: 0 }.snapshot();
        let lid = |leaf, n| snapshot.port_by_guid(Tree::host(leaf, n)).unwrap().lid;
        let trace = |from: Lid, to: Lid| {
            let mut template = PathRecord::new_zeroed();
            (template.slid, template.dlid) = (from.get().into(), to.get().into());
            let mut mad =
                SaMad::request(Method::GET_TRACE_TABLE, sa::PATH_RECORD, PathRecord::SLID | PathRecord::DLID);
            assert!(template.encode(&mut mad.data));
            let source = Address::gsi(from.get(), ServiceLevel(0));
            let Answer::Table { head, records } =
                ask(&snapshot, &Registry::default(), &Request::new(mad, source), Timestamp::ZERO)
            else {
                panic!("a table is answered")
            };
            assert_eq!(head.header.attribute_id.get(), sa::TRACE_RECORD);
            records
                .chunks(TraceRecord::TABLE_LEN)
                .map(|bytes| TraceRecord::decode(bytes).unwrap())
                .collect::<Vec<_>>()
        };
        let hops = trace(lid(0, 1), lid(1, 0));
        let nodes: Vec<u64> = hops.iter().map(|hop| hop.node_id.get()).collect();
        let (leaf, spine) = (|n| Tree::leaf(n).0, Tree::spine(0).0);
        assert_eq!(nodes, [Tree::host(0, 1).0 - 1, leaf(0), spine, leaf(1), Tree::host(1, 0).0 - 1]);
        let ports: Vec<(u8, u8)> = hops.iter().map(|hop| (hop.entry_port, hop.exit_port)).collect();
        assert_eq!(ports, [(0, 1), (2, 3), (1, 2), (3, 1), (1, 0)]);
        assert_eq!(trace(lid(0, 1), lid(0, 1)).len(), 1, "to oneself");
    }
}
