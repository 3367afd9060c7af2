//! Files that steer engines and mean nothing: GUIDs that nothing has are told, ports that no switch has are refused.

use std::path::Path;

use crate::rsm::{Said, rsm};

fn route(engine: &str, flag: &str, text: &str) -> Said {
    let folder = tempfile::tempdir().expect("folder");
    let list = folder.path().join("list");
    std::fs::write(&list, text).expect("file");
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/tree36.net");
    rsm(&["route", net.to_str().expect("text"), "--engine", engine, flag, list.to_str().expect("text")])
}

#[test]
fn guids_that_nothing_has_are_told_with_their_number() {
    for (flag, text, told) in [
        (
            "--io-guids",
            "0x1\n0x2\n",
            "rsm: none of the 2 I/O GUIDs is a host's port of this fabric, first 0x",
        ),
        (
            "--hop-weights",
            "0x1 1 5\n",
            "rsm: none of the 1 hop weight GUIDs is a switch of this fabric, first 0x",
        ),
        (
            "--port-order",
            "0x1 1 2\n",
            "rsm: none of the 1 port order GUIDs is a switch of this fabric, first 0x",
        ),
        ("--ids", "0x1 7\n", "rsm: none of the 1 id GUIDs is a switch of this fabric, first 0x"),
    ] {
        let said = route("minhop", flag, text);
        assert_eq!((said.code, said.err.lines().count()), (Some(0), 1), "{said:?}");
        assert!(said.err.starts_with(told), "{said:?}");
    }
    let said = route("ftree", "--cn-guids", "0x1\n");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("ftree: none of the 1 compute GUIDs is a host of this fabric"), "{said:?}");
}

/// A root that is down today does not hide the others, and is told.
#[test]
fn roots_of_which_one_is_not_there_are_followed() {
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/tree36.net");
    let (_, graph) = graph(&net);
    let spines = (0..graph.switch_count() as u32).filter(|s| graph.name(*s).starts_with('S'));
    let spines = spines.map(|s| format!("{} # a spine\r\n", graph.guid(s)));
    let spines: Vec<String> = spines.collect();
    for engine in ["updn", "ftree"] {
        let said = route(engine, "--root-guids", &format!("0x1\r\n{}", spines.concat()));
        assert_eq!(said.code, Some(0), "{said:?}");
        let told = format!(
            "rsm: 1 of the {} root GUIDs are not a switch of this fabric, first 0x0000000000000001\n",
            spines.len() + 1
        );
        assert_eq!(said.err, told);
        assert!(said.out.contains("no turn from down to up"), "{said:?}");
    }
}

/// A list that is not there is input that can't be used, as a topology is.
#[test]
fn lists_that_cannot_be_read_are_refused() {
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/tree36.net");
    let net = net.to_str().expect("text");
    for flag in
        ["--root-guids", "--cn-guids", "--io-guids", "--ids", "--hop-weights", "--port-order", "--torus-conf"]
    {
        let said = rsm(&["route", net, flag, "/nonexistent/list"]);
        assert!(said.refused(2).starts_with("rsm: /nonexistent/list: "), "{flag}: {said:?}");
    }
    for flag in ["--tables", "--load"] {
        let said = rsm(&["route", net, "--engine", "adaptive-minhop", flag, "/nonexistent/file"]);
        assert!(said.refused(2).starts_with("rsm: /nonexistent/file: "), "{flag}: {said:?}");
    }
}

#[test]
fn ports_that_a_switch_has_not_are_refused_with_their_place() {
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/tree36.net");
    let (_, graph) = graph(&net);
    let (guid, ports) = (graph.guid(0), graph.num_ports(0));
    let beyond = format!("list:2:20: port {}, expected a port of the switch, which has {ports}", ports + 1);
    for (flag, text, refused) in [
        ("--hop-weights", format!("# weights\n{guid} {} 3\n", ports + 1), &beyond[..]),
        ("--port-order", format!("# order\n{guid} {} 1\n", ports + 1), &beyond),
        (
            "--port-order",
            format!("{guid} 1 2 1\n"),
            "list:1:24: port 1 a second time, expected each port once",
        ),
    ] {
        let said = route("minhop", flag, &text);
        assert!(said.refused(2).ends_with(refused), "{said:?}");
    }
}

fn graph(path: &Path) -> (routing::fabric::Fabric, routing::fabric::SwitchGraph) {
    let fabric = routing::formats::load(path).expect("a net").fabric;
    let graph = routing::fabric::SwitchGraph::new(&fabric);
    (fabric, graph)
}
