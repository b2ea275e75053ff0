//! Studies on real packets: hosts in network namespaces, real applications and senders of our own, a
//! device under test between them, and captures at both ends.
//!
//! [`Testbed`] is the back end; `docs/testbed.md` says what happens in a run and what must be true for it
//! to count.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod acceptance;
mod as_sent;
mod attempt;
mod backend;
mod baseline;
mod command;
mod device;
pub mod doctor;
mod error;
#[cfg(test)]
mod example;
mod hosts;
mod iperf3;
mod lease;
mod machine;
mod offered;
mod process;
mod scratch;
pub mod sender;
mod suitability;
pub mod swallow;
mod tcpdump;
mod workspace;

pub use backend::{Notice, Replay, Testbed};
pub use command::Tool;
pub use device::{DeviceKind, missing_features};
pub use lease::{Lease, LeaseError};
pub use suitability::check_sources;
pub use workspace::CAPTURE_NAMES;
