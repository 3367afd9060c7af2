//! Adapters that go, and their module with them, while everything uses them.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::fabric::Fabric;
use crate::ipoib::{Pings, namespace};
use crate::manager::Manager;
use crate::tools::{must, read, shell, tell, wait_for};

/// What the kernel says when something is wrong with itself.
const COMPLAINTS: [&str; 9] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "general protection",
    "refcount",
    "waiting for",
    "blocked for more than",
    "leak",
    "were not freed",
];

/// All that the kernel has complained of since its start.
pub(crate) fn the_kernel_is_well() {
    let log = shell("dmesg").1;
    let complaints: Vec<&str> =
        log.lines().filter(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint))).collect();
    assert!(complaints.is_empty(), "{complaints:#?}\n{log}");
}

/// In use the module stays. When the emulator dies under pings, MADs and a running subnet manager, all adapters go, and the
/// module can go at once; it counts what it has allocated and complains of what is left. It can come again.
pub(crate) fn the_module_goes_under_traffic(fabric: &mut Fabric, mut managers: [Manager; 2]) {
    let pings = Pings::start(&fabric.hosts);
    let queries = fabric.hosts.iter().map(|host| {
        let options = host.options();
        let line = format!(
            "while :; do perfquery {options}; smpquery {options} -D nodeinfo 0,1; smpquery {options} nodedesc {}; done",
            fabric.hosts[0].lid()
        );
        Command::new("sh").args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh")
    });
    let queries: Vec<_> = queries.collect();
    thread::sleep(Duration::from_secs(1));
    let (removed, said) = shell("rmmod vib");
    assert!(!removed, "the module is in use: {said}");
    fabric.kill();
    wait_for("the module goes", || {
        let (removed, said) = shell("rmmod vib");
        if removed { Ok(()) } else { Err(said) }
    });
    assert_eq!(must("ls /sys/class/infiniband"), "");
    assert!(!shell("ls /dev/vib").0);
    for host in &fabric.hosts {
        let (there, said) = shell(&format!("/bin/ip -n {} link show ib", namespace(host)));
        assert!(!there, "{said}");
    }
    for manager in &mut managers {
        let status = manager.wait_for_end();
        assert!(!status.success(), "{status}: {}", manager.said());
    }
    for mut query in queries {
        let _ = query.kill();
        let _ = query.wait();
    }
    pings.kill();
    must("insmod /modules/*-vib.ko");
    assert!(read("/proc/modules").contains("vib "));
    must("rmmod vib");
    the_kernel_is_well();
    tell("the module goes under traffic");
}
