//! Quality of service: the tables that ports hold after ours and after opensm, from the same options, as smpquery reads them.

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;

/// Options as opensm's file has them.
const OPTIONS: &str = "qos TRUE\nqos_high_limit 5\nqos_vlarb_high 0:64,1:32\nqos_vlarb_low 2:4,3:8,4:16,5:1\n\
    qos_sl2vl 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,15\nqos_ca_vlarb_high 7:255\nqos_ca_high_limit 255\n\
    qos_swe_sl2vl 7,6,5,4,3,2,1,0,7,6,5,4,3,2,1,0\n";

/// What ports of the manager's host, of its leaf and of a spine hold.
fn tables(emulator: &Emulator) -> String {
    let mut all = String::new();
    for (route, port) in [("0", "1"), ("0,1", "1"), ("0,1", "7"), ("0,1,7", "2"), ("0,1,2", "1")] {
        for table in ["vlarb", "sl2vl"] {
            let said = emulator.run("H0", "smpquery", &["-D", table, route, port]).ok();
            all += &format!("{table} {route} {port}\n{said}");
        }
        let info = emulator.run("H0", "smpquery", &["-D", "portinfo", route, port]).ok();
        all.extend(info.lines().filter(|line| line.starts_with("VLHighLimit")));
        all.push('\n');
    }
    all
}

#[test]
fn ports_hold_what_opensm_gives_them_from_the_same_options() {
    let theirs = Emulator::start(Net::own("tree36.net"));
    let opensm = theirs.opensm_with("H0", &[], OPTIONS);
    opensm.wait_until_up(&theirs);

    let ours = Emulator::start(Net::own("tree36.net"));
    let files = tempfile::tempdir().expect("a folder");
    let (options, config) = (files.path().join("opensm.conf"), files.path().join("rsm.toml"));
    std::fs::write(&options, OPTIONS).expect("options");
    std::fs::write(&config, format!("[qos]\nopensm_file = {options:?}\n")).expect("configuration");
    let (rsm, config) = (env!("CARGO_BIN_EXE_rsm"), config.to_str().expect("text"));
    let said = ours.run("H0", rsm, &["run", "--once", "--state-dir", "state", "--config", config]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (ours, theirs) = (tables(&ours), tables(&theirs));
    opensm.end();
    assert_eq!(ours, theirs);
    assert!(ours.contains("WEIGHT"), "{ours}");
}
