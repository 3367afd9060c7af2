use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mad::types::{PortNum, PortState};
use mad::wire::smp::MulticastForwardingTable;
use routing::multicast::MftBlock;
use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::request::{Answer, SmpRequest};
use crate::testing::{Tree, freeze};

const TREE: Tree = Tree { leaves: 3, spines: 2, hosts: 4, lmc: 0 };

/// The multicast tables of simulated switches; they answer Gets and Sets.
#[derive(Default)]
struct Switches {
    blocks: BTreeMap<(Guid, u32), MulticastForwardingTable>,
    gets: usize,
    sets: usize,
    /// Answers nothing while this is set.
    silent: bool,
}

impl Switches {
    fn answer(&mut self, request: &SmpRequest) -> Answer {
        let is_set = request.method == mad::wire::Method::SET;
        *(if is_set { &mut self.sets } else { &mut self.gets }) += 1;
        if self.silent {
            return Answer::Silent;
        }
        let key = (request.destination, request.modifier);
        if is_set {
            let table = <MulticastForwardingTable as mad::wire::Attribute>::decode(&request.data).unwrap();
            self.blocks.insert(key, table);
        }
        let table = self.blocks.get(&key).copied().unwrap_or_else(MulticastForwardingTable::new_zeroed);
        Answer::Reply(table.as_bytes().try_into().unwrap())
    }

    /// What the switches hold, in the form of the planned tables.
    fn tables(&self, snapshot: &Snapshot) -> MulticastTables {
        let mut tables = MulticastTables::new(snapshot.graph.switch_count());
        for ((guid, modifier), table) in &self.blocks {
            let node = snapshot.observed.fabric.find(*guid).unwrap();
            let Some(switch) = snapshot.graph.index_of(node) else { continue };
            let (position, block) = MulticastForwardingTable::split_modifier(*modifier);
            tables.set_block(&MftBlock { switch, block, position, masks: table.port_masks.map(|m| m.get()) });
        }
        tables
    }
}

fn apply(
    snapshot: &Snapshot,
    demand: &MulticastDemand,
    known: KnownMulticast,
    switches: &mut Switches,
) -> MulticastApplied {
    apply_beside(snapshot, demand, BTreeSet::new(), known, switches)
}

fn apply_beside(
    snapshot: &Snapshot,
    demand: &MulticastDemand,
    foreign: BTreeSet<Guid>,
    known: KnownMulticast,
    switches: &mut Switches,
) -> MulticastApplied {
    let goal = Arc::new(plan(snapshot, demand, None));
    let read = (demand.blocks(), foreign);
    let mut apply = MulticastApply::new(snapshot.graph.clone(), snapshot.observed.clone(), goal, read, known);
    while !apply.is_done() {
        let mut sent = Vec::new();
        while let Some((request, job)) = apply.next_request() {
            sent.push((switches.answer(&request), job));
        }
        sent.into_iter().for_each(|(answer, job)| apply.answer(job, &answer));
    }
    apply.finish()
}

fn demand(groups: &[&[(u8, u8)]]) -> MulticastDemand {
    let group = |(n, members): (u16, &&[(u8, u8)])| DemandedGroup {
        mlid: MulticastLid::new(0xc000 + n).unwrap(),
        members: members.iter().map(|(leaf, host)| (Tree::host(*leaf, *host), true)).collect(),
        sl: 0,
    };
    MulticastDemand { generation: 1, groups: (0..).zip(groups).map(group).collect() }
}

#[test]
fn switches_hold_what_was_planned_and_nothing_is_sent_twice() {
    let snapshot = TREE.snapshot();
    let mut switches = Switches::default();
    let wanted = demand(&[&[(0, 0), (1, 1), (2, 2)], &[(0, 1), (0, 2)], &[(1, 0), (2, 0)]]);
    let first = apply(&snapshot, &wanted, KnownMulticast::default(), &mut switches);
    assert_eq!((switches.tables(&snapshot), &first.failures), (plan(&snapshot, &wanted, None), &Vec::new()));
    assert_eq!(first.sets as usize, switches.sets);

    let (sets, gets) = (switches.sets, switches.gets);
    let again = apply(&snapshot, &wanted, first.known, &mut switches);
    assert_eq!((again.sets, switches.gets), (0, gets), "known and right");
    apply(&snapshot, &wanted, KnownMulticast::default(), &mut switches);
    assert_eq!(switches.sets, sets, "after a restart it is read, and nothing is set");

    let gone = apply(&snapshot, &demand(&[]), again.known, &mut switches);
    assert!(gone.sets > 0);
    assert_eq!(switches.tables(&snapshot), MulticastTables::new(snapshot.graph.switch_count()));
}

/// B39: a spine of the tree goes with no join pending: the tree moves to the other one.
#[test]
fn b39_trees_follow_the_graph() {
    let whole = TREE.snapshot();
    let wanted = demand(&[&[(0, 0), (1, 1), (2, 2)]]);
    let mut switches = Switches::default();
    let first = apply(&whole, &wanted, KnownMulticast::default(), &mut switches);
    let used = plan(&whole, &wanted, None);
    let spine = (0..2).map(Tree::spine).find(|guid| {
        let switch = whole.graph.index_of(whole.observed.fabric.find(*guid).unwrap()).unwrap();
        !used.ports(switch, MulticastLid::MIN).is_empty()
    });
    let mut fabric = TREE.fabric();
    let spine = fabric.find(spine.unwrap()).unwrap();
    for port in 1..=3 {
        fabric.node_mut(spine).port_mut(PortNum(port)).unwrap().state = PortState::Down;
    }
    let cut = freeze(fabric);
    apply(&cut, &wanted, first.known, &mut switches);
    let now = switches.tables(&cut);
    assert_eq!(now, plan(&cut, &wanted, None));
    assert!((0..3).all(|leaf| {
        let switch = cut.graph.index_of(cut.observed.fabric.find(Tree::leaf(leaf)).unwrap()).unwrap();
        now.ports(switch, MulticastLid::MIN).len() == 2
    }));
}

/// B30: a Set that was not answered leaves the block unknown: it is read again, and set where it is wrong.
#[test]
fn unanswered_sets_are_not_believed() {
    let snapshot = TREE.snapshot();
    let wanted = demand(&[&[(0, 0), (1, 1)]]);
    let mut switches = Switches { silent: true, ..Switches::default() };
    let failed = apply(&snapshot, &wanted, KnownMulticast::default(), &mut switches);
    assert!(!failed.failures.is_empty());
    switches.silent = false;
    let done = apply(&snapshot, &wanted, failed.known, &mut switches);
    assert!(done.failures.is_empty());
    assert_eq!(switches.tables(&snapshot), plan(&snapshot, &wanted, None));
}

/// A manager that takes over with fewer groups, or with none, clears what the one before wrote: it reads switches in service up
/// to their first empty block.
#[test]
fn entries_of_another_manager_s_groups_are_cleared() {
    let snapshot = TREE.snapshot();
    let mut switches = Switches::default();
    let groups: Vec<&[(u8, u8)]> = vec![&[(0, 0), (1, 1), (2, 2)]; 40];
    apply(&snapshot, &demand(&groups), KnownMulticast::default(), &mut switches);
    let all: BTreeSet<Guid> =
        (0..snapshot.graph.switch_count() as u32).map(|s| snapshot.graph.guid(s)).collect();
    for wanted in [demand(&[&[(0, 1), (1, 2)]]), demand(&[])] {
        let mut held = Switches { blocks: switches.blocks.clone(), ..Switches::default() };
        let done = apply_beside(&snapshot, &wanted, all.clone(), KnownMulticast::default(), &mut held);
        assert!(done.failures.is_empty());
        assert_eq!(held.tables(&snapshot), plan(&snapshot, &wanted, None));
        assert!(held.gets <= 3 * all.len(), "{} Gets: two blocks in use and an empty one", held.gets);
    }
    let mut fresh = Switches::default();
    apply(&snapshot, &demand(&[]), KnownMulticast::default(), &mut fresh);
    assert_eq!((fresh.gets, fresh.sets), (0, 0), "nobody was in service");
}

/// A Get that was not answered is no empty block: it is tried again.
#[test]
fn unread_blocks_are_read_again() {
    let snapshot = TREE.snapshot();
    let all: BTreeSet<Guid> =
        (0..snapshot.graph.switch_count() as u32).map(|s| snapshot.graph.guid(s)).collect();
    let mut switches = Switches { silent: true, ..Switches::default() };
    let failed = apply_beside(&snapshot, &demand(&[]), all, KnownMulticast::default(), &mut switches);
    assert!(!failed.failures.is_empty());
}

/// B38: 200 groups that come and go in one batch cost each switch a few blocks, not one Set for each join.
#[test]
fn b38_a_batch_of_groups_costs_blocks_not_joins() {
    let snapshot = TREE.snapshot();
    let members: Vec<Vec<(u8, u8)>> =
        (0..200).map(|n: u8| (0..10).map(|m: u8| ((n + m) % 3, (n / 3 + m) % 4)).collect()).collect();
    let slices: Vec<&[(u8, u8)]> = members.iter().map(Vec::as_slice).collect();
    let mut switches = Switches::default();
    let done = apply(&snapshot, &demand(&slices), KnownMulticast::default(), &mut switches);
    assert!(done.sets <= 5 * 7, "{} Sets for 2,000 joins", done.sets);
    assert_eq!(switches.tables(&snapshot), plan(&snapshot, &demand(&slices), None));
}

/// 2,016 hosts join three groups while a leaf switch reboots and loses its table: afterwards the switches hold the trees
/// of all members, and what was sent is blocks, not joins.
#[test]
fn b38_a_job_start_while_a_switch_reboots() {
    use mad::types::{Gid, MulticastLid, PKey, QKey};
    use mad::wire::sa::JoinState;

    use crate::sa::registry::{Groups, MemberRequest};

    let snapshot = Tree { leaves: 72, spines: 18, hosts: 28, lmc: 0 }.snapshot();
    let mut groups = Groups::default();
    let mut switches = Switches::default();
    let mut known = KnownMulticast::default();
    let reboots = snapshot.graph.guid(30);
    let mgids = [1, 2, 3].map(|n| Gid(0xff15_a01b << 96 | n));
    for (n, port) in snapshot.end_ports().iter().filter(|port| !port.is_switch()).enumerate() {
        for mgid in mgids {
            let request = MemberRequest {
                mgid,
                port_gid: snapshot.gid_of(port),
                join_state: JoinState::FULL_MEMBER,
                qkey: Some(QKey(1)),
                tclass: Some(0),
                pkey: Some(PKey::DEFAULT_FULL),
                flow_label: Some(0),
                sl: Some(0),
                ..MemberRequest::default()
            };
            groups.join(&snapshot, port, &request).unwrap();
        }
        if n % 500 == 499 {
            known = apply(&snapshot, &groups.demand(), known, &mut switches).known;
        }
        if n == 1200 {
            switches.blocks.retain(|(guid, _), _| *guid != reboots);
            known.forget(reboots);
        }
    }
    let demand = groups.demand();
    assert_eq!(demand.groups.iter().map(|group| group.members.len()).collect::<Vec<_>>(), [2016; 3]);
    let done = apply(&snapshot, &demand, known, &mut switches);
    assert!(done.failures.is_empty());
    let held = switches.tables(&snapshot);
    assert_eq!(held, plan(&snapshot, &demand, None));
    let leaves =
        (0..72).map(|leaf| snapshot.graph.index_of(snapshot.observed.fabric.find(Tree::leaf(leaf)).unwrap()));
    for leaf in leaves.flatten() {
        assert_eq!(held.ports(leaf, MulticastLid::MIN).len(), 28 + 1, "all hosts and one way up");
    }
    assert!(switches.sets < 5 * 3 * 90, "{} Sets for 6,048 joins", switches.sets);
}
