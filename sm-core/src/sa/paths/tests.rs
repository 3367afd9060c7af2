use std::collections::HashMap;
use std::sync::Arc;

use routing::routes::PathSl;

use super::*;
use crate::testing::{Tree, freeze};

const TREE: Tree = Tree { leaves: 2, spines: 2, hosts: 2, lmc: 0 };

fn host(snapshot: &Snapshot, leaf: u8, n: u8) -> &EndPort {
    snapshot.port_by_guid(Tree::host(leaf, n)).unwrap()
}

fn gid(port: &EndPort) -> Side {
    Side { gid: Some(Gid::new(Gid::DEFAULT_PREFIX, port.guid)), lid: None }
}

fn lid(port: &EndPort) -> Side {
    Side { gid: None, lid: Some(port.lid.get()) }
}

fn all(snapshot: &Snapshot, query: &PathQuery) -> Result<Vec<Path>, Status> {
    let mut paths = Vec::new();
    let _ = query.all(snapshot, host(snapshot, 0, 0), &mut |path| {
        paths.push(*path);
        ControlFlow::Continue(())
    })?;
    Ok(paths)
}

fn best(snapshot: &Snapshot, query: &PathQuery) -> Result<Option<Path>, Status> {
    query.best(snapshot, host(snapshot, 0, 0))
}

/// By LID, GID and any mix the same path comes out.
#[test]
fn ends_may_be_named_by_lid_or_gid() {
    let snapshot = TREE.snapshot();
    let (a, b) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
    let both = |port: &EndPort| Side { gid: gid(port).gid, lid: lid(port).lid };
    for source in [gid(a), lid(a), both(a)] {
        for target in [gid(b), lid(b), both(b)] {
            let query = PathQuery { source, target, ..PathQuery::default() };
            let path = best(&snapshot, &query).unwrap().unwrap();
            assert_eq!((path.slid, path.dlid, path.reversible), (a.lid, b.lid, true));
            assert_eq!((path.sgid.guid(), path.dgid.guid()), (a.guid, b.guid));
            assert_eq!((path.mtu, path.rate.to_wire(), path.lifetime), (Mtu::M4096, 16, 18));
            assert_eq!((path.pkey, path.sl, path.preference), (0xffff, 0, 0));
            assert_eq!(all(&snapshot, &query), Ok(vec![path]));
        }
    }
}

/// B43: GID and LID of different ports are a contradiction; what nobody has is no path, what can't be a port is no GID.
#[test]
fn b43_contradictions() {
    let snapshot = TREE.snapshot();
    let (a, b) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
    let get = |source| best(&snapshot, &PathQuery { source, target: lid(b), ..PathQuery::default() });
    assert_eq!(get(Side { gid: gid(a).gid, lid: lid(b).lid }), Err(Status::SA_REQ_INVALID));
    assert_eq!(get(Side { gid: gid(a).gid, lid: Some(0xbfff) }), Err(Status::SA_REQ_INVALID));
    for raw in [0, 0xbfff, 0xc000, 0xffff] {
        assert_eq!(get(Side { gid: None, lid: Some(raw) }), Ok(None), "LID {raw:#x}");
    }
    for (gid, answer) in [
        (0, Err(Status::SA_INVALID_GID)),
        (0xff12_0000_0000_0000_0000_0000_0000_0001, Err(Status::SA_INVALID_GID)),
        (0xfe80_0000_0000_0000_0000_0000_0000_0001, Ok(None)),
        (u128::from(a.guid.0), Ok(None)),
    ] {
        assert_eq!(get(Side { gid: Some(Gid(gid)), lid: None }), answer, "{gid:#x}");
    }
}

/// B43: a Get with an open end has exactly one answer, about the requester where that is possible.
#[test]
fn b43_get_with_open_ends_gives_one_path() {
    let snapshot = TREE.snapshot();
    let (me, other) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
    let ask = |source, target| {
        best(&snapshot, &PathQuery { source, target, ..PathQuery::default() }).unwrap().unwrap()
    };
    let open = Side::default();
    assert_eq!((ask(open, gid(other)).slid, ask(open, gid(other)).dlid), (me.lid, other.lid));
    assert_eq!((ask(gid(other), open).slid, ask(gid(other), open).dlid), (other.lid, me.lid));
    assert_eq!(ask(open, open).slid, me.lid);
    let table = all(&snapshot, &PathQuery::default()).unwrap();
    assert_eq!(table.len(), 8 * 8, "a table of everything, loopback included");
    assert!(table.iter().filter(|p| p.slid == p.dlid).all(|p| p.lifetime == 0));
}

/// LMC: straight combinations first, then the crossed ones; the number of paths is a limit for each pair of ports.
#[test]
fn b43_number_of_paths_with_lmc() {
    let snapshot = Tree { lmc: 1, ..TREE }.snapshot();
    let (a, b) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
    let lids = |paths_per_pair, source| {
        let query = PathQuery { source, target: gid(b), paths_per_pair, ..PathQuery::default() };
        let paths = all(&snapshot, &query).unwrap();
        let offset = |lid: Lid, base: Lid| lid.get() - base.get();
        paths.iter().map(|p| (offset(p.slid, a.lid), offset(p.dlid, b.lid), p.preference)).collect::<Vec<_>>()
    };
    let four = [(0, 0, 0), (1, 1, 0), (0, 1, 2), (1, 0, 2)];
    assert_eq!(lids(None, gid(a)), four);
    assert_eq!(lids(Some(127), gid(a)), four);
    assert_eq!(lids(Some(2), gid(a)), four[..2]);
    assert_eq!(lids(None, lid(a)), [(0, 0, 0), (0, 1, 2)], "a LID that is named is the only one");
}

/// What the routing engine says of service levels binds; where it says nothing, the requester chooses.
#[test]
fn service_levels() {
    let snapshot = TREE.snapshot();
    let (a, b) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
    let mut routes = (*snapshot.routes).clone();
    let mut table = vec![0; 64];
    table[b.lid.index()] = 3;
    routes.sl = PathSl::ByDestination(table);
    let engine =
        Snapshot::new(2, snapshot.observed.clone(), snapshot.graph.clone(), Arc::new(routes), snapshot.sm);
    let sl = |snapshot: &Snapshot, sl| {
        let wanted = Wanted { sl, ..Wanted::default() };
        let query = PathQuery { source: lid(a), target: lid(b), wanted, ..PathQuery::default() };
        best(snapshot, &query).unwrap().map(|path| path.sl)
    };
    assert_eq!([None, Some(3), Some(0)].map(|asked| sl(&engine, asked)), [Some(3), Some(3), None]);
    assert_eq!([None, Some(3)].map(|asked| sl(&snapshot, asked)), [Some(0), Some(3)]);
}

/// B52: the lifetime is the subnet's; its selectors decide.
#[test]
fn b52_packet_lifetime() {
    for timeout in [16, 20] {
        let mut snapshot = TREE.snapshot();
        snapshot.sm.subnet_timeout = timeout;
        let (a, b) = (host(&snapshot, 0, 0), host(&snapshot, 1, 1));
        let ask = |bound| {
            let wanted = Wanted { lifetime: Some(bound), ..Wanted::default() };
            let query = PathQuery { source: lid(a), target: lid(b), wanted, ..PathQuery::default() };
            best(&snapshot, &query).unwrap().map(|path| path.lifetime)
        };
        let (yes, no) = (Some(timeout), None);
        assert_eq!(
            [15, 16, 17, 20].map(|t| ask(Bound::Greater(t))),
            [15, 16, 17, 20].map(|t| if timeout > t { yes } else { no })
        );
        assert_eq!(
            [16, 17, 20, 21].map(|t| ask(Bound::Less(t))),
            [16, 17, 20, 21].map(|t| if timeout < t { yes } else { no })
        );
        assert_eq!([ask(Bound::Exactly(timeout)), ask(Bound::Exactly(5)), ask(Bound::Best)], [yes, no, yes]);
    }
}

/// One way blocked: the path is there, but not reversible; who asks for a reversible one gets none.
#[test]
fn reversible_paths_exist_both_ways() {
    let good = freeze(TREE.fabric());
    let (a, b) = (host(&good, 0, 0), host(&good, 1, 1));
    let leaf = good.graph.index_of(good.observed.fabric.find(Tree::leaf(1)).unwrap()).unwrap();
    let mut routes = (*good.routes).clone();
    routes.lfts.row_mut(leaf)[a.lid.index()] = 255;
    let snapshot = Snapshot::new(2, good.observed.clone(), good.graph.clone(), Arc::new(routes), good.sm);
    let ask = |reversible| {
        let wanted = Wanted { reversible, ..Wanted::default() };
        let query = PathQuery { source: lid(a), target: lid(b), wanted, ..PathQuery::default() };
        best(&snapshot, &query).unwrap().map(|path| path.reversible)
    };
    assert_eq!([None, Some(false), Some(true)].map(ask), [Some(false), Some(false), None]);
}

/// B45: paths only between ports that share a partition, by the key that was asked for in either form.
#[test]
fn b45_paths_and_partitions() {
    let snapshot = TREE.snapshot();
    let ends = [(0, 0), (1, 0), (1, 1)].map(|(leaf, n)| host(&snapshot, leaf, n).end);
    let tables = [vec![0x8081, 0x7fff], vec![0x0081, 0xffff], vec![0x0082, 0x7fff]];
    let tables = tables.map(|keys| keys.into_iter().map(PKey).collect::<Vec<_>>());
    let snapshot = snapshot.with_pkeys(&HashMap::from_iter(ends.into_iter().zip(tables)));
    let ask = |target: &EndPort, pkey: Option<u16>| {
        let wanted = Wanted { pkey: pkey.map(PKey), ..Wanted::default() };
        let query = PathQuery {
            source: lid(host(&snapshot, 0, 0)),
            target: lid(target),
            wanted,
            ..PathQuery::default()
        };
        best(&snapshot, &query).unwrap().map(|path| path.pkey)
    };
    let (b, c) = (host(&snapshot, 1, 0), host(&snapshot, 1, 1));
    assert_eq!(
        [None, Some(0x0081), Some(0x8081), Some(0x8082), Some(0)].map(|k| ask(b, k)),
        [Some(0x8081), Some(0x0081), Some(0x8081), None, None]
    );
    assert_eq!(ask(c, None), None, "limited members only");
}
