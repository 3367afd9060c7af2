//! Precedence of the threads that others wait for.

use rustix::process::{getpriority_process, setpriority_process};

/// How far above the others: enough to have the processor when something comes, too little to keep it from them.
const ABOVE: i32 = -5;

/// The lowest nice value that there is.
const LEAST: i32 = -20;

/// Has the calling thread run before the others, so that no plan under way keeps anybody waiting for an answer. Without the
/// right to (`CAP_SYS_NICE`) all stays as it was.
///
/// Linux gives each thread a nice value of its own: 0 names the calling one.
pub(super) fn run_before_others() {
    let raised =
        getpriority_process(None).and_then(|nice| setpriority_process(None, (nice + ABOVE).max(LEAST)));
    if let Err(errno) = raised {
        tracing::debug!(%errno, "answers get no precedence over plans");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread, and no other: with the right to, its value is lower than before, else the same.
    #[test]
    fn a_thread_is_raised_from_where_it_was_and_the_others_stay() {
        let own = getpriority_process(None).unwrap();
        let of_thread = std::thread::spawn(|| {
            run_before_others();
            getpriority_process(None).unwrap()
        });
        let of_thread = of_thread.join().unwrap();
        assert!([own, (own + ABOVE).max(LEAST)].contains(&of_thread), "{own} {of_thread}");
        assert_eq!(getpriority_process(None).unwrap(), own);
    }
}
