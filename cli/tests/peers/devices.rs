//! `rsm devices` against ibstat and ibv_devinfo: the same facts of the same ports, on ibsim and on a real kernel.

use std::process::Command;

use crate::harness::{Harness, on_both};
use crate::net::Net;

on_both!(on_the_simulator_they_say_what_ibstat_says,);

/// `name: value` behind the first line that starts with `name`, blanks and tabs apart.
fn fact<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim()
}

/// What both tools must agree upon.
fn agree(ours: &str, ibstat: &str) {
    for (our_name, their_name) in [
        ("Firmware version", "Firmware version"),
        ("Node GUID", "Node GUID"),
        ("System image GUID", "System image GUID"),
        ("Number of ports", "Number of ports"),
        ("Physical state", "Physical state"),
        ("Base LID", "Base lid"),
        ("LMC", "LMC"),
        ("SM LID", "SM lid"),
        ("Capability mask", "Capability mask"),
        ("Port GUID", "Port GUID"),
    ] {
        assert_eq!(fact(ours, our_name), fact(ibstat, their_name), "{our_name}\n{ours}\n{ibstat}");
    }
    // ibstat gives the rate as a number of Gb/s and the state as a word of its own.
    assert!(fact(ours, "Rate").starts_with(fact(ibstat, "Rate")), "{ours}\n{ibstat}");
    let state = match fact(ibstat, "State") {
        "Initializing" => "INIT",
        "Armed" => "ARMED",
        "Active" => "ACTIVE",
        "Down" => "DOWN",
        other => panic!("ibstat says {other}"),
    };
    assert_eq!(fact(ours, "State"), state, "{ours}\n{ibstat}");
}

fn on_the_simulator_they_say_what_ibstat_says<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let ours = sim.rsm("H2", &["devices"]).ok();
    agree(&ours, &sim.run("H2", "ibstat", &[]).ok());
    assert_eq!(fact(&ours, "Manageable"), "yes");
    let (once, _) = crate::fabric::once(&sim, "H0", &[]);
    assert_eq!(once.code, Some(0), "{once:?}");
    let ours = sim.rsm("H2", &["devices"]).ok();
    assert_eq!(fact(&ours, "State"), "ACTIVE");
    agree(&ours, &sim.run("H2", "ibstat", &[]).ok());
    let json: serde_json::Value =
        serde_json::from_str(&sim.rsm("H2", &["devices", "--json"]).ok()).expect("JSON");
    assert_eq!(json[0]["name"], H::DEVICE);
    assert_eq!(json[0]["manageable"][0]["manageable"], true);
}

/// Limits, and the MTUs of the port, as `ibv_devinfo -v` has them.
#[cfg(feature = "verbs")]
fn limits_agree(ours: &str, verbs: &str) {
    for (our_name, their_name) in [
        ("Largest memory region", "max_mr_size"),
        ("Memory regions", "max_mr"),
        ("Protection domains", "max_pd"),
        ("Queue pairs", "max_qp"),
        ("Work requests in a queue", "max_qp_wr"),
        ("Scatter entries in a request", "max_sge"),
        ("Shared receive queues", "max_srq"),
        ("Completion queues", "max_cq"),
        ("Entries in a completion queue", "max_cqe"),
        ("Address handles", "max_ah"),
        ("Outstanding RDMA reads", "max_qp_rd_atom"),
        ("Multicast groups", "max_mcast_grp"),
        ("P_Keys", "max_pkeys"),
        ("Largest message", "max_msg_sz"),
    ] {
        assert_eq!(fact(ours, our_name), fact(verbs, their_name), "{our_name}\n{ours}\n{verbs}");
    }
    // ibv_devinfo puts the code of an MTU behind it.
    for (our_name, their_name) in [("Largest MTU", "max_mtu"), ("Active MTU", "active_mtu")] {
        let theirs = fact(verbs, their_name).split(' ').next();
        assert_eq!(Some(fact(ours, our_name)), theirs, "{our_name}\n{ours}\n{verbs}");
    }
}

/// A real kernel with two Soft-RoCE devices. One boot for all, since a boot takes its time.
#[test]
fn on_a_real_kernel_they_say_what_stock_tools_say_and_ethernet_is_refused() {
    let script = "echo @ours; rsm devices; echo @ibstat; ibstat; echo @verbs; ibv_devinfo -v; \
                  echo @run; rsm run --once --state-dir /tmp/state; echo code $?; \
                  echo @named; rsm run --once --device rxe1 --state-dir /tmp/state; echo code $?; \
                  echo @discover; rsm discover --device rxe0; echo code $?; true";
    let vm = concat!(env!("CARGO_MANIFEST_DIR"), "/../simulations/kernel/vm.sh");
    let output = Command::new(vm)
        .args(["-f", concat!(env!("CARGO_BIN_EXE_rsm"), "=/bin/rsm")])
        .args(["-f", "/usr/sbin/ibstat", "-f", "/usr/bin/ibv_devinfo", "--", "sh", "-c", script])
        .output()
        .expect("vm.sh");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let part = |name: &str| {
        let rest = text.split_once(&format!("@{name}\n")).unwrap_or_else(|| panic!("no {name}: {text}")).1;
        rest.split("\n@").next().unwrap_or(rest).to_owned()
    };

    let (ours, ibstat, verbs) = (part("ours"), part("ibstat"), part("verbs"));
    for device in ["rxe0", "rxe1"] {
        let of = |text: &str, start: &str| {
            let rest = text.split_once(start).unwrap_or_else(|| panic!("no {start} in\n{text}")).1;
            rest.to_owned()
        };
        let ours = of(&ours, &format!("CA '{device}'\n"));
        let ibstat = of(&ibstat, &format!("CA '{device}'\n"));
        for (our_name, their_name) in [
            ("Node GUID", "Node GUID"),
            ("System image GUID", "System image GUID"),
            ("Number of ports", "Number of ports"),
            ("Physical state", "Physical state"),
            ("Base LID", "Base lid"),
            ("SM LID", "SM lid"),
            ("Port GUID", "Port GUID"),
            ("Link layer", "Link layer"),
        ] {
            assert_eq!(fact(&ours, our_name), fact(&ibstat, their_name), "{device}: {our_name}\n{text}");
        }
        let verbs = of(&verbs, &format!("hca_id:\t{device}\n"));
        assert!(fact(&verbs, "link_layer") == fact(&ours, "Link layer"), "{text}");
        assert!(fact(&verbs, "state").contains(fact(&ours, "State")), "{text}");
        #[cfg(feature = "verbs")]
        limits_agree(&ours, &verbs);
        let reason = fact(&ours, "Manageable");
        assert_eq!(reason, "no: its link layer is Ethernet (RoCE or iWARP needs no subnet manager)");
    }
    for (name, device) in [("run", "rxe0"), ("named", "rxe1"), ("discover", "rxe0")] {
        let said = part(name);
        assert!(
            said.contains("its link layer is Ethernet (RoCE or iWARP needs no subnet manager)"),
            "{said}"
        );
        assert!(said.contains(device) && said.contains("code 1") && !said.contains("panicked"), "{said}");
    }
}
