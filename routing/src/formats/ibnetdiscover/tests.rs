use std::path::{Path, PathBuf};

use mad::types::{LinkSpeed, LinkWidth, NodeType, PortNum};

use super::*;
use crate::fabric::{Fabric, PortRef};
use crate::formats::tests::captures;

fn generated(text: &str) -> &str {
    text.lines().find_map(|l| l.strip_prefix("# Topology file: generated on ")).unwrap_or("")
}

/// The text that our writer makes of a file's fabric.
fn rewritten(text: &str) -> String {
    let loaded = read("golden", text).unwrap();
    let from = loaded.from.expect("the file says where it began");
    let full = text.contains(" s=");
    write(&loaded.fabric, &WriteOptions { from, generated: generated(text), full })
}

fn golden() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/ibnetdiscover");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Output of the tool itself (infiniband-diags 44.0) on ibsim, for several shapes and starting points.
#[test]
fn what_the_tool_printed_is_printed_again_byte_for_byte() {
    let files = golden();
    assert!(files.len() >= 8, "golden files are missing");
    for (path, text) in files {
        assert_eq!(rewritten(&text), text, "{}", path.display());
    }
}

/// The tool's output on real fabrics, where its layout was kept. Replies of real devices overtake one another, so that the
/// order of some nodes differs; every line is the same.
#[test]
fn captures_of_real_fabrics_are_printed_again() {
    let Some(folder) = captures() else { return };
    let cases = [
        ("ndr-compute-rails.txt", true),
        ("fdr10-qdr-8switch.txt", false),
        ("hdr-fdr-loopbacks-small.txt", false),
        ("hdr-superpod-compute.txt", false),
        ("qdr-full-flag.txt", false),
    ];
    for (name, same_order) in cases {
        let text = std::fs::read_to_string(folder.join("ibnetdiscover").join(name)).unwrap();
        let text = text.replace('\r', "");
        let ours = rewritten(&text);
        let sorted = |text: &str| {
            let mut records: Vec<String> =
                text.split("\n\n").map(|r| r.trim().to_owned()).filter(|r| !r.is_empty()).collect();
            records.sort();
            records
        };
        assert_eq!(sorted(&ours), sorted(&text), "{name}");
        assert!(!same_order || ours.trim_end() == text.trim_end(), "{name}");
    }
}

/// Counted facts of each capture: switches, adapters, links, links of a node to itself, LIDs, LMCs, warnings.
#[test]
fn captures_hold_what_was_counted_in_them() {
    let Some(folder) = captures() else { return };
    let facts = [
        ("hdr-fdr-loopbacks-small.txt", 2, 13, 16, 2, 101, 0, 0),
        ("hdr-superpod-compute.txt", 666, 4341, 12852, 0, 5994, 0, 0),
        ("hdr-directors-terminal-log.txt", 400, 2328, 8723, 0, 4564, 0, 1),
        ("ndr-compute-rails.txt", 40, 582, 1114, 0, 695, 0, 0),
        ("lone-ca-no-link.txt", 0, 1, 0, 0, 0, 0, 0),
        ("sdr-voltaire-grouped-lmc1.txt", 2, 4, 7, 0, 16, 5, 0),
        ("sdr-8port-2009.txt", 1, 2, 2, 0, 3, 0, 0),
        ("edr-fdr-qdr-sdr-stderr-line.txt", 2, 6, 10, 3, 268, 0, 1),
        ("fdr10-qdr-8switch.txt", 8, 144, 192, 0, 155, 0, 0),
        ("qdr-full-flag.txt", 2, 7, 8, 0, 22, 0, 0),
        ("synthetic-4ary-3tree-lid0.txt", 80, 128, 384, 0, 0, 0, 0),
    ];
    for (name, switches, adapters, links, own, top, lmc1, warnings) in facts {
        let loaded = crate::formats::load(&folder.join("ibnetdiscover").join(name)).unwrap();
        let fabric = &loaded.fabric;
        let kind = |kind| fabric.nodes().filter(|(_, n)| n.kind == kind).count();
        let lids: Vec<(u16, u8)> = fabric
            .nodes()
            .flat_map(|(_, n)| {
                n.end_ports().filter_map(|(_, p)| Some((p.lid?.get(), p.lmc))).collect::<Vec<_>>()
            })
            .collect();
        let found = (
            kind(NodeType::Switch),
            kind(NodeType::Ca),
            fabric.link_count(),
            fabric.links().filter(|l| l.a.node == l.b.node).count(),
            lids.iter().map(|(lid, _)| *lid).max().unwrap_or(0),
            lids.iter().filter(|(_, lmc)| *lmc == 1).count(),
            loaded.warnings.len(),
        );
        let expected = (switches, adapters, links, own, top, lmc1, warnings);
        assert_eq!(found, expected, "{name}: {:?}", loaded.warnings);
    }
}

#[test]
fn speeds_of_a_capture_are_those_counted() {
    let Some(folder) = captures() else { return };
    let text = std::fs::read_to_string(folder.join("ibnetdiscover/hdr-fdr-loopbacks-small.txt")).unwrap();
    let fabric = read("small", &text).unwrap().fabric;
    let speed = |s| fabric.links().filter(|l| fabric.port(l.a).unwrap().speed == Some(s)).count();
    assert_eq!([LinkSpeed::Fdr, LinkSpeed::Edr, LinkSpeed::Hdr, LinkSpeed::Fdr10].map(speed), [12, 2, 1, 1]);
}

fn one_switch(port_line: &str) -> String {
    format!(
        "# Initiated from node 1 port 1\nSwitch\t4 \"S-0000000000000001\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n{port_line}\n"
    )
}

#[test]
fn descriptions_may_hold_quotes_and_brackets() {
    let text = one_switch("[1]\t\"H-0000000000000002\"[1](3) \t\t# \"a \"b\" [c] lid 9 \" lid 7 4xXDR");
    let loaded = read("t", &text).unwrap();
    let host = loaded.fabric.find(mad::types::Guid(2)).unwrap();
    let node = loaded.fabric.node(host);
    assert_eq!(node.description, "a \"b\" [c] lid 9 ");
    assert_eq!(node.port(PortNum(1)).unwrap().lid.unwrap().get(), 7);
    assert_eq!(loaded.warnings.len(), 1, "no record of its own: {:?}", loaded.warnings);
    let switch = loaded.fabric.find(mad::types::Guid(1)).unwrap();
    let port = loaded.fabric.node(switch).port(PortNum(1)).unwrap();
    assert_eq!((port.width, port.speed), (Some(LinkWidth::X4), Some(LinkSpeed::Xdr)));
}

#[test]
fn errors_name_the_place_and_what_is_allowed() {
    let cases = [
        ("[5]\t\"S-0000000000000002\"[1]", "t:3:1: port 5 of \"sw\", expected a port from 1 to 4"),
        (
            "[x]\t\"S-0000000000000002\"[1]",
            "t:3:2: found `x]\t\"S-0000000000000002\"[1]`, expected a port number, 0 to 254",
        ),
        (
            "[1]\t\"Q-0000000000000002\"[1]",
            "t:3:5: found `\"Q-0000000000000002\"[1]`, expected S-, H- or R- and a GUID of 16 hexadecimal digits in quotes",
        ),
        ("[1]\t\"S-2\"", "t:3:10: the line ends, expected `[`"),
    ];
    for (line, message) in cases {
        assert_eq!(read("t", &one_switch(line)).unwrap_err().to_string(), message);
    }
    let twice = format!("{0}\n{0}", one_switch(""));
    assert!(read("t", &twice).unwrap_err().to_string().contains("is there twice, expected each node once"));
    let contradiction = one_switch(
        "[1]\t\"S-0000000000000001\"[2]\t# \"sw\" lid 1 4xEDR\n[2]\t\"S-0000000000000001\"[3]\t# \"sw\" lid 1 4xEDR",
    );
    assert_eq!(
        read("t", &contradiction).unwrap_err().to_string(),
        "t:4:1: port 2 of sw is already connected by line 3, expected each port in one link only, the same from both ends"
    );
}

/// Numbers that are no LIDs, except those by which devices say that they have none.
#[test]
fn lids_and_lmcs_out_of_range_are_refused_with_their_place() {
    let host = |lid: &str, lmc: &str| {
        format!(
            "{}\nCa\t1 \"H-0000000000000002\"\t\t# \"h\"\n[1](3) \t\"S-0000000000000001\"[1]\t\t# lid {lid} lmc {lmc} \"sw\" lid 1 4xEDR\n",
            one_switch("[1]\t\"H-0000000000000002\"[1](3) \t\t# \"h\" lid 0 4xEDR")
        )
    };
    let said = |lid: &str, lmc: &str| read("t", &host(lid, lmc)).unwrap_err().to_string();
    for lid in ["49152", "50000", "65534", "70000"] {
        assert_eq!(said(lid, "0"), format!("t:6:40: LID {lid}, expected 1 to 49151, or 0 or 65535 for none"));
    }
    assert!(said("99999999999999999999999", "0").contains("expected 1 to 49151"));
    assert_eq!(said("7", "99"), "t:6:46: LMC 99, expected 0 to 7");
    assert_eq!(said("7", "8"), "t:6:46: LMC 8, expected 0 to 7");
    for (lid, there) in [("0", None), ("65535", None), ("49151", mad::types::Lid::new(49151))] {
        let fabric = read("t", &host(lid, "7")).unwrap().fabric;
        let host = fabric.find(mad::types::Guid(2)).unwrap();
        assert_eq!(fabric.node(host).port(PortNum(1)).unwrap().lid, there);
    }
    let switch = one_switch("").replace("lid 1 lmc 0", "lid 50000 lmc 0");
    assert_eq!(
        read("t", &switch).unwrap_err().to_string(),
        "t:2:55: LID 50000, expected 1 to 49151, or 0 or 65535 for none"
    );
    let switch = one_switch("").replace("lmc 0", "lmc 9");
    assert!(read("t", &switch).unwrap_err().to_string().ends_with("LMC 9, expected 0 to 7"));
    let far = one_switch("[1]\t\"H-0000000000000002\"[1](3) \t\t# \"h\" lid 70000 4xEDR");
    assert!(read("t", &far).unwrap_err().to_string().contains("LID 70000, expected"));
}

/// A node's own line and the lines of links to it.
#[test]
fn lids_of_one_port_that_differ_are_refused_with_both_lines() {
    let (_, text) = golden().into_iter().find(|(path, _)| path.ends_with("torus-lmc1-from-H5.txt")).unwrap();
    let whole = read("t", &text).unwrap();
    assert_eq!(whole.wrong_lid, None);
    let mut changed = 0;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('[')) {
        let place = line.rfind(" lid ").unwrap() + " lid ".len();
        let wrong = format!("{}1{}", &line[..place], &line[place..]);
        let error = read("t", &text.replacen(line, &wrong, 1)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("t:{}:", number + 1)), "{error}");
        assert!(error.contains(", expected LID ") && error.contains(", as in line "), "{error}");
        changed += 1;
    }
    assert!(changed > 10);
}

/// The order does not depend on the order of the nodes in memory.
#[test]
fn the_order_of_insertion_makes_no_difference() {
    let (_, text) = golden().into_iter().find(|(path, _)| path.ends_with("odd-from-h1.txt")).unwrap();
    let loaded = read("odd", &text).unwrap();
    let mut reversed = Fabric::new();
    let nodes: Vec<_> = loaded.fabric.nodes().map(|(_, n)| n.guid).collect();
    for guid in nodes.iter().rev() {
        let mut node = loaded.fabric.node(loaded.fabric.find(*guid).unwrap()).clone();
        let blank = crate::fabric::Node::new(node.kind, *guid, "", node.num_ports);
        for (port, blank) in node.ports.iter_mut().zip(blank.ports) {
            // A copy of a port carries no link.
            if let (Some(port), Some(mut blank)) = (port.as_mut(), blank) {
                (blank.guid, blank.lid, blank.lmc, blank.width, blank.speed) =
                    (port.guid, port.lid, port.lmc, port.width, port.speed);
                (blank.state, blank.phys_state) = (port.state, port.phys_state);
                *port = blank;
            }
        }
        reversed.add_node(node).unwrap();
    }
    let there = |end: PortRef| {
        let guid = loaded.fabric.node(end.node).guid;
        PortRef { node: reversed.find(guid).unwrap(), port: end.port }
    };
    let links: Vec<_> = loaded.fabric.links().map(|l| (there(l.b), there(l.a))).collect();
    let from = there(loaded.from.unwrap());
    for (a, b) in links {
        reversed.connect(a, b).unwrap();
    }
    let options = WriteOptions { from, generated: generated(&text), full: false };
    assert_eq!(write(&reversed, &options), text);
}
