//! ibdmchk of ibutils on the tables that `rsm run --dump-dir` writes.

use std::path::Path;
use std::process::Command;

/// It must scan every path between host ports and find neither a missing one nor a credit loop, unless the fabric is known
/// to have one by its routing.
pub(crate) fn check(tables: &Path, host_ports: usize) {
    let said = verdict(tables);
    let paths = host_ports * (host_ports - 1);
    assert!(said.contains(&format!("Scanned:{paths} CA to CA paths")), "{said}");
    assert!(!said.contains("-E-") || said.contains("-E- credit loops in routing"), "{said}");
    assert!(said.contains("no credit loops found") || said.contains("credit loops in routing"), "{said}");
}

/// All that it prints. It crashes after its verdict, so its status says nothing.
fn verdict(tables: &Path) -> String {
    let output = Command::new("stdbuf")
        .args(["-oL", "ibdmchk", "-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"])
        .current_dir(tables)
        .output()
        .expect("ibdmchk runs");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
