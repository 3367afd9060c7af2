//! SubnAdmGetMulti of MultiPathRecord: paths between two sets of ports (specification volume 1, 15.2.5.20).
//!
//! Each pair of ports gets its best path first, then its second best and so on, until there are as many as were wanted: so
//! few wanted paths spread over as many ports as there are.

use std::ops::ControlFlow;

use mad::types::Gid;
use mad::wire::sa::{MultiPathRecord, PathRecord, Record};
use mad::wire::{Attribute, Status};
use zerocopy::FromZeros;

use super::record::Asked;
use super::{Path, PathQuery, Side};
use crate::sa::answer::Reply;
use crate::sa::records::Context;

/// Paths that are answered when the query doesn't say how many; also the most that it can ask for.
const MOST: usize = 127;

/// The query's components and what they are called in a PathRecord.
const SAME: [(&str, &str); 17] = [
    ("RawTraffic", "RawTraffic"),
    ("FlowLabel", "FlowLabel"),
    ("HopLimit", "HopLimit"),
    ("TClass", "TClass"),
    ("Reversible", "Reversible"),
    ("NumbPath", "NumbPath"),
    ("P_Key", "P_Key"),
    ("QoSClass", "QoSClass"),
    ("SL", "SL"),
    ("MtuSelector", "MtuSelector"),
    ("Mtu", "Mtu"),
    ("RateSelector", "RateSelector"),
    ("Rate", "Rate"),
    ("PacketLifeTimeSelector", "PacketLifeTimeSelector"),
    ("PacketLifeTime", "PacketLifeTime"),
    ("ServiceID8MSB", "ServiceID8MSB"),
    ("ServiceID56LSB", "ServiceID56LSB"),
];

/// Answers a GetMulti from the whole attribute.
pub(in crate::sa) fn answer(context: &Context<'_>, attribute: &[u8], mask: u64) -> Result<Reply, Status> {
    let template = MultiPathRecord::decode(attribute).ok_or(Status::SA_REQ_INVALID)?;
    let (sources, targets) = MultiPathRecord::gids(attribute).ok_or(Status::SA_REQ_INVALID)?;
    let counts = MultiPathRecord::component_mask(&["SGIDCount", "DGIDCount"]).unwrap_or(0);
    if mask & counts != counts {
        return Err(Status::SA_INSUFFICIENT_COMPONENTS);
    }
    if sources.is_empty() || targets.is_empty() {
        return Err(Status::SA_REQ_INVALID);
    }
    if sources.iter().chain(&targets).any(|gid| context.snapshot.port_by_gid(*gid).is_none()) {
        return Err(Status::SA_INVALID_GID);
    }
    let asked = Asked { template: path_template(&template), mask: path_mask(mask) };
    let query = asked.query()?;
    let limit = query.paths_per_pair.map_or(MOST, usize::from);
    let by_pair = paths_by_pair(context, &query, &sources, &targets, limit)?;
    let mut table = Vec::new();
    let rounds = by_pair.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..rounds).flat_map(|round| by_pair.iter().filter_map(move |paths| paths.get(round)));
    in_turn.take(limit).for_each(|path| asked.record(path).push_to(&mut table));
    Ok(Reply::table::<PathRecord>(table))
}

/// The paths of each pair of ports, at most `limit` each, and no more pairs looked at than can be answered.
fn paths_by_pair(
    context: &Context<'_>,
    query: &PathQuery,
    sources: &[Gid],
    targets: &[Gid],
    limit: usize,
) -> Result<Vec<Vec<Path>>, Status> {
    let mut by_pair = Vec::new();
    for (sgid, dgid) in sources.iter().flat_map(|sgid| targets.iter().map(move |dgid| (*sgid, *dgid))) {
        let side = |gid| Side { gid: Some(gid), lid: None };
        // More than that of one pair are never answered, and with many LIDs there are thousands.
        let paths_per_pair = Some(u8::try_from(limit).unwrap_or(u8::MAX));
        let one = PathQuery { source: side(sgid), target: side(dgid), paths_per_pair, ..*query };
        let mut paths = Vec::new();
        let _ = one.all(context.snapshot, context.requester, &mut |path| {
            paths.push(*path);
            ControlFlow::Continue(())
        })?;
        if !paths.is_empty() {
            by_pair.push(paths);
        }
        if by_pair.len() >= limit {
            break;
        }
    }
    Ok(by_pair)
}

/// The query's fixed part as the template of a path query.
fn path_template(query: &MultiPathRecord) -> PathRecord {
    let mut record = PathRecord::new_zeroed();
    record.service_id.set(query.service_id());
    record.set_raw_traffic(query.raw_traffic());
    record.set_flow_label(query.flow_label());
    record.set_hop_limit(query.hop_limit());
    record.tclass = query.tclass;
    record.set_reversible(query.reversible());
    record.set_numb_path(query.numb_path());
    record.pkey = query.pkey;
    record.set_qos_class(query.qos_class());
    record.set_sl(query.sl());
    record.set_mtu_selector_raw(query.mtu_selector_raw());
    record.set_mtu_raw(query.mtu_raw());
    record.set_rate_selector_raw(query.rate_selector_raw());
    record.set_rate_raw(query.rate_raw());
    record.set_packet_life_time_selector_raw(query.packet_life_time_selector_raw());
    record.set_packet_life_time(query.packet_life_time());
    record
}

/// The query's component mask in PathRecord's bits.
fn path_mask(mask: u64) -> u64 {
    let bit = |(theirs, ours): &(&str, &str)| {
        let asked = MultiPathRecord::component_mask(&[theirs]).is_some_and(|bit| mask & bit != 0);
        if asked { PathRecord::component_mask(&[ours]).unwrap_or(0) } else { 0 }
    };
    SAME.iter().map(bit).fold(0, |mask, bit| mask | bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use crate::testing::Tree;

    const COUNTS: u64 = 1 << 19 | 1 << 20;

    fn ask(
        snapshot: &Snapshot,
        query: MultiPathRecord,
        mask: u64,
        from: &[Gid],
        to: &[Gid],
    ) -> Result<Vec<PathRecord>, Status> {
        let requester = snapshot.port_by_guid(Tree::host(0, 0)).unwrap();
        let context = Context { snapshot, requester, trusted: false };
        match answer(&context, &query.with_gids(from, to).unwrap(), mask)? {
            Reply::Table { records, .. } => {
                Ok(records.chunks(PathRecord::TABLE_LEN).map(|r| PathRecord::decode(r).unwrap()).collect())
            }
            Reply::Record { .. } => panic!("a table is answered"),
        }
    }

    /// Every name is a component of both records, so that no bit is lost on the way.
    #[test]
    fn components_have_their_counterparts() {
        for (theirs, ours) in SAME {
            assert!(MultiPathRecord::component_mask(&[theirs]).is_some(), "{theirs}");
            assert!(PathRecord::component_mask(&[ours]).is_some(), "{ours}");
        }
        assert_eq!(MultiPathRecord::component_mask(&["SGIDCount", "DGIDCount"]), Some(COUNTS));
        assert_eq!(path_mask(1 << 6 | 1 << 16 | 1 << 21), PathRecord::NUMB_PATH | PathRecord::SERVICE_ID);
    }

    #[test]
    fn pairs_take_turns_until_there_are_enough() {
        let snapshot = Tree { leaves: 2, spines: 2, hosts: 3, lmc: 1 }.snapshot();
        let gid = |leaf, n| Gid::new(Gid::DEFAULT_PREFIX, Tree::host(leaf, n));
        let (from, to) = ([gid(0, 0), gid(0, 1)], [gid(1, 0), gid(1, 1), gid(1, 2)]);
        let mut query = MultiPathRecord::new_zeroed();
        let all = ask(&snapshot, query, COUNTS, &from, &to).unwrap();
        assert_eq!(all.len(), 6 * 4, "four combinations of LIDs for each pair");
        query.set_numb_path(7);
        let seven = ask(&snapshot, query, COUNTS | 1 << 6, &from, &to).unwrap();
        assert_eq!(seven.len(), 7);
        let pairs: std::collections::BTreeSet<_> =
            seven.iter().map(|p| (p.sgid.get(), p.dgid.get())).collect();
        assert_eq!(pairs.len(), 6, "each pair has its turn");
    }

    /// With LMC 7 two ports have 16,384 paths between them: no more are computed than could be answered.
    #[test]
    fn no_more_paths_are_computed_than_are_answered() {
        let snapshot = Tree { leaves: 2, spines: 1, hosts: 2, lmc: 7 }.snapshot();
        let gid = |leaf, n| Gid::new(Gid::DEFAULT_PREFIX, Tree::host(leaf, n));
        let requester = snapshot.port_by_guid(Tree::host(0, 0)).unwrap();
        let context = Context { snapshot: &snapshot, requester, trusted: false };
        let (from, to) = ([gid(0, 0), gid(0, 1)], [gid(1, 0), gid(1, 1)]);
        let pairs = paths_by_pair(&context, &PathQuery::default(), &from, &to, 5).unwrap();
        assert_eq!(pairs.iter().map(Vec::len).collect::<Vec<_>>(), [5; 4]);
    }

    #[test]
    fn bad_queries() {
        let snapshot = Tree { leaves: 2, spines: 2, hosts: 3, lmc: 0 }.snapshot();
        let gid = |leaf, n| Gid::new(Gid::DEFAULT_PREFIX, Tree::host(leaf, n));
        let query = MultiPathRecord::new_zeroed();
        let status = |mask, from: &[Gid], to: &[Gid]| ask(&snapshot, query, mask, from, to).err();
        let (a, b) = ([gid(0, 0)], [gid(1, 0)]);
        assert_eq!(status(COUNTS, &a, &b), None);
        assert_eq!(status(1 << 19, &a, &b), Some(Status::SA_INSUFFICIENT_COMPONENTS));
        assert_eq!(status(COUNTS, &[], &b), Some(Status::SA_REQ_INVALID));
        assert_eq!(status(COUNTS, &a, &[Gid(5)]), Some(Status::SA_INVALID_GID));
        assert_eq!(status(COUNTS | 1 << 6, &a, &b), Some(Status::SA_REQ_INVALID), "no path wanted");
        let context = Context { snapshot: &snapshot, requester: &snapshot.end_ports()[0], trusted: false };
        let short = query.with_gids(&a, &b).unwrap();
        assert_eq!(answer(&context, &short[..30], COUNTS).err(), Some(Status::SA_REQ_INVALID));
    }
}
