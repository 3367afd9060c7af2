//! The kernel's umad layer as a state machine without I/O: agents, transaction IDs, timeouts, retries, RMPP.
//!
//! The rules are those of `<rdma/ib_user_mad.h>`, the kernel's `Documentation/infiniband/user_mad.rst`, and what its
//! MAD layer is seen to do: which agent a datagram goes to, which error number a call gets, what a request looks like
//! that comes back unanswered. Costs per datagram are a few hash look-ups and one ordered insertion for the timeout.

mod agent;
mod files;
mod layout;
mod outgoing;
mod rmpp;

#[cfg(test)]
mod rmpp_tests;
#[cfg(test)]
mod tests;

pub use agent::{Registration, Services};
pub use files::{FileId, Files, Transmit};
