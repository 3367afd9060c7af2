use std::fs::OpenOptions;
use std::process::Stdio;

use crate::rsm::{command, rsm};

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child =
        command(&["config", "show"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rsm");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("rsm ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_full_disk_is_one() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = command(&["config", "show"]).stdout(full).output().expect("rsm");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("rsm: standard output: No space left"));
}

#[test]
fn help_of_every_command_names_its_flags() {
    for (command, flags) in [
        (
            "run",
            "--config --device --port --guid --once --priority --engine --state-dir --log-level --json --capture",
        ),
        ("plan", "--config --device --port --guid --engine --json"),
        ("discover", "--device --port --guid --format"),
        ("query", "--device --port --sm-key --json --raw"),
        ("devices", "--json"),
        ("demo", "--log-level"),
    ] {
        let help = rsm(&[command, "--help"]);
        assert_eq!(help.code, Some(0));
        for flag in flags.split(' ') {
            assert!(help.out.contains(flag), "`rsm {command} --help` does not name {flag}");
        }
    }
}
