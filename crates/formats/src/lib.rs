//! Foreign configurations in and out.
//!
//! Each format is a module that turns text into the types of `slicewise-model`, or back. What a
//! format cannot say, and what this crate does not read, is an error that names it: nothing is
//! skipped or approximated in silence.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod dpdk;
mod error;
mod export;
mod flow;
pub mod ios;
mod json;
pub mod libreqos;
pub mod ovs;
pub mod p4_tins;
mod script;
pub mod tc;

pub use error::{ERRORS_MAX, ReadPolicy, SettingPlace, Span, TextError, TextNote};
pub use export::{ExportError, Inexpressible};
pub use flow::FLOWS_MAX;
