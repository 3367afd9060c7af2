//! A multicast group of an application: joined with a plain socket option, by the kernel through IPoIB with the SA.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::INSIDE;
use crate::fabric::{Fabric, Host};
use crate::ipoib::{addresses, namespace};
use crate::tools::{tell, wait_for};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 7, 7, 7);
const PORT: u16 = 7777;
/// Datagrams that are sent once the group is there.
const DATAGRAMS: u32 = 20;

/// What runs on a host: `member ADDRESS` receives until it is killed and says of each datagram what was in it; `sender ADDRESS`
/// sends what its standard input says, line by line.
#[expect(clippy::print_stdout, reason = "its parent reads it")]
pub(crate) fn program(words: &str) {
    let (role, address) = words.split_once(' ').expect("role and address");
    let own: Ipv4Addr = address.parse().expect("an address");
    if role == "sender" {
        let socket = UdpSocket::bind((own, 0)).expect("bind");
        for line in std::io::stdin().lines().map_while(Result::ok) {
            socket.send_to(line.as_bytes(), (GROUP, PORT)).expect("send");
        }
        return;
    }
    // Bound to the group's address, a socket gets nothing else.
    let socket =
        UdpSocket::bind((if role == "member" { GROUP } else { Ipv4Addr::UNSPECIFIED }, PORT)).expect("bind");
    if role == "member" {
        socket.join_multicast_v4(&GROUP, &own).expect("join");
    }
    println!("ready");
    let mut buffer = [0; 100];
    while let Ok(len) = socket.recv(&mut buffer) {
        println!("{}", String::from_utf8_lossy(&buffer[..len]));
    }
}

fn start(role: &str, host: &Host) -> Child {
    let this = std::env::current_exe().expect("path of this program");
    let test = std::thread::current().name().expect("a test's thread has its name").to_owned();
    let mut command = Command::new("/bin/ip");
    command.args(["netns", "exec", &namespace(host)]).arg(this).args(["--exact", &test, "--nocapture"]);
    command.env(INSIDE, format!("group {role} {}", addresses(host)[0]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program on a host")
}

/// Three hosts join, all listen, two send (one of them no member): the members get it and nobody else's port does.
pub(crate) fn only_members_receive(fabric: &Fabric) {
    let is_member = |host: &Host| [2, 5, 8].contains(&host.number);
    let mut receivers: Vec<(usize, Receiver)> = Vec::new();
    for host in &fabric.hosts {
        let role = if is_member(host) { "member" } else { "bystander" };
        receivers.push((host.number, Receiver::new(start(role, host))));
    }
    for (from, word) in [(&fabric.hosts[1], "inside"), (&fabric.hosts[2], "outside")] {
        let mut sender = start("sender", from);
        let mut input = sender.stdin.take().expect("piped");
        let mut send = |text: &str| {
            use std::io::Write;
            writeln!(input, "{text}").expect("write");
        };
        // The first ones may come while the kernel still joins.
        let members: Vec<usize> =
            fabric.hosts.iter().filter(|host| is_member(host)).map(|h| h.number).collect();
        wait_for("the group", || {
            send(&format!("{word} first"));
            let got = |number: &usize| receivers[number - 1].1.count(&format!("{word} first")) > 0;
            if members.iter().all(got) { Ok(()) } else { Err("not all members have it".into()) }
        });
        let before: Vec<u64> = fabric.hosts.iter().map(multicast_received).collect();
        for number in 0..DATAGRAMS {
            send(&format!("{word} {number}"));
            std::thread::sleep(Duration::from_millis(5));
        }
        wait_for("all datagrams", || {
            let last = format!("{word} {}", DATAGRAMS - 1);
            let got = |number: &usize| receivers[number - 1].1.count(&last) > 0;
            if members.iter().all(got) { Ok(()) } else { Err("not all members have the last one".into()) }
        });
        for (host, before) in fabric.hosts.iter().zip(before) {
            let receiver = &receivers[host.number - 1].1;
            for number in 0..DATAGRAMS {
                let count = receiver.count(&format!("{word} {number}"));
                assert_eq!(count, u32::from(is_member(host)), "H{} of {word} {number}", host.number);
            }
            // No switch has sent it there either.
            let came = multicast_received(host) - before;
            if is_member(host) && host.number != from.number {
                assert!(came >= u64::from(DATAGRAMS), "H{}: {came}", host.number);
            } else {
                assert!(came < u64::from(DATAGRAMS), "H{}: {came}", host.number);
            }
        }
        drop(input);
        sender.wait().expect("the sender");
    }
    tell("only members receive");
}

/// Multicast packets that the fabric has brought to a host's port.
fn multicast_received(host: &Host) -> u64 {
    host.port("counters/multicast_rcv_packets").parse().expect("a counter")
}

/// A receiving program, and what it has printed so far.
struct Receiver {
    child: Child,
    lines: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Receiver {
    fn new(mut child: Child) -> Self {
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (output, into) = (child.stdout.take().expect("piped"), std::sync::Arc::clone(&lines));
        std::thread::spawn(move || {
            use std::io::BufRead;
            for line in std::io::BufReader::new(output).lines().map_while(Result::ok) {
                into.lock().expect("lines").push(line);
            }
        });
        let receiver = Self { child, lines };
        // The test harness prints the test's name before it.
        wait_for("a receiver", || {
            let lines = receiver.lines.lock().expect("lines");
            if lines.iter().any(|line| line.ends_with("ready")) { Ok(()) } else { Err(format!("{lines:?}")) }
        });
        receiver
    }

    fn count(&self, line: &str) -> u32 {
        self.lines.lock().expect("lines").iter().filter(|one| *one == line).count() as u32
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
