//! The data plane: classify, meter, queue and schedule, so that each slice gets its guarantee.
//!
//! It never reads a clock and never does I/O. Time comes in as an argument, frames as
//! [`Frame`] descriptors with the caller's handle; the simulator and the live gateway drive the
//! identical [`Pipeline`]. Nothing is allocated per packet.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod active_flows;
pub mod bucket;
mod build;
mod change;
mod classifier;
mod counters;
mod datapath;
mod elephants;
mod frame;
pub mod guaranteed;
pub mod hqos;
mod link_clock;
pub mod meter;
mod pipeline;
pub mod queue;
mod reallocation;
mod scheduler;
mod slice_flows;
mod slots;

pub use bucket::TokenBucket;
pub use build::{BuildError, PipelineParams};
pub use change::{
    Basis, Change, Conditioning, NewSlice, Prepared, Replaced, SliceChange, SliceChangeError,
    SliceChanged, Stale, Step,
};
pub use classifier::{Classifier, InsertError};
pub use counters::ClassCounters;
pub use elephants::{ElephantCounters, ElephantsSeen, FlowsChanged};
pub use frame::{Departure, DropReason, Dropped, Frame, FrameOwner, Verdict};
pub use link_clock::LinkClock;
pub use pipeline::Pipeline;
pub use reallocation::ReallocationLoop;
pub use slice_flows::{FlowsSeen, SliceFlows, Weighed};
pub use slicewise_wire::{Ecn, Headers, IpVersion, TrafficClass};
