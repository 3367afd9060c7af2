//! The umad transport on a real Linux kernel: in a virtual machine with Soft-RoCE devices, which have queue
//! pair 1 only. `simulations/kernel/vm.sh` says what it needs; what is missing fails the test.
//!
//! The test starts itself once more inside the machine, where it does the work. One boot serves all checks.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod checks;

use std::process::Command;

/// Set inside the machine.
const INSIDE: &str = "RSM_TEST_IN_VM";

#[test]
fn umad_on_a_real_kernel() {
    match std::env::var(INSIDE).as_deref() {
        Ok("nobody") => return checks::an_ordinary_user_is_told(),
        Ok(_) => return checks::all(),
        Err(_) => {}
    }
    let this = std::env::current_exe().unwrap();
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../simulations/kernel/vm.sh"))
        .args(["-f", &format!("{}=/bin/rsm-test", this.display()), "--", "env", &format!("{INSIDE}=1")])
        .args(["rsm-test", "--exact", "umad_on_a_real_kernel", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{}: {text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
