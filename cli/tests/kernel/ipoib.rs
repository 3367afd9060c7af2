//! IPoIB of the kernel: each host's interface in a network namespace of its own.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use crate::fabric::{Fabric, Host};
use crate::tools::{must, read, shell, tell, wait_for, word_after};

/// The namespace of a host.
pub(crate) fn namespace(host: &Host) -> String {
    format!("h{}", host.number)
}

/// Its addresses.
pub(crate) fn addresses(host: &Host) -> [String; 2] {
    [format!("10.9.0.{}", host.number), format!("fd09::{}", host.number)]
}

/// Moves each host's interface into its namespace and sets it up.
pub(crate) fn configure(fabric: &Fabric) {
    must("mkdir -p /run/netns");
    let interfaces = must("ls /sys/class/net");
    let mut script = String::new();
    for host in &fabric.hosts {
        // The link layer address ends in the port GUID.
        let guid: Vec<&str> = host.guid.trim_start_matches("0x").as_bytes().chunks(2).map(text).collect();
        let ours = |name: &&str| read(&format!("/sys/class/net/{name}/address")).ends_with(&guid.join(":"));
        let interface = interfaces.split_whitespace().find(ours).expect("each adapter has an interface");
        let (space, [v4, v6]) = (namespace(host), addresses(host));
        let _ = writeln!(
            script,
            "/bin/ip netns add {space} && /bin/ip link set {interface} netns {space} name ib"
        );
        let _ = writeln!(
            script,
            "/bin/ip -n {space} addr add {v4}/24 dev ib && /bin/ip -n {space} addr add {v6}/64 dev ib nodad"
        );
        let _ = writeln!(
            script,
            "/bin/ip -n {space} link set lo up && /bin/ip -n {space} link set ib up || exit 1"
        );
    }
    must(&script);
    for host in &fabric.hosts {
        wait_for_broadcast_group(host);
    }
    tell("IPoIB is up");
}

/// The number of the queue pair that IPoIB of a host has; its link layer address begins with it.
pub(crate) fn queue_pair(host: &Host) -> u32 {
    let text = must(&format!("/bin/ip -n {} link show ib", namespace(host)));
    let address = word_after(&text, "link/infiniband");
    let number: String = address.split(':').skip(1).take(3).collect();
    u32::from_str_radix(&number, 16).unwrap_or_else(|_| panic!("{text}"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Waits until IPoIB has joined its broadcast group: only then does the interface run.
pub(crate) fn wait_for_broadcast_group(host: &Host) {
    wait_for(&format!("IPoIB of H{} runs", host.number), || {
        let text = must(&format!("/bin/ip -n {} link show ib", namespace(host)));
        if text.contains("LOWER_UP") { Ok(()) } else { Err(text) }
    });
}

/// Pings every host from every host, over IPv4 and IPv6.
pub(crate) fn every_pair_pings(fabric: &Fabric) {
    for host in &fabric.hosts {
        pings(host, &fabric.hosts);
    }
    tell("every pair pings");
}

/// Pings all of these hosts from one, at once, until each has answered. The first packets may be lost: the kernel keeps only a
/// few while it asks for addresses and paths, and asks for those again only after a while.
pub(crate) fn pings(from: &Host, to: &[Host]) {
    let mut script = String::new();
    for address in to.iter().flat_map(addresses) {
        let _ = writeln!(
            script,
            "(for i in $(seq 20); do ping -c 1 -W 2 {address} >/dev/null && exit; done; echo H{} finds no {address}) &",
            from.number
        );
    }
    script += "wait\n";
    let (_, lost) = shell(&format!("/bin/ip netns exec {} sh -c '{script}'", namespace(from)));
    assert_eq!(lost, "");
}

/// Takes the cable of a host away and brings it back: the manager makes its port active again, IPoIB joins its groups again.
pub(crate) fn a_host_that_was_away_is_back(fabric: &Fabric) {
    let host = &fabric.hosts[5];
    Fabric::console(&format!("Unlink \"H{}\"", host.number));
    host.wait_for_state("DOWN");
    let lost = shell(&format!("/bin/ip netns exec h2 ping -c 1 -W 1 {}", addresses(host)[0]));
    assert!(!lost.0, "{}", lost.1);
    Fabric::console(&format!("ReLink \"H{}\"", host.number));
    host.wait_for_state("ACTIVE");
    wait_for_broadcast_group(host);
    pings(host, &fabric.hosts);
    pings(&fabric.hosts[1], &fabric.hosts);
    tell("a host that was away is back");
}

/// Pings that go on while something happens.
pub(crate) struct Pings(Vec<Child>);

/// What became of pings.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Requests that were sent.
    pub(crate) sent: usize,
    /// Requests without an answer.
    pub(crate) lost: usize,
    /// Which those were: the end of the ping's command line, and numbers from 0 on, one a second.
    pub(crate) which: Vec<(String, Vec<usize>)>,
}

impl Pings {
    /// From each host to the next, over both protocols, one a second each.
    pub(crate) fn start(hosts: &[Host]) -> Self {
        let mut children = Vec::new();
        for (from, to) in hosts.iter().zip(hosts.iter().cycle().skip(1)) {
            for address in addresses(to) {
                let mut command = Command::new("/bin/ip");
                command.args(["netns", "exec", &namespace(from), "ping", "-W", "2", &address]);
                children.push(command.stdout(Stdio::piped()).spawn().expect("ping"));
            }
        }
        Self(children)
    }

    /// Ends them, whatever they say.
    pub(crate) fn kill(self) {
        for mut child in self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends them. An answer may be under way at the end: the last request of each ping does not count.
    pub(crate) fn stop(self) -> Lost {
        let mut all = Lost::default();
        for child in self.0 {
            must(&format!("kill -INT {}", child.id()));
            let output = child.wait_with_output().expect("ping");
            let text = String::from_utf8_lossy(&output.stdout);
            let summary = text.lines().find(|line| line.contains("packets transmitted")).expect("a summary");
            let sent: usize = word_after(summary, "").parse().expect("a number");
            let answered: Vec<usize> =
                text.lines().filter_map(|line| word_after(line, "seq=").parse().ok()).collect();
            let lost: Vec<usize> =
                (0..sent.saturating_sub(1)).filter(|number| !answered.contains(number)).collect();
            all.sent += sent;
            all.lost += lost.len();
            if !lost.is_empty() {
                all.which.push((text.lines().next().unwrap_or_default().to_owned(), lost));
            }
        }
        all
    }
}
