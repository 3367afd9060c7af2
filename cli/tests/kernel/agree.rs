//! The stock tools on the kernel's own umad, sysfs and issm.

use std::collections::BTreeSet;

use crate::fabric::Fabric;
use crate::tools::{must, tell, word_after};

/// ibstat, sminfo, smpquery and perfquery say the same as the kernel, from every host and of every host.
pub(crate) fn stock_tools_agree(fabric: &Fabric) {
    let lids: BTreeSet<u16> = fabric.hosts.iter().map(|host| host.lid()).collect();
    assert_eq!(lids.len(), fabric.hosts.len(), "each host has a LID of its own: {lids:?}");
    assert!(!lids.contains(&0));
    let manager = &fabric.hosts[0];
    let every = must("ibstat");
    for host in &fabric.hosts {
        let own = every.split_once(&format!("CA '{}'", host.device)).expect("ibstat lists it").1;
        assert_eq!(word_after(own, "State:"), "Active", "{every}");
        assert_eq!(word_after(own, "Base lid:"), host.lid().to_string(), "{every}");
        assert_eq!(word_after(own, "SM lid:"), manager.lid().to_string(), "{every}");
        assert_eq!(word_after(own, "Rate:"), "100", "{every}");
        assert_eq!(word_after(own, "Port GUID:"), host.guid, "{every}");

        // By the tables of the switches; there is nobody else at the manager's port but the manager.
        let text = must(&format!("sminfo -C {}", host.device));
        assert_eq!(word_after(&text, "sm lid"), manager.lid().to_string(), "{text}");
        assert!(text.contains("SMINFO_MASTER"), "{text}");

        let (from, lid) = (&fabric.hosts[fabric.hosts.len() - host.number].device, host.lid());
        let text = must(&format!("smpquery -C {from} nodedesc {lid}"));
        assert!(text.ends_with(&format!(".H{}\n", host.number)), "{text}");
        let text = must(&format!("smpquery -C {from} portinfo {lid} 1"));
        assert!(text.contains("LinkState:.......................Active"), "{text}");
        let text = must(&format!("perfquery -C {from} {lid} 1"));
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
