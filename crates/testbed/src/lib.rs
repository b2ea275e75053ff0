//! Studies on real packets: hosts in network namespaces, real applications and senders of our own, a
//! device under test between them, and captures at both ends.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod sender;
pub mod swallow;
