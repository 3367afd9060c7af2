//! Running programs, and waiting for what must come.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that has to happen. The machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a line of the shell; whether it was successful, and what it printed.
pub(crate) fn shell(line: &str) -> (bool, String) {
    let output = Command::new("sh").args(["-c", line]).stdin(Stdio::null()).output().expect("sh");
    let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    (output.status.success(), text)
}

/// Runs a line of the shell that must be successful.
pub(crate) fn must(line: &str) -> String {
    let (ok, text) = shell(line);
    assert!(ok, "{line}: {text}");
    text
}

/// A file's text without the end of line; empty where there is none.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Asks until there is an answer; says what was waited for when none comes.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(why) => assert!(start.elapsed() < PATIENCE, "{what}: {why}"),
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// The word behind the first place where a text has `key`.
pub(crate) fn word_after<'a>(text: &'a str, key: &str) -> &'a str {
    let behind = text.split_once(key).map_or("", |(_, behind)| behind);
    behind.split_whitespace().next().unwrap_or("")
}

/// Tells how far a test has come, in a machine of which nothing else is seen.
pub(crate) fn tell(what: &str) {
    print(&format!("{}: {what}", word_after(&read("/proc/uptime"), "")));
}

/// Prints a line.
#[expect(clippy::print_stdout, reason = "shown when the test fails, or to who asks for it")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}
