//! Studies on real packets: hosts in network namespaces, real applications and senders of our own, a
//! device under test between them, and captures at both ends.
//!
//! [`Testbed`] is the back end; `docs/testbed.md` describes a run and the conditions for accepting it.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod acceptance;
mod applications;
mod attempt;
mod backend;
mod baseline;
mod command;
mod congestion;
mod device;
pub mod doctor;
mod drain;
mod ends;
mod error;
#[cfg(test)]
mod example;
mod hosts;
mod iperf3;
pub mod lab;
mod lease;
mod machine;
mod offered;
mod process;
mod scratch;
mod send_times;
pub mod sender;
mod suitability;
mod tcpdump;
pub mod udp_sink;
mod workspace;

pub use backend::{Notice, Replay, Testbed};
pub use command::Tool;
pub use device::{DeviceKind, DpdkProgram, missing_features, supports};
pub use error::AttemptError;
pub use lease::{Lease, LeaseError};
pub use suitability::{Unsendable, UnsupportedSetting, check_sources};
pub use workspace::CAPTURE_NAMES;
