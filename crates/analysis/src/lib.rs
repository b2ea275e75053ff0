//! Captures of a run → the record of that run: what was sent, received, lost and delayed, slice by
//! slice.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod slices;

pub use slices::{AUTOMATIC_SLICES_MAX, AutomaticSlices, FlowName, SliceOfFlow, Slices, address};
