//! Subnet administration, asked by saquery. ibsim's preload library cuts every answer after its first segment, so that
//! questions here have one record for an answer.

use crate::fabric::Lids;
use crate::sim::Sim;

/// Records of nodes, ports, paths, tables and of the manager itself.
pub(crate) fn check(sim: &Sim, node: &str, lids: &Lids) {
    let ask = |args: &[&str]| sim.run(node, "saquery", args).ok();
    for ((name, port), lid) in lids.hosts.iter().take(6) {
        let record = ask(&["NR", &lid.to_string()]);
        assert_eq!(field(&record, "lid"), lid.to_string(), "{record}");
        assert_eq!(field(&record, "port_num"), format!("{port:#x}"), "{record}");
        assert_eq!(field(&record, "NodeDescription"), *name, "{record}");
        let record = ask(&["PIR", &format!("{lid}/{port}")]);
        assert_eq!(field(&record, "base_lid"), format!("{lid:#x}"), "{record}");
        assert!(record.contains("PortState") || record.contains("state"), "{record}");
    }
    for (name, lid) in lids.switches.iter().take(3) {
        let record = ask(&["NR", &lid.to_string()]);
        assert_eq!(field(&record, "NodeDescription"), *name, "{record}");
        let record = ask(&["SWIR", &lid.to_string()]);
        assert_eq!(field(&record, "LID"), lid.to_string(), "{record}");
        let record = ask(&["LFTR", &format!("{lid}/0")]);
        assert!(record.contains("LFT Record dump") || record.contains("LFT"), "{record}");
    }
    let hosts: Vec<u16> = lids.hosts.values().copied().collect();
    for pair in hosts.windows(2).take(6) {
        let record = ask(&["PR", "--slid", &pair[0].to_string(), "--dlid", &pair[1].to_string()]);
        assert_eq!(field(&record, "slid"), pair[0].to_string(), "{record}");
        assert_eq!(field(&record, "dlid"), pair[1].to_string(), "{record}");
    }
    let record = ask(&["SMIR"]);
    assert!(record.contains("SMInfoRecord"), "{record}");
    let record = ask(&["CPI"]);
    assert!(record.contains("ClassPortInfo"), "{record}");
}

/// The value of `name....value` lines.
fn field(record: &str, name: &str) -> String {
    let line = record.lines().map(str::trim).find(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ':', ' ', '=']))
    });
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{record}"));
    line[name.len()..].trim_start_matches(['.', ':', ' ', '=']).trim().to_owned()
}
