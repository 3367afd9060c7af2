//! A program that runs on a node: started, looked at, ended.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a program may take before it counts as hung. Generous: the machine is shared.
pub(crate) const LIMIT: Duration = Duration::from_secs(240);

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) program: String,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
}

impl Said {
    /// The output of a program that must succeed.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{} failed\n{}\n{}", self.program, self.out, self.err);
        self.out
    }
}

/// A program that is still running.
pub(crate) struct Running {
    program: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
        let (out, err) = (folder.join("out"), folder.join("err"));
        let program = format!("{command:?}").split("\" \"").skip(1).collect::<Vec<_>>().join(" ");
        let program = format!("{} {program}", command.get_program().to_string_lossy());
        let child = command
            .stdout(File::create(&out).expect("out"))
            .stderr(File::create(&err).expect("err"))
            .spawn()
            .unwrap_or_else(|e| {
                panic!("{program}: {e}; the README's second command installs what tests need")
            });
        Self { program, child, out, err }
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).expect("out")).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).expect("err")).into_owned()
    }

    /// Whether it still runs.
    pub(crate) fn alive(&mut self) -> bool {
        self.child.try_wait().expect("state of a child").is_none()
    }

    /// Sends a signal: `TERM`, `HUP`, …
    pub(crate) fn signal(&self, name: &str) {
        // The child is ours and not yet waited for, so the id is still its own.
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(sent.expect("sh").success(), "signal {name}");
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Said {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("state of a child") {
                return Said {
                    program: self.program.clone(),
                    out: self.out(),
                    err: self.err(),
                    code: status.code(),
                };
            }
            assert!(Instant::now() < end, "{} hangs\n{}\n{}", self.program, self.out(), self.err());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM, then its end.
    pub(crate) fn stop(self) -> Said {
        self.signal("TERM");
        self.finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition, without a say on how fast it comes.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    wait_until_or_tell(what, condition, String::new);
}

/// The same; when it is given up, what is `known` besides is told.
pub(crate) fn wait_until_or_tell(what: &str, condition: impl Fn() -> bool, known: impl Fn() -> String) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "gave up waiting until {what}\n{}", known());
        std::thread::sleep(Duration::from_millis(20));
    }
}
