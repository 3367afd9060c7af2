//! A real kernel on the emulated fabric, in a virtual machine: eight hosts of a tree of two levels are adapters of the kernel
//! (module `simulations/kernel`), with its umad, its SA client and its IPoIB. rsm manages the fabric, and in a second run opensm
//! does, under the same checks. `simulations/kernel/vm.sh` and `build.sh` say what they need; what is missing fails the test.
//!
//! A test starts itself once more inside the machine, where it does the work. One boot serves all checks of a manager.
//! `benches/kernel.sh` prints how many pings a change of managers has cost.

mod agree;
mod fabric;
mod failure;
mod group;
mod ipoib;
mod keys;
mod manager;
mod removal;
mod tools;

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use fabric::Fabric;
use manager::{Kind, Manager};

/// Set inside the machine; to `group …` in a program of [`group`].
const INSIDE: &str = "RSM_TEST_IN_VM";

#[test]
fn rsm_manages_kernel_adapters() {
    match std::env::var(INSIDE) {
        Ok(words) => inside(&words, Kind::Rsm),
        Err(_) => boot("rsm_manages_kernel_adapters"),
    }
}

#[test]
fn opensm_manages_kernel_adapters() {
    match std::env::var(INSIDE) {
        Ok(words) => inside(&words, Kind::Opensm),
        Err(_) => boot("opensm_manages_kernel_adapters"),
    }
}

/// All that is seen of one manager.
fn inside(words: &str, kind: Kind) {
    if let Some(words) = words.strip_prefix("group ") {
        return group::program(words);
    }
    let mut fabric = Fabric::start();
    let mut manager = Manager::start(kind, &fabric.hosts[0]);
    fabric.wait_until_active();
    agree::stock_tools_agree(&fabric);
    ipoib::configure(&fabric);
    ipoib::every_pair_pings(&fabric);
    agree::counters_move_with_traffic(&fabric);
    keys::packets_with_wrong_keys_are_dropped(&fabric);
    group::only_members_receive(&fabric);
    if kind == Kind::Rsm {
        failure::a_restart_is_not_felt(&fabric, &mut manager);
    }
    ipoib::a_host_that_was_away_is_back(&fabric);
    let managers = failure::takeovers_are_not_felt(&fabric, manager);
    if kind == Kind::Rsm {
        removal::the_module_goes_under_traffic(&mut fabric, managers);
    } else {
        removal::the_kernel_is_well();
    }
}

/// Runs the test of this name in the machine, and tells what a change of managers cost there; one machine at a time, each has use for all processors.
fn boot(test: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let text = |output: &std::process::Output| {
        [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).join("\n")
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../simulations/kernel");
    let built = Command::new(format!("{folder}/build.sh")).output().expect("build.sh");
    assert!(built.status.success(), "{}", text(&built));
    let module = String::from_utf8_lossy(&built.stdout).trim().to_owned();
    let this = std::env::current_exe().expect("path of this program");
    let mut machine = Command::new(format!("{folder}/vm.sh"));
    // Patience for when others use the processors too.
    machine.args(["-t", "600"]);
    machine.args(["-m", "ib_ipoib", "-m", &module, "-f", &format!("{}=/bin/rsm-test", this.display())]);
    machine.args(["-f", env!("CARGO_BIN_EXE_rsm")]);
    machine.args(["-f", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/tree.net=/tree.net")]);
    for tool in ["ibstat", "sminfo", "smpquery", "perfquery", "opensm"] {
        machine.args(["-f", &format!("/usr/sbin/{tool}")]);
    }
    machine.args(["--", "env", &format!("{INSIDE}=1"), "RUST_BACKTRACE=1"]);
    machine.args(["rsm-test", "--exact", test, "--nocapture", "--test-threads=1"]);
    let output = machine.output().expect("vm.sh");
    let said = text(&output);
    assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", output.status);
    said.lines().filter(|line| line.contains("pings lost")).for_each(tools::print);
}
