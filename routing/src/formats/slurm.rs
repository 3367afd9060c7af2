//! `topology.conf` of Slurm's `topology/tree` plugin: which nodes are near each other.
//!
//! Slurm wants a tree, a fabric is none. A switch with hosts is a leaf; of the switches above, at each distance from the leaves,
//! those that hang together are one switch of the file, over the parts that they join. So a fat tree becomes leaves, pods and a
//! root, and a fabric of two parts that no cable joins becomes two trees (B80).
//!
//! Order and names follow descriptions and GUIDs, never LIDs: the text changes when the fabric does and at no other time. A host
//! is where its adapter port with the lowest GUID is. Its name is the description up to the device (`node7 HCA-1`); what Slurm
//! could not read is replaced by `_`, and names that would be there twice get their GUID.
//!
//! Source: topology.conf(5) of Slurm. Cost: some words for each switch and cable, a sort of the names.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use mad::types::{Guid, NodeType};

use crate::fabric::{Fabric, NodeId, PortRef};

/// A switch of the file.
struct Entry {
    name: String,
    /// What it stands for.
    comment: String,
    nodes: BTreeSet<String>,
    children: Vec<String>,
}

/// The text; empty but for its comment where no host has a link.
pub fn write(fabric: &Fabric) -> String {
    let mut out = String::from(
        "# topology.conf for Slurm's topology/tree, from the fabric as the subnet manager finds it. Changes by hand are lost.\n",
    );
    for entry in entries(fabric) {
        let _ = writeln!(out, "# {}", entry.comment);
        let _ = write!(out, "SwitchName={}", entry.name);
        if !entry.children.is_empty() {
            let _ = write!(out, " Switches={}", ranges(entry.children.iter()));
        }
        if !entry.nodes.is_empty() {
            let _ = write!(out, " Nodes={}", ranges(entry.nodes.iter()));
        }
        out.push('\n');
    }
    out
}

fn entries(fabric: &Fabric) -> Vec<Entry> {
    let switches: BTreeMap<Guid, NodeId> = fabric.switches().map(|(id, node)| (node.guid, id)).collect();
    let names = switch_names(fabric, &switches);
    let hosts = hosts(fabric);
    let ranks = ranks(fabric, hosts.keys().copied());
    let mut parts = Parts::default();
    let mut entries = Vec::new();
    for (&guid, &id) in &switches {
        if let Some(nodes) = hosts.get(&id) {
            parts.tops.insert(id, names[&guid].clone());
            entries.push(Entry {
                name: names[&guid].clone(),
                comment: format!("{guid} \"{}\"", fabric.node(id).description.escape_debug()),
                nodes: nodes.clone(),
                children: Vec::new(),
            });
        }
    }
    let highest = ranks.values().copied().max().unwrap_or(0);
    for rank in 1..=highest.max(1) {
        // The switches of this rank join what lies below them.
        let members = switches.iter().filter(|(_, id)| ranks.get(*id).is_some_and(|other| *other <= rank));
        let mut joined: BTreeMap<NodeId, (Vec<Guid>, Vec<String>)> = BTreeMap::new();
        for (_, &id) in members.clone() {
            for peer in neighbours(fabric, id).filter(|peer| ranks.get(peer).is_some_and(|r| *r <= rank)) {
                parts.join(id, peer);
            }
        }
        let mut order = Vec::new();
        for (&guid, &id) in members {
            let root = parts.root(id);
            let (joins, below) = joined.entry(root).or_insert_with(|| {
                order.push(root);
                Default::default()
            });
            if ranks.get(&id) == Some(&rank) {
                joins.push(guid);
            }
            below.extend(parts.tops.remove(&id));
        }
        for root in order {
            let (joins, children) = joined.remove(&root).unwrap_or_default();
            if children.len() == 1 {
                parts.tops.extend(children.into_iter().next().map(|top| (root, top)));
            } else if children.len() > 1 {
                let name = joins.first().map_or_else(
                    || format!("part-{:016x}", fabric.node(root).guid.0),
                    |first| names[first].clone(),
                );
                let comment = match joins.len() {
                    0 => "switches with hosts, joined by cables among them".to_owned(),
                    1 => format!("{}", joins[0]),
                    many => format!("{many} switches, the first {}", joins[0]),
                };
                parts.tops.insert(root, name.clone());
                entries.push(Entry { name, comment, nodes: BTreeSet::new(), children });
            }
        }
    }
    entries
}

/// Switches that hang together, and the entry that stands for each such part so far.
#[derive(Default)]
struct Parts {
    roots: BTreeMap<NodeId, NodeId>,
    /// By some switch of the part.
    tops: BTreeMap<NodeId, String>,
}

impl Parts {
    fn root(&self, mut id: NodeId) -> NodeId {
        while let Some(&next) = self.roots.get(&id).filter(|next| **next != id) {
            id = next;
        }
        id
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        self.roots.insert(high, low);
        self.roots.insert(low, low);
    }
}

fn neighbours(fabric: &Fabric, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let ends = fabric.node(id).numbered_ports().map(move |(port, _)| PortRef { node: id, port });
    ends.filter_map(|end| fabric.peer(end)).map(|end| end.node).filter(|peer| fabric.node(*peer).is_switch())
}

/// Cables from each switch to the nearest with hosts; switches without a way to any are left out.
fn ranks(fabric: &Fabric, leaves: impl Iterator<Item = NodeId>) -> BTreeMap<NodeId, u32> {
    let mut ranks: BTreeMap<NodeId, u32> = leaves.map(|leaf| (leaf, 0)).collect();
    let mut queue: VecDeque<NodeId> = ranks.keys().copied().collect();
    while let Some(id) = queue.pop_front() {
        let next = ranks[&id] + 1;
        for peer in neighbours(fabric, id) {
            ranks.entry(peer).or_insert_with(|| {
                queue.push_back(peer);
                next
            });
        }
    }
    ranks
}

/// The hosts of each switch that has some.
fn hosts(fabric: &Fabric) -> BTreeMap<NodeId, BTreeSet<String>> {
    // Adapters by the name of their host, each with the lowest GUID of its linked ports and the switch there.
    let mut named: BTreeMap<(String, bool), BTreeMap<Guid, (Guid, NodeId)>> = BTreeMap::new();
    for (id, node) in fabric.nodes().filter(|(_, node)| node.kind == NodeType::Ca) {
        let ports = node.end_ports().filter_map(|(port, facts)| {
            let peer = fabric.peer(PortRef { node: id, port })?.node;
            fabric.node(peer).is_switch().then_some((facts.guid, peer))
        });
        if let Some(place) = ports.min() {
            named.entry(host_name(&node.description, node.guid)).or_default().insert(node.guid, place);
        }
    }
    let mut hosts: BTreeMap<NodeId, BTreeSet<String>> = BTreeMap::new();
    let mut taken: BTreeSet<String> = named.keys().map(|(name, _)| name.clone()).collect();
    for ((name, is_host), adapters) in named {
        if is_host || adapters.len() == 1 {
            if let Some((_, leaf)) = adapters.values().min() {
                hosts.entry(*leaf).or_default().insert(name);
            }
            continue;
        }
        // Adapters that nobody gave a name: each is a host of its own.
        for (guid, (_, leaf)) in adapters {
            let name = unique(&mut taken, &name, guid);
            hosts.entry(leaf).or_default().insert(name);
        }
    }
    hosts
}

/// The host's name in an adapter's description, and whether it names host and device, as `rdma-ndd` writes it: then several
/// adapters may have it.
fn host_name(description: &str, guid: Guid) -> (String, bool) {
    let mut words = description.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (None, ..) => (format!("node-{:016x}", guid.0), false),
        (Some(host), Some(device), None)
            if device.starts_with(|first: char| first.is_ascii_alphabetic())
                && device.ends_with(|last: char| last.is_ascii_digit()) =>
        {
            (readable(host), true)
        }
        _ => (readable(description.trim()), false),
    }
}

fn switch_names(fabric: &Fabric, switches: &BTreeMap<Guid, NodeId>) -> BTreeMap<Guid, String> {
    let plain = |id: NodeId| readable(fabric.node(id).description.trim());
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    switches.values().for_each(|id| *count.entry(plain(*id)).or_default() += 1);
    let mut taken: BTreeSet<String> = count.keys().cloned().collect();
    let name = |(guid, id): (&Guid, &NodeId)| {
        let name = plain(*id);
        let alone = count[&name] == 1 && !name.is_empty();
        (*guid, if alone { name } else { unique(&mut taken, &name, *guid) })
    };
    switches.iter().map(name).collect()
}

/// A name that nothing else has.
fn unique(taken: &mut BTreeSet<String>, name: &str, guid: Guid) -> String {
    let mut name = format!("{name}-{:016x}", guid.0);
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// A text without what has a meaning in Slurm's files.
fn readable(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    text.chars().map(plain).collect()
}

/// Names as Slurm's lists have them: `node[01-16],login`.
fn ranges<'a>(names: impl Iterator<Item = &'a String>) -> String {
    // By what stands before the number and how many digits that has.
    let mut numbered: BTreeMap<(&str, usize), BTreeSet<u64>> = BTreeMap::new();
    let mut lists = Vec::new();
    for name in names {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A long one is no counter: it stays as it is.
        let digits = if digits > 9 { 0 } else { digits };
        let (prefix, number) = name.split_at(name.len() - digits);
        match number.parse() {
            Ok(number) => {
                numbered.entry((prefix, digits)).or_default().insert(number);
            }
            Err(_) => lists.push(name.clone()),
        }
    }
    for ((prefix, digits), numbers) in numbered {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => runs.push((number, number)),
            }
        }
        let run = |(first, last): &(u64, u64)| match first == last {
            true => format!("{first:0digits$}"),
            false => format!("{first:0digits$}-{last:0digits$}"),
        };
        let alone = matches!(runs[..], [(first, last)] if first == last);
        let text = runs.iter().map(run).collect::<Vec<_>>().join(",");
        lists.push(if alone { format!("{prefix}{text}") } else { format!("{prefix}[{text}]") });
    }
    lists.join(",")
}

#[cfg(test)]
mod tests {
    use mad::types::{Lid, PortNum};

    use super::*;
    use crate::fabric::Node;

    /// A fabric by its cables: names that begin with S are switches.
    fn fabric(cables: &[(&str, &str)]) -> Fabric {
        let mut fabric = Fabric::new();
        let mut next: BTreeMap<String, (NodeId, u8)> = BTreeMap::new();
        let mut end = |fabric: &mut Fabric, name: &str| {
            let count = next.len() as u64 + 1;
            let (id, port) = next.entry(name.into()).or_insert_with(|| {
                let kind = if name.starts_with('S') { NodeType::Switch } else { NodeType::Ca };
                (fabric.add_node(Node::new(kind, Guid(count << 8), name, 36)).unwrap(), 0)
            });
            *port += 1;
            PortRef { node: *id, port: PortNum(*port) }
        };
        for (a, b) in cables {
            let ends = (end(&mut fabric, a), end(&mut fabric, b));
            fabric.connect(ends.0, ends.1).unwrap();
        }
        fabric
    }

    /// The lines without comments.
    fn lines(fabric: &Fabric) -> Vec<String> {
        write(fabric).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn a_fat_tree_becomes_leaves_pods_and_a_root() {
        let mut cables = Vec::new();
        let names: Vec<String> = (0..8).map(|n| format!("n{n:02} HCA-1")).collect();
        for (host, name) in names.iter().enumerate() {
            cables.push((["Sl0", "Sl1", "Sl2", "Sl3"][host / 2], name.as_str()));
        }
        for (leaf, spine) in [("Sl0", "Sp0"), ("Sl0", "Sp1"), ("Sl1", "Sp0"), ("Sl1", "Sp1")] {
            cables.push((leaf, spine));
        }
        for (leaf, spine) in [("Sl2", "Sp2"), ("Sl2", "Sp3"), ("Sl3", "Sp2"), ("Sl3", "Sp3")] {
            cables.push((leaf, spine));
        }
        for core in ["Sc0", "Sc1"] {
            cables.extend(["Sp0", "Sp1", "Sp2", "Sp3"].map(|spine| (spine, core)));
        }
        assert_eq!(
            lines(&fabric(&cables)),
            [
                "SwitchName=Sl0 Nodes=n[00-01]",
                "SwitchName=Sl1 Nodes=n[02-03]",
                "SwitchName=Sl2 Nodes=n[04-05]",
                "SwitchName=Sl3 Nodes=n[06-07]",
                "SwitchName=Sp0 Switches=Sl[0-1]",
                "SwitchName=Sp2 Switches=Sl[2-3]",
                "SwitchName=Sc0 Switches=Sp[0,2]",
            ]
        );
    }

    /// One tree for each part that cables join, and nothing of it changes with LIDs.
    #[test]
    fn b80_parts_that_no_cable_joins_are_trees_of_their_own_and_lids_do_not_matter() {
        let cables = [
            ("S1", "a1 mlx5_0"),
            ("S2", "a2 mlx5_0"),
            ("S1", "S2"),
            ("S8", "b1 mlx5_0"),
            ("S9", "b2 mlx5_0"),
            ("S8", "S7"),
            ("S9", "S7"),
            ("S5", "S6"),
        ];
        let mut fabric = fabric(&cables);
        let text = write(&fabric);
        let parts = lines(&fabric);
        assert_eq!(parts.len(), 6, "{text}");
        assert!(parts[4..].iter().any(|line| line == "SwitchName=S7 Switches=S[8-9]"), "{text}");
        let flat = parts.iter().find(|line| line.contains("Switches=S[1-2]")).unwrap();
        assert!(
            flat.starts_with("SwitchName=part-"),
            "cables among leaves make no one of them the root: {flat}"
        );
        assert!(!text.contains("S5") && !text.contains("S6"), "switches without hosts");
        let ids: Vec<NodeId> = fabric.node_ids().collect();
        for (round, id) in ids.into_iter().enumerate() {
            for port in fabric.node_mut(id).ports.iter_mut().flatten() {
                port.lid = Lid::new(90 - round as u16);
            }
        }
        assert_eq!(write(&fabric), text);
    }

    #[test]
    fn b80_names_are_unique_and_such_as_slurm_reads() {
        let cables = [
            ("S a", "h1 HCA-1"),
            ("S_a", "h1 HCA-2"),
            ("S a", "MT4123 ConnectX6 Mellanox Technologies"),
            ("S a", "bad[0-9],\"name\"=\n1"),
            ("S a", ""),
            ("S_a", "S a"),
        ];
        let mut fabric = fabric(&cables);
        let twin = fabric.add_node(Node::new(
            NodeType::Ca,
            Guid(0x9999),
            "MT4123 ConnectX6 Mellanox Technologies",
            1,
        ));
        let there = fabric.find(Guid(0x100)).unwrap();
        let end = |node, port| PortRef { node, port: PortNum(port) };
        fabric.connect(end(there, 30), end(twin.unwrap(), 1)).unwrap();
        let text = lines(&fabric).join("\n");
        let mut names = BTreeSet::new();
        for line in text.lines() {
            let name = line.split([' ', '=']).nth(1).unwrap();
            assert!(names.insert(name), "{name} is there twice");
        }
        assert!(text.contains("SwitchName=S_a-0000000000000100 Nodes="), "{text}");
        assert_eq!(text.matches("h1").count(), 1, "one host, at its first adapter's switch: {text}");
        assert_eq!(text.matches("MT4123_ConnectX6_Mellanox_Technologies-").count(), 2, "{text}");
        assert!(text.contains("bad_0-9___name___1"), "{text}");
        assert!(text.contains("node-0000000000000700"), "{text}");
        let allowed = |c: char| c.is_ascii_alphanumeric() || " =,-._[]\n".contains(c);
        assert!(text.chars().all(allowed), "{text}");
        assert_eq!(lines(&Fabric::new()).len(), 0);
    }

    #[test]
    fn lists_are_written_as_ranges() {
        let list = |names: &[&str]| ranges(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>().iter());
        assert_eq!(
            list(&["n1", "n2", "n3", "n7", "n08", "login", "n10", "n11"]),
            "login,n[1-3,7],n[08,10-11]"
        );
        assert_eq!(list(&["a9"]), "a9");
        assert_eq!(list(&["x12345678901234"]), "x12345678901234");
        assert_eq!(list(&[]), "");
    }
}
