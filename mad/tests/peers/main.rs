//! Tests of the umad transport against programs that are not ours: the fabric simulator ibsim (Debian packages
//! `ibsim-utils` and `libumad2sim0`). A missing package fails the test.
//!
//! ibsim's preload library stands in for the kernel in the process that it is loaded into, so each test starts
//! itself once more as a child with `LD_PRELOAD` set; the child does the work and the parent judges its output.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod ibsim;
mod umad;
