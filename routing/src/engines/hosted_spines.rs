//! Switches that stand above the leaves although some hosts hang on them (a login node or storage on a spine).
//!
//! Counted as leaves they would spoil the levels: their like without hosts would stand above all leaves and they beside these,
//! so that no rank were dealt to them as to a spine, and up/down engines would send nothing through them. A switch stands above
//! if it has at most half as many hosts as switches with hosts have on average, at least two neighbours have more, and these
//! are linked to none of their like, as leaves are. So a fabric whose switches with hosts are linked among each other has none
//! whatever hangs on them, and a leaf with few hosts stays one: its neighbours have none. Cost: linear in the links of
//! switches with few hosts and of their neighbours.

use crate::fabric::{SwitchGraph, SwitchIndex};

/// Takes the hosts off switches that stand above the leaves; `hosts` has the number of each switch.
pub(super) fn leave_out(graph: &SwitchGraph, hosts: &mut [u32]) {
    let with_hosts = hosts.iter().filter(|count| **count > 0).count() as u64;
    let all: u64 = hosts.iter().map(|count| u64::from(*count)).sum();
    let few = |s: SwitchIndex| 2 * u64::from(hosts[s as usize]) * with_hosts <= all;
    let is_leaf = |s: SwitchIndex| hosts[s as usize] > 0 && !few(s);
    let alone = |s: SwitchIndex| !graph.arcs(s).iter().any(|arc| is_leaf(arc.to));
    let stands_above = |s: &SwitchIndex| {
        if hosts[*s as usize] == 0 || !few(*s) {
            return false;
        }
        let mut below: Vec<SwitchIndex> =
            graph.arcs(*s).iter().map(|arc| arc.to).filter(|to| is_leaf(*to)).collect();
        below.dedup();
        below.len() > 1 && below.into_iter().all(alone)
    };
    let above: Vec<SwitchIndex> = (0..hosts.len() as SwitchIndex).filter(stands_above).collect();
    above.into_iter().for_each(|s| hosts[s as usize] = 0);
}

#[cfg(test)]
mod tests {
    use crate::engines::targets::tree_levels;
    use crate::engines::testing::{check_all, random_fabrics};
    use crate::engines::{DownUp, MinHop, RoutingEngine, RoutingInput, UpDown};
    use crate::fabric::{SwitchGraph, testing};
    use crate::verify::{self, Options};

    /// Two spines with `hosts`, and six leaves with 24 hosts and four cables to each spine.
    fn tree(hosts: [usize; 2]) -> SwitchGraph {
        let mut builder = testing::Builder::new(48);
        let spines = hosts.map(|_| builder.switch());
        let leaves: Vec<_> = (0..6).map(|_| builder.switch()).collect();
        for leaf in leaves {
            for _ in 0..24 {
                builder.host(leaf);
            }
            spines.iter().for_each(|spine| (0..4).for_each(|_| builder.link(leaf, *spine)));
        }
        for (spine, hosts) in spines.iter().zip(hosts) {
            for _ in 0..hosts {
                builder.host(*spine);
            }
        }
        SwitchGraph::new(&builder.finish(0))
    }

    #[test]
    fn a_few_hosts_on_a_spine_spoil_no_balance() {
        let input = RoutingInput::default();
        let worst = |engine: &dyn RoutingEngine, hosts| check_all(engine, &tree(hosts), &input).balance.max;
        let engines: [&dyn RoutingEngine; 3] = [&MinHop, &UpDown, &DownUp];
        for engine in engines {
            let plain = worst(engine, [0, 0]);
            for hosts in [[1, 0], [3, 0], [0, 3]] {
                let worst = worst(engine, hosts);
                println!("{}: worst load {plain}, {worst} with {hosts:?} hosts on spines", engine.name());
                assert!(f64::from(worst) <= 1.2 * f64::from(plain), "{} {hosts:?}: {worst}", engine.name());
            }
        }
        // From a spine to another it goes through a leaf: nothing keeps shortest paths from closing a loop there.
        let graph = tree([2, 1]);
        let routes = MinHop.route(&graph, &input).unwrap();
        let both = verify::check(&graph, &routes, Options::default()).balance.max;
        let plain = worst(&MinHop, [0, 0]);
        assert!(f64::from(both) <= 1.2 * f64::from(plain), "hosts on both spines: {both}, {plain} without");
    }

    #[test]
    fn hosts_on_a_spine_make_it_no_leaf_and_few_hosts_no_spine_of_a_leaf() {
        let input = RoutingInput::default();
        for hosts in [[3, 0], [2, 1]] {
            assert_eq!(
                tree_levels(&tree(hosts), &input),
                [1, 1, 0, 0, 0, 0, 0, 0],
                "{hosts:?} hosts on spines"
            );
        }
        assert_eq!(tree_levels(&tree([24, 20]), &input), [0; 8], "as many hosts as on leaves");
        let small = SwitchGraph::new(&testing::tree_with_a_small_leaf(0));
        let levels = tree_levels(&small, &input);
        assert_eq!(levels.iter().filter(|level| **level == 0).count(), small.switch_count() - 8);
        // Where each switch has hosts, all are on one level.
        for (name, fabric) in random_fabrics().into_iter().filter(|(name, _)| !name.starts_with("tree")) {
            let graph = SwitchGraph::new(&fabric);
            assert_eq!(tree_levels(&graph, &input), vec![0; graph.switch_count()], "{name}");
        }
    }
}
