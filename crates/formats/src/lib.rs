//! Foreign configurations in and out.
//!
//! Each format is a module that turns text into the types of `slicewise-model`, or back. What a
//! format cannot say, and what this crate does not read, is an error that names it: nothing is
//! skipped or approximated in silence.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ios;
pub mod tc;
