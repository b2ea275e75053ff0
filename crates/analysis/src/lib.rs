//! Captures of a run → the record of that run: what was sent, received, lost and delayed, slice by
//! slice.
//!
//! Packets are assigned to slices by class maps, as in a study, or by VLAN and flow. What a capture
//! cannot show (which of two equal packets arrived, how far two clocks are apart) is counted and
//! reported, never guessed. `docs/captures.md` describes what is measured and how.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analyse;
mod changed;
mod clocks;
mod connections;
mod describe;
mod ends;
mod feed;
mod flows;
mod hops;
mod offload;
mod params;
mod pass;
mod recorder;
mod slices;
mod ways;

pub use analyse::{MOST_FLOW_RECORDS, analyse};
pub use changed::ChangedFlows;
pub use offload::SplitFlow;
pub use params::{AnalysisError, AnalysisParams, MatchedSlice, RunLength, SliceRule};
pub use pass::Watch;
pub use recorder::{PacketFate, PacketSink, assured_forwarding_colour};
pub use slices::{AUTOMATIC_SLICES_MAX, AutomaticSlices, FlowName, SliceOfFlow, Slices, address};
