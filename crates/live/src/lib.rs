//! The live gateway: the data plane with real packets, on Linux.
//!
//! [`Engine`] forwards between two [`Port`]s and depends neither on their kind nor on the real clock;
//! [`gateway::run`] gives it interfaces ([`af_xdp`], [`af_packet`]), the clock, and a thread. Around it,
//! [`sys`] and [`tagging`] do for the hosts of a testbed what the kernel must do. This is the only crate
//! with unsafe code: it talks to the kernel through shared memory.

#![deny(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod af_packet;
pub mod af_xdp;
pub mod awake;
mod bpf;
pub mod engine;
pub mod frame_memory;
pub mod gateway;
pub mod histogram;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod patch;
pub mod port;
pub mod sys;
pub mod tagging;

pub use engine::{Clock, DirectionParams, Engine, EngineError, EngineParams};
pub use port::Port;
