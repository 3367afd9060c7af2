//! Precedence of the threads that others wait for.

/// As much above the others as a thread may be without keeping them from their work.
const ABOVE: i32 = -5;

/// Has the calling thread run before the others, so that no plan under way keeps anybody waiting for an answer. Without the
/// right to (`CAP_SYS_NICE`) all stays as it was.
///
/// Linux gives each thread a nice value of its own: 0 names the calling one.
pub(super) fn run_before_others() {
    if let Err(errno) = rustix::process::setpriority_process(None, ABOVE) {
        tracing::debug!(%errno, "answers get no precedence over plans");
    }
}
