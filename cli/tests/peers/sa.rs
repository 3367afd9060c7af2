//! Subnet administration, asked by saquery. ibsim's preload library cuts every answer after its first segment, so that
//! questions here have one record for an answer.

use crate::fabric::Lids;
use crate::harness::Harness;

/// Records of nodes, ports, paths, tables and of the manager itself.
pub(crate) fn check(sim: &impl Harness, node: &str, lids: &Lids) {
    let ask = |args: &[&str]| sim.run(node, "saquery", args).ok();
    for ((name, port), lid) in lids.hosts.iter().take(6) {
        let record = ask(&["NR", &lid.to_string()]);
        assert_eq!(field(&record, "lid"), lid.to_string(), "{record}");
        assert_eq!(field(&record, "port_num"), port.to_string(), "{record}");
        assert_eq!(field(&record, "NodeDescription"), *name, "{record}");
        let record = ask(&["PIR", &format!("{lid}/{port}")]);
        assert_eq!(field(&record, "Lid"), lid.to_string(), "{record}");
        assert_eq!(field(&record, "LinkState"), "Active", "{record}");
        assert_eq!(field(&record, "GidPrefix"), "0xfe80000000000000", "{record}");
        let record = ask(&["LR", &format!("{lid}/{port}")]);
        assert_eq!(field(&record, "FromLID"), lid.to_string(), "{record}");
        let peer: u16 = field(&record, "ToLID").parse().expect("LID of the switch");
        assert!(lids.switches.values().any(|l| *l == peer) || lids.hosts.values().any(|l| *l == peer));
    }
    for (name, lid) in lids.switches.iter().take(3) {
        let record = ask(&["NR", &lid.to_string()]);
        assert_eq!(field(&record, "NodeDescription"), *name, "{record}");
        let record = ask(&["SWIR", &lid.to_string()]);
        assert_eq!(field(&record, "LID"), lid.to_string(), "{record}");
        let top = u16::from_str_radix(field(&record, "LinearFDBTop").trim_start_matches("0x"), 16);
        let highest = lids.hosts.values().chain(lids.switches.values()).max().expect("a LID");
        assert!(top.expect("hexadecimal") >= *highest, "{record}");
        // The record must say what ibroute reads from the switch itself.
        let record = ask(&["LFTR", &format!("{lid}/{}", lid / 64)]);
        let own_entry = record.lines().find(|l| l.trim().starts_with(&format!("{lid}\t"))).expect("own LID");
        assert_eq!(own_entry.trim(), format!("{lid}\t0"), "a switch reaches itself by port 0");
    }
    let hosts: Vec<u16> = lids.hosts.values().copied().collect();
    for pair in hosts.windows(2).take(6) {
        let record = ask(&["PR", "--slid", &pair[0].to_string(), "--dlid", &pair[1].to_string()]);
        assert_eq!(field(&record, "slid"), pair[0].to_string(), "{record}");
        assert_eq!(field(&record, "dlid"), pair[1].to_string(), "{record}");
        assert_eq!(field(&record, "pkey"), "0xFFFF", "{record}");
    }
    let record = ask(&["SMIR"]);
    assert_eq!(field(&record, "SMState"), "3", "{record}");
    let record = ask(&["CPI"]);
    assert_eq!(field(&record, "Class version"), "2", "{record}");
}

/// The value of `name....value` lines.
fn field(record: &str, name: &str) -> String {
    let line = record
        .lines()
        .map(str::trim)
        .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ':', ' ', '='])));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{record}"));
    line[name.len()..].trim_start_matches(['.', ':', ' ', '=']).trim().to_owned()
}
