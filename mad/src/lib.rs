//! InfiniBand management datagrams (MADs): wire formats, transports, the transaction engine and RMPP.
//!
//! Knows nothing of subnets: what a datagram *is* lives here, what a subnet manager *wants* lives in `sm-core`.
//!
//! - [`types`]: newtypes for the field's quantities (GUID, LID, P_Key, link speed, …).
//! - [`wire`]: one type per attribute, named as the InfiniBand Architecture Specification names it.
//! - [`rmpp`]: messages of several datagrams, with windows and acknowledgements.
//! - [`sa_client`]: queries of subnet administration, tables of any length.
//! - [`transactions`]: windows, repetitions and matching of requests and answers.
//! - [`transport`]: how datagrams leave and reach this process.
#![deny(unsafe_code)]

pub mod rmpp;
pub mod sa_client;
pub mod transactions;
pub mod transport;
pub mod types;
#[cfg(feature = "verbs")]
pub mod verbs;
pub mod wire;
