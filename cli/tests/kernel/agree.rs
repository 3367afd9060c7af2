//! The stock tools on the kernel's own umad, sysfs and issm.

use std::collections::BTreeSet;

use crate::fabric::{Fabric, Host};
use crate::ipoib::{addresses, namespace};
use crate::tools::{must, tell, wait_for, word_after};

/// ibstat, sminfo, smpquery and perfquery say the same as the kernel, from every host and of every host.
pub(crate) fn stock_tools_agree(fabric: &Fabric) {
    let lids: BTreeSet<u16> = fabric.hosts.iter().map(|host| host.lid()).collect();
    assert_eq!(lids.len(), fabric.hosts.len(), "each host has a LID of its own: {lids:?}");
    assert!(!lids.contains(&0));
    let manager = &fabric.hosts[0];
    let every = must("ibstat");
    for host in &fabric.hosts {
        let own = every.split_once(&format!("CA '{}'", host.device)).expect("ibstat lists it").1;
        let own = own.split_once(&format!("Port {}:", host.port_number)).expect("and its port").1;
        assert_eq!(word_after(own, "State:"), "Active", "{every}");
        assert_eq!(word_after(own, "Base lid:"), host.lid().to_string(), "{every}");
        assert_eq!(word_after(own, "SM lid:"), manager.lid().to_string(), "{every}");
        assert_eq!(word_after(own, "Rate:"), "100", "{every}");
        assert_eq!(word_after(own, "Port GUID:"), host.guid, "{every}");

        // By the tables of the switches; there is nobody else at the manager's port but the manager.
        // A manager that was stopped for long, as where others use the processors, is not master for a moment.
        wait_for("sminfo names the master", || {
            let text = must(&format!("sminfo {}", host.options()));
            let right =
                word_after(&text, "sm lid") == manager.lid().to_string() && text.contains("SMINFO_MASTER");
            if right { Ok(()) } else { Err(text) }
        });

        let (from, lid) = (fabric.hosts[fabric.hosts.len() - host.number].options(), host.lid());
        let text = must(&format!("smpquery {from} nodedesc {lid}"));
        assert!(text.ends_with(&format!(".H{}\n", host.adapter)), "{text}");
        let text = must(&format!("smpquery {from} portinfo {lid} {}", host.port_number));
        assert!(text.contains("LinkState:.......................Active"), "{text}");
        let text = must(&format!("perfquery {from} {lid} {}", host.port_number));
        let counted = text.lines().find(|line| line.starts_with("PortXmitPkts")).expect("a counter");
        let counted: u64 = counted.rsplit('.').next().and_then(|text| text.parse().ok()).expect("a number");
        // The kernel asks for the same counter itself, by way of the adapter's own agents.
        let own: u64 = host.port("counters/port_xmit_packets").parse().expect("a number");
        assert!(counted > 0 && own >= counted, "{own} {text}");
    }
    // By directed route: the own port, then the leaf.
    let own = must(&format!("smpquery -C {} -D nodedesc 0", manager.device));
    assert!(own.ends_with(".H1\n"), "{own}");
    let leaf = must(&format!("smpquery -C {} -D nodedesc 0,1", manager.device));
    assert!(leaf.ends_with(".L1\n"), "{leaf}");
    // The manager's port is known as one, to the kernel as to the fabric.
    let is_sm = |mask: &str| u32::from_str_radix(mask.trim_start_matches("0x"), 16).unwrap_or(0) & 2 != 0;
    assert!(is_sm(&manager.port("cap_mask")), "{}", manager.port("cap_mask"));
    assert!(!is_sm(&fabric.hosts[1].port("cap_mask")));
    tell("stock tools agree");
}

/// The counters of both ends move with what is sent, packets and data, and can be cleared.
pub(crate) fn counters_move_with_traffic(fabric: &Fabric) {
    let (from, to) = (&fabric.hosts[1], &fabric.hosts[4]);
    let pings: u64 = 20;
    let counters = |host: &Host| {
        let text = must(&format!("perfquery {} {} {}", from.options(), host.lid(), host.port_number));
        ["PortXmitPkts:", "PortXmitData:", "PortRcvPkts:", "PortRcvData:"].map(|name| counter(&text, name))
    };
    let before = [counters(from), counters(to)];
    let address = &addresses(to)[0];
    must(&format!("/bin/ip netns exec {} ping -c {pings} -i 0.05 -s 1000 {address}", namespace(from)));
    let after = [counters(from), counters(to)];
    for (host, (before, after)) in [from, to].iter().zip(before.iter().zip(after)) {
        // Data is counted in words of four bytes. There is little traffic beside this.
        for (at, least) in [pings, pings * 1000 / 4, pings, pings * 1000 / 4].into_iter().enumerate() {
            let moved = after[at].wrapping_sub(before[at]);
            assert!((least..least * 10).contains(&moved), "H{}: {before:?}, then {after:?}", host.number);
        }
    }
    must(&format!("perfquery {} -R {} {}", from.options(), to.lid(), to.port_number));
    let cleared = counters(to);
    assert!((0..4).all(|at| cleared[at] < after[1][at]), "{cleared:?}");
    tell("counters move with traffic");
}

/// A value of what a stock tool prints, dots before it.
pub(crate) fn counter(text: &str, name: &str) -> u64 {
    let value = word_after(text, name).trim_start_matches('.');
    value.parse().unwrap_or_else(|_| panic!("{name} in {text}"))
}
