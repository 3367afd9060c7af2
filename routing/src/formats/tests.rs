use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::engines::{MinHop, RoutingEngine, RoutingInput};
use crate::fabric::{NodeId, SwitchGraph, testing};
use crate::verify;

/// The folder of captures of real fabrics: `RSM_CAPTURES`, or `shared/captures` of a folder above. `None`, and a line in
/// the test's output, where there is none.
pub(super) fn captures() -> Option<PathBuf> {
    let named = std::env::var_os("RSM_CAPTURES").map(PathBuf::from);
    let above = || {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().map(|folder| folder.join("shared/captures")).find(|folder| folder.is_dir())
    };
    let found = named.or_else(above);
    if found.is_none() {
        println!("no folder of captures: set RSM_CAPTURES to check against real fabrics");
    }
    found
}

/// Whether two fabrics are the same but for the order of nodes.
pub(super) fn same(a: &Fabric, b: &Fabric) {
    assert_eq!((a.node_count(), a.link_count()), (b.node_count(), b.link_count()));
    for (id, node) in a.nodes() {
        let other_id = b.find(node.guid).expect("the same GUIDs");
        let other = b.node(other_id);
        assert_eq!(
            (node.kind, &node.description, node.num_ports),
            (other.kind, &other.description, other.num_ports)
        );
        assert_eq!((node.vendor_id, node.device_id), (other.vendor_id, other.device_id));
        assert_eq!((node.system_image_guid, node.switch), (other.system_image_guid, other.switch));
        for ((number, port), (_, other)) in node.numbered_ports().zip(other.numbered_ports()) {
            let key =
                |p: &crate::fabric::Port| (p.guid, p.lid, p.lmc, p.state, p.phys_state, p.width, p.speed);
            assert_eq!(key(port), key(other), "{} port {number}", node.description);
            let peer = |f: &Fabric, node| {
                f.peer(PortRef { node, port: number }).map(|p| (f.node(p.node).guid, p.port))
            };
            assert_eq!(peer(a, id), peer(b, other_id));
        }
    }
}

fn rated(mut fabric: Fabric) -> Fabric {
    let ends: Vec<PortRef> = fabric.links().flat_map(|l| [l.a, l.b]).collect();
    for end in ends {
        let port = fabric.node_mut(end.node).port_mut(end.port).unwrap();
        port.width = Some(mad::types::LinkWidth::X4);
        port.speed = Some(mad::types::LinkSpeed::Hdr);
        port.phys_state = mad::types::PortPhysState::LinkUp;
    }
    fabric
}

#[test]
fn every_topology_format_gives_back_what_it_wrote() {
    let fabric = rated(testing::fat_tree(&[3, 3], &[1, 2], 1));
    let host = fabric.nodes().find(|(_, n)| !n.is_switch()).map(|(id, _)| id).unwrap();
    let from = PortRef { node: host, port: mad::types::PortNum(1) };
    let options = ibnetdiscover::WriteOptions { from, generated: "today", full: false };
    let texts = [
        (Format::Ibnetdiscover, ibnetdiscover::write(&fabric, &options)),
        (Format::Ibsim, ibsim::write(&fabric)),
        (Format::Json, json::write(&fabric, Some(from))),
    ];
    for (format, text) in texts {
        let loaded = parse("written", &text).unwrap_or_else(|e| panic!("{format}: {e}"));
        assert_eq!(loaded.format, format);
        same(&fabric, &loaded.fabric);
        if format != Format::Ibsim {
            assert_eq!(loaded.from.map(|f| loaded.fabric.node(f.node).guid), Some(fabric.node(host).guid));
        }
    }
    // This format knows no LMC and no ports without a link.
    let loaded = parse("written", &lst::write(&fabric, None)).unwrap();
    assert_eq!(loaded.format, Format::Lst);
    assert_eq!(loaded.fabric.link_count(), fabric.link_count());
    assert_eq!(lst::write(&loaded.fabric, None), lst::write(&fabric, None));
    let text = dot::write(&fabric, true);
    assert!(text.starts_with("graph fabric {") && text.matches(" -- ").count() == 6, "{text}");
}

#[test]
fn every_table_format_gives_back_what_it_wrote() {
    let fabric = testing::torus(&[3, 3], 2, 1);
    let graph = SwitchGraph::new(&fabric);
    let mut routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    routes.lfts.row_mut(3)[5] = 255;
    for text in [fdbs::write(&graph, &routes), lfts::write(&fabric, &graph, &routes)] {
        let read = tables::read("written", &text, &graph).unwrap();
        assert!(read.routes.lfts == routes.lfts, "{}", read.warnings.join("\n"));
        assert!(read.warnings.is_empty());
    }
    let mut multicast = mcfdbs::MulticastTables::new();
    let ports = [1, 2, 17].map(mad::types::PortNum).into();
    multicast.entry(graph.guid(0)).or_default().insert(mad::types::MulticastLid::MIN, ports);
    assert_eq!(mcfdbs::read("written", &mcfdbs::write(&multicast)).unwrap(), multicast);
}

/// opensm 3.3.23's own dumps of a 16-host tree on ibsim: they read, and what we write of them is the same text.
#[test]
fn opensms_dumps_are_written_again_byte_for_byte() {
    let lst = include_str!("../../../testdata/opensm/ft16.lst");
    let fabric = parse("ft16.lst", lst).unwrap().fabric;
    assert_eq!(lst::write(&fabric, mad::types::Lid::new(1)), lst);
    let graph = SwitchGraph::new(&fabric);
    let fdbs = include_str!("../../../testdata/opensm/ft16.fdbs");
    let tables = tables::read("ft16.fdbs", fdbs, &graph).unwrap();
    assert_eq!(fdbs::write(&graph, &tables.routes), fdbs);
    let report = verify::check(&graph, &tables.routes, verify::Options::default());
    assert!(report.is_right(), "{report}");
    for name in ["opensm-lfts.dump", "dump_lfts.txt"] {
        let text = match name {
            "opensm-lfts.dump" => include_str!("../../../testdata/opensm/ft16.lfts.dump"),
            _ => include_str!("../../../testdata/opensm/ft16.dump_lfts.txt"),
        };
        let other = tables::read(name, text, &graph).unwrap();
        assert!(other.routes.lfts == tables.routes.lfts, "{name}");
    }
}

/// The route facts that come with the capture: every walk is delivered, the longest takes 6 links.
#[test]
fn the_captured_tables_of_a_real_fabric_verify() {
    let Some(folder) = captures() else { return };
    let fabric = load(&folder.join("ibdiagnet-lst/subnet.lst")).unwrap().fabric;
    assert_eq!((fabric.switches().count(), fabric.node_count(), fabric.link_count()), (62, 65, 172));
    let graph = SwitchGraph::new(&fabric);
    let text = std::fs::read_to_string(folder.join("fdbs/subnet.osm.fdbs")).unwrap();
    let tables = tables::read("subnet.osm.fdbs", &text, &graph).unwrap();
    let report = verify::check(&graph, &tables.routes, verify::Options::default());
    assert!(report.reaches_all(), "{report}");
    assert_eq!(report.hosts.walks + report.management.walks, 4030);
    // Six links, the one to the host included.
    assert_eq!(report.hops.longest, 5);
    let rhino = load(&folder.join("ibdiagnet-lst/rhino512.lst")).unwrap();
    let switches = rhino.fabric.switches().count();
    assert_eq!((switches, rhino.fabric.node_count(), rhino.fabric.link_count()), (216, 728, 2752));
    assert_eq!(rhino.warnings.len(), 1, "{:?}", rhino.warnings);
}

/// B27: a port or switch that the topology does not have is refused with its line.
#[test]
fn b27_tables_that_do_not_fit_are_refused_with_their_line() {
    let fabric = testing::torus(&[3], 1, 0);
    let graph = SwitchGraph::new(&fabric);
    let guid = graph.guid(0);
    let cases = [
        (
            format!("dump_ucast_routes: Switch {guid}\n0x0001 : 099  : 01   : yes\n"),
            "t:2:1: port 99 of switch \"S1\", expected a port from 0 to 3, or 255 for none",
        ),
        (
            "dump_ucast_routes: Switch 0x0000000000000123\n".to_owned(),
            "t:1:29: switch 0x0000000000000123, expected the NodeGUID of a switch of this topology",
        ),
        (
            format!("Unicast lids [0x0-0x3] of switch Lid 1 guid {guid} (S1):\n0xc001 001 : ()\n"),
            "t:2:1: LID 49153, expected a unicast LID, 1 to 0xbfff",
        ),
        (
            format!("dump_ucast_routes: Switch {guid}\nnonsense\n"),
            "t:2:1: found `nonsense`, expected `0xLID : port : hops : optimal`, or `dump_ucast_routes: Switch 0x…`",
        ),
        // Torn off: the last table is shorter than the others, or lacks the line that ends them.
        (
            format!(
                "dump_ucast_routes: Switch {guid}\n0x0001 : 001  : 01   : yes\n0x0002 : 002  : 01   : yes\n\
                 dump_ucast_routes: Switch {}\n0x0001 : 001  : 01   : yes\n",
                graph.guid(1)
            ),
            "t:4: the file ends within the table of switch \"S2\", expected LIDs up to 2, as in the others",
        ),
        (
            format!(
                "Unicast lids [0x0-0x3] of switch Lid 1 guid {guid} (S1):\n0x0001 001 : ()\n1 valid lids dumped \n\
                 Unicast lids [0x0-0x3] of switch Lid 2 guid {} (S2):\n0x0001 001 : ()\n",
                graph.guid(1)
            ),
            "t:4: the file ends within the table of switch \"S2\", expected `… lids dumped` after each table, as after those before",
        ),
        // Twice in one table: neither is taken for the one that counts.
        (
            format!(
                "dump_ucast_routes: Switch {guid}\n0x0001 : 001  : 01   : yes\n0x0002 : 002  : 01   : yes\n\
                 0x0001 : 002  : 01   : yes\n"
            ),
            "t:4:1: LID 1 a second time for switch \"S1\", first in line 2, expected each LID once in a table",
        ),
        (
            format!(
                "Unicast lids [0x0-0x3] of switch Lid 1 guid {guid} (S1):\n0x0001 001 : ()\n0x0001 001 : ()\n"
            ),
            "t:3:1: LID 1 a second time for switch \"S1\", first in line 2, expected each LID once in a table",
        ),
        (
            String::new(),
            "t: the file is empty, expected opensm.fdbs (`dump_ucast_routes: Switch 0x…`), a dump of LFTs (`Unicast lids …`) or routes.json",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(tables::read("t", &text, &graph).unwrap_err().to_string(), message);
    }
    // What is odd is told by the first of its kind, in every form.
    let text = format!("dump_ucast_routes: Switch {guid}\n0x0099 : 001  : 01   : yes\n");
    let lfts = format!("Unicast lids [0x0-0x99] of switch Lid 1 guid {guid} (S1):\n0x0099 001 : ()\n");
    let lft: Vec<u8> = (0..=0x99).map(|lid| if lid == 0x99 { 1 } else { 255 }).collect();
    let json = format!(
        "{{\"engine\":\"x\",\"vls\":1,\"switches\":[{{\"guid\":\"{guid}\",\"name\":\"S1\",\"lft\":{lft:?}}}],\
         \"sl\":\"default\",\"sl_to_vl\":\"identity\"}}"
    );
    for text in [text, lfts, json] {
        let warnings = tables::read("t", &text, &graph).unwrap_or_else(|e| panic!("{e}\n{text}")).warnings;
        let others = graph.switch_count() - 1;
        assert_eq!(
            warnings[0],
            format!(
                "t: {others} of {} switches have no table, the first is \"{}\": they were not there when it was \
                 written, or it was cut off between two tables",
                others + 1,
                graph.name(1)
            )
        );
        let unknown =
            "t: 1 entries are for LIDs that nobody has in this topology, first LID 153 of switch \"S1\"";
        assert!(warnings.len() == 2 && warnings[1].starts_with(unknown), "{warnings:?}");
    }
    let text = format!("dump_ucast_routes: Switch {guid}\n0x0001 : 001  : 01   : yes\n");
    let cut = tables::read("t", &text, &graph).unwrap_err().to_string();
    assert!(cut.contains("ends within the table of switch \"S1\", expected LIDs up to "), "{cut}");
    assert!(cut.ends_with(", as the topology has"), "{cut}");
}

/// Cut off at whatever byte, a dump is refused, or what is missing is found by the verifier, or nothing that counts is missing.
#[test]
fn b27_dumps_that_are_cut_off_anywhere_are_not_taken_for_whole() {
    let fabric = testing::torus(&[3, 3], 1, 0);
    let graph = SwitchGraph::new(&fabric);
    let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
    let routes = crate::engines::by_name("torus-2qos").unwrap().route(&graph, &input).unwrap();
    let wrong = |routes: &crate::routes::Routes| {
        let report = verify::check(&graph, routes, verify::Options { data_vls: 8, ..Default::default() });
        !report.is_right() || !report.reaches_all()
    };
    assert!(!wrong(&routes));
    let (mut refused, mut found) = (0, 0);
    let texts = [
        fdbs::write(&graph, &routes),
        lfts::write(&fabric, &graph, &routes),
        routes_json::write(&graph, &routes),
    ];
    for text in &texts {
        for end in 0..text.trim_end().len() {
            match tables::read("t", &text[..end], &graph) {
                Err(_) => refused += 1,
                Ok(read) if read.routes.lfts == routes.lfts => {}
                Ok(read) => {
                    assert!(
                        wrong(&read.routes),
                        "cut off at byte {end}: ...{}",
                        &text[end.saturating_sub(80)..end]
                    );
                    found += 1;
                }
            }
        }
    }
    let text = path_sl::write(&graph, &routes);
    for end in 0..text.trim_end().len() {
        let read = path_sl::read("t", &text[..end], &fabric, &graph);
        assert!(read.is_err(), "cut off at byte {end}: ...{}", &text[end.saturating_sub(80)..end]);
        refused += 1;
    }
    let text = sl2vl::write(&graph, &routes.sl_to_vl);
    let last_row = text.rfind(':').unwrap() + 3 * 16;
    for end in 0..text.trim_end().len() {
        match sl2vl::read("t", &text[..end], &graph) {
            Err(_) => refused += 1,
            Ok(read) => {
                // Switches that are missing are told; all that are named are whole.
                assert!(
                    !read.warnings.is_empty() || end >= last_row,
                    "cut off at byte {end}: ...{}",
                    &text[end.saturating_sub(80)..end]
                );
                found += 1;
            }
        }
    }
    let host = |d: &&crate::fabric::Destination| d.host;
    let members = graph.destinations().iter().filter(host);
    let members =
        members.map(|d| crate::multicast::Member { switch: d.switch, port: d.port, receives: true });
    let group =
        verify::multicast::Group { mlid: mad::types::MulticastLid::MIN, members: members.collect(), sl: 0 };
    let groups = [group];
    let planned = crate::multicast::plan(&graph, &groups, &routes, None).tables;
    let text = mcfdbs::write(&mcfdbs::by_guid(&graph, &planned));
    for end in 0..text.trim_end().len() {
        match mcfdbs::read_for("t", &text[..end], &graph) {
            Err(_) => refused += 1,
            Ok(read) => {
                let report = verify::multicast::check(&graph, &read, &groups, &routes);
                assert!(
                    !report.is_right(),
                    "cut off at byte {end}: ...{}",
                    &text[end.saturating_sub(80)..end]
                );
                found += 1;
            }
        }
    }
    assert!(refused > 1000 && found > 100, "{refused} refused, {found} found wrong");
}

/// Two hosts, a host and a switch, ranges by LMC: found in every format, with both names, LIDs and, where there are lines, both.
#[test]
fn a_lid_at_two_ports_is_found_in_every_format() {
    let mut fabric = rated(testing::fat_tree(&[3, 3], &[1, 2], 0));
    let hosts: Vec<_> = fabric.nodes().filter(|(_, n)| !n.is_switch()).map(|(id, _)| id).collect();
    let (switch, _) = fabric.switches().next().unwrap();
    let one = mad::types::PortNum(1);
    let lid_of = |f: &Fabric, id| f.node(id).port(one).unwrap().lid.unwrap();
    let texts = |fabric: &Fabric| {
        let options = ibnetdiscover::WriteOptions {
            from: PortRef { node: hosts[0], port: one },
            generated: "today",
            full: false,
        };
        [
            ibnetdiscover::write(fabric, &options),
            ibsim::write(fabric),
            json::write(fabric, None),
            lst::write(fabric, None),
        ]
    };
    for text in texts(&fabric) {
        assert_eq!(parse("t", &text).unwrap().wrong_lid, None);
    }
    let name = |f: &Fabric, id, port: u8| format!("\"{}\"[{port}] has LID", f.node(id).description);
    let twice = |fabric: &Fabric, ends: [(NodeId, u8); 2]| {
        for (number, text) in texts(fabric).into_iter().enumerate() {
            let loaded = parse("t", &text).unwrap();
            let said = loaded.wrong_lid.expect("a LID twice").to_string();
            assert!(ends.iter().all(|(id, port)| said.contains(&name(fabric, *id, *port))), "{said}");
            assert!(said.ends_with("expected each LID at one port only"), "{said}");
            // JSON has no lines of its own.
            assert_eq!(said.starts_with("t: "), number == 2, "{said}");
            assert_eq!(said.contains(" in line "), number != 2, "{said}");
        }
    };
    let (first, kept) = (lid_of(&fabric, hosts[0]), lid_of(&fabric, hosts[1]));
    fabric.node_mut(hosts[1]).port_mut(one).unwrap().lid = Some(first);
    twice(&fabric, [(hosts[0], 1), (hosts[1], 1)]);
    let of_switch = fabric.node(switch).port(mad::types::PortNum(0)).unwrap().lid;
    fabric.node_mut(hosts[1]).port_mut(one).unwrap().lid = of_switch;
    twice(&fabric, [(switch, 0), (hosts[1], 1)]);
    fabric.node_mut(hosts[1]).port_mut(one).unwrap().lid = Some(kept);
    // The last format has no LMC.
    for id in &hosts {
        fabric.node_mut(*id).port_mut(one).unwrap().lmc = 2;
    }
    for text in &texts(&fabric)[..3] {
        let said = parse("t", text).unwrap().wrong_lid.expect("ranges that overlap").to_string();
        assert!(said.contains(" has LIDs ") && said.contains(" to "), "{said}");
    }
    // A base LID of which the low bits are not 0, and one whose LIDs go beyond the last.
    for (number, id) in hosts.iter().enumerate() {
        fabric.node_mut(*id).port_mut(one).unwrap().lid = mad::types::Lid::new(0x1000 + 4 * number as u16);
    }
    for text in &texts(&fabric)[..3] {
        assert_eq!(parse("t", text).unwrap().wrong_lid, None);
    }
    for (lid, lmc) in [(0x2001, 2), (0x2002, 2), (0xbfff, 1)] {
        let port = fabric.node_mut(hosts[1]).port_mut(one).unwrap();
        (port.lid, port.lmc) = (mad::types::Lid::new(lid), lmc);
        for text in &texts(&fabric)[..3] {
            let said = parse("t", text).unwrap().wrong_lid.expect("no base").to_string();
            let found = format!("[1] has base LID {lid} with LMC {lmc}, expected a multiple of {}", 1 << lmc);
            assert!(said.contains(&found), "{said}");
        }
    }
}

#[test]
fn files_that_are_no_topology_are_refused_in_one_line() {
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b" \n\n", "empty"),
        (b"\x7fELF\0\x01\x02", "binary"),
        (b"hello\nworld\n", "no line"),
        (b"{\"version\": 7}", "missing field"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let message = load(file.path()).unwrap_err().to_string();
        assert!(message.contains(words) && !message.contains('\n'), "{message}");
    }
    assert!(load(Path::new("/nonexistent")).unwrap_err().to_string().starts_with("/nonexistent: "));
}

/// One body for the gate (proptest) and for fuzzers.
fn fuzz_formats(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let fabric = testing::torus(&[3], 1, 0);
    let graph = SwitchGraph::new(&fabric);
    for result in [
        parse("f", &text),
        ibnetdiscover::read("f", &text),
        ibsim::read("f", &text),
        lst::read("f", &text),
        json::read("f", &text),
    ] {
        match result {
            Ok(loaded) => {
                ibsim::write(&loaded.fabric);
                lst::write(&loaded.fabric, None);
                SwitchGraph::new(&loaded.fabric);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let _ = fdbs::read("f", &text, &graph);
    let _ = lfts::read("f", &text, &graph);
    let _ = mcfdbs::read("f", &text);
}

const SEEDS: [&str; 4] = [
    include_str!("../../../testdata/ibnetdiscover/odd-from-h1.txt"),
    include_str!("../../../testdata/ibnetdiscover/odd.net"),
    include_str!("../../../testdata/opensm/ft16.lst"),
    include_str!("../../../testdata/opensm/ft16.fdbs"),
];

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz_formats(&bytes);
    }

    /// Real files with a few bytes changed, and cut off.
    #[test]
    fn damaged_files_are_read_without_panic(
        seed in 0_usize..4,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        end in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.index(bytes.len()).max(bytes.len() / 2));
        fuzz_formats(&bytes);
    }
}
