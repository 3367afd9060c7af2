use std::collections::HashMap;

use mad::types::{Guid, LinkSpeed, LinkWidth, NodeType, PortNum};

use super::*;
use crate::formats::tests::{captures, same};

#[test]
fn what_is_written_reads_back_the_same() {
    let text = include_str!("../../../../testdata/ibnetdiscover/odd.net");
    let first = read("odd.net", text).unwrap().fabric;
    let again = read("again", &write(&first)).unwrap().fabric;
    same(&first, &again);
}

/// The fabric that ibsim makes of a net file is the one that ibnetdiscover finds on it (but for LIDs, which opensm gave).
#[test]
fn the_fabric_is_the_one_that_ibnetdiscover_finds_on_ibsim() {
    let ours = read("odd.net", include_str!("../../../../testdata/ibnetdiscover/odd.net")).unwrap().fabric;
    let found = include_str!("../../../../testdata/ibnetdiscover/odd-from-spine-one.txt");
    let found = crate::formats::parse("found", found).unwrap().fabric;
    for (id, node) in found.nodes() {
        let mine = ours.node(ours.find(node.guid).unwrap());
        assert_eq!((&mine.description, mine.num_ports), (&node.description, node.num_ports));
        assert_eq!((mine.vendor_id, mine.device_id), (node.vendor_id, node.device_id));
        assert_eq!(mine.system_image_guid, node.system_image_guid);
        for (number, port) in node.numbered_ports().filter(|(_, p)| p.width.is_some()) {
            let my_port = mine.port(number).unwrap();
            assert_eq!(
                (my_port.width, my_port.speed),
                (port.width, port.speed),
                "{} {number}",
                node.description
            );
            let end = |id, number| crate::fabric::PortRef { node: id, port: number };
            let peer = found.peer(end(id, number)).map(|p| (found.node(p.node).guid, p.port));
            let my_peer = ours.peer(end(ours.find(node.guid).unwrap(), number));
            assert_eq!(my_peer.map(|p| (ours.node(p.node).guid, p.port)), peer);
        }
    }
    assert_eq!(found.link_count(), ours.link_count());
}

#[test]
fn guids_are_counted_as_ibsim_counts_them() {
    let text = "Switch 4 \"a\"\n[1] \"x\"\n[2] \"y\"[2] w=1\n\nHca 2 \"x\"\n[1] \"a\"[1]\n\nhcaguids=0x500\nHca 2 \"y\"\n[2] \"a\"[2] w=3\n";
    let loaded = read("t", text).unwrap();
    let fabric = &loaded.fabric;
    let guids: Vec<(NodeType, Guid)> = fabric.nodes().map(|(_, n)| (n.kind, n.guid)).collect();
    let expected =
        [(NodeType::Switch, Guid(0x20_0000)), (NodeType::Ca, Guid(0x10_0000)), (NodeType::Ca, Guid(0x500))];
    assert_eq!(guids, expected);
    let switch = fabric.node(fabric.find(Guid(0x20_0000)).unwrap());
    let port = |n| switch.port(PortNum(n)).unwrap();
    assert_eq!((port(1).width, port(1).speed), (Some(LinkWidth::X4), Some(LinkSpeed::Sdr)));
    assert_eq!(port(2).width, Some(LinkWidth::X1));
}

#[test]
fn modules_aliases_and_includes_work() {
    let files = HashMap::from([
        (
            "top",
            "include \"inner\"\nmodule=\"m\"\nSwitch 2 \"s\"\n@[1] \"up\"\n\nmodule=\"\"\nHca 1 \"h\"\n[1] \"m@up\"\n",
        ),
        ("inner", "switchguid=0x77\n"),
        ("circle", "include \"circle\"\n"),
    ]);
    let find = |name: &str| files.get(name).map(|t| (*t).to_owned()).ok_or_else(|| "no such file".to_owned());
    let loaded = read_with("top", files["top"], &find).unwrap();
    assert_eq!(loaded.fabric.link_count(), 1);
    assert!(loaded.fabric.find(Guid(0x77)).is_some());
    let error = read_with("circle", files["circle"], &find).unwrap_err();
    assert!(error.to_string().contains("at most nine files"), "{error}");
    let error = read("t", "include \"gone\"\n").unwrap_err();
    assert!(error.to_string().starts_with("t:1:"), "{error}");
}

#[test]
fn errors_name_the_place_and_what_is_allowed() {
    let cases = [
        ("Switch 0 \"a\"\n", "t:1:8: found `0 \"a\"`, expected the number of ports, 1 to 254"),
        ("Switch 4 a\n", "t:1:11: the line ends, expected the node's name in quotes"),
        ("Switch 4 \"a\"\n[1] \"b\"[1]\n", "t:2:1: peer \"b\", expected the name of a node of this file"),
        ("Switch 4 \"a\"\n[9] \"a\"[1]\n", "t:2:1: port 9 of \"a\", expected a port from 1 to 4"),
        (
            "[9] \"a\"[1]\n",
            "t:1:1: found `[9] \"a\"[1]`, expected a Switch, Hca, Ca or Rt line before the ports",
        ),
        ("Switch 4 \"a\"\nSwitch 4 \"a\"\n", "t:2:10: \"a\" a second time, expected each name once"),
        ("vendid=0x1000000\n", "t:1:8: found `0x1000000`, expected a vendor id of 24 bits"),
    ];
    for (text, message) in cases {
        assert_eq!(read("t", text).unwrap_err().to_string(), message);
    }
}

/// What comments say of the other end of a link has to be what that end says: a LID is refused with both lines, a rate is told.
#[test]
fn comments_of_two_ends_that_contradict_each_other_are_named() {
    let net = |lid: u16, rate: &str| {
        format!(
            "Switch 4 \"S-1\" # \"S\" base port 0 lid 1 lmc 0\n[1] \"H-1\"[1] # \"h\" lid {lid} 4xEDR\n\n\
             Hca 1 \"H-1\" # \"h\"\n[1] \"S-1\"[1] # lid 5 lmc 0 \"S\" lid 1 {rate}\n"
        )
    };
    let right = read("t", &net(5, "4xEDR")).unwrap();
    assert!(right.warnings.is_empty(), "{:?}", right.warnings);
    let error = read("t", &net(6, "4xEDR")).unwrap_err().to_string();
    assert!(
        error.starts_with("t:2:") && error.ends_with(": LID 6 of \"h\"[1], expected LID 5, as in line 5"),
        "{error}"
    );
    let of_switch = net(5, "4xEDR").replace("\"S\" lid 1 ", "\"S\" lid 2 ");
    let error = read("t", &of_switch).unwrap_err().to_string();
    assert!(
        error.starts_with("t:5:") && error.ends_with("LID 2 of \"S\"[0], expected LID 1, as in line 1"),
        "{error}"
    );
    let slower = read("t", &net(5, "4xHDR")).unwrap();
    assert_eq!(slower.warnings, ["t:5: a link of 4xHDR, which is of 4xEDR in line 2"]);
}

#[test]
fn captures_of_net_files_hold_what_was_counted_in_them() {
    let Some(folder) = captures() else { return };
    for (name, switches, adapters, links) in [("net.txt", 2, 2, 4), ("net.2sw2path4hca2port.txt", 2, 2, 6)] {
        let fabric = crate::formats::load(&folder.join("ibsim-net").join(name)).unwrap().fabric;
        let counts =
            (fabric.switches().count(), fabric.node_count() - fabric.switches().count(), fabric.link_count());
        assert_eq!(counts, (switches, adapters, links), "{name}");
    }
}
