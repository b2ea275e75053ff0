//! Integration tests of the command on real packets, and what it refuses before it sends any.
//!
//! A binary of its own: other tests would compete with the packets for the processors.
#![cfg(feature = "linux")]
#![allow(clippy::unwrap_used)]

mod bench;
mod hosts;
mod lab;
mod live_applications;
mod live_dpdk;
mod live_faults;
mod live_refusals;
mod live_run;
#[path = "../it/support/mod.rs"]
mod support;
mod testbed_captures;
