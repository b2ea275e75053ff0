//! Captures in, matched packets out: for any testbed that captured at the two ends of a path.
//!
//! A measuring point is one place where packets were captured: one file, several rotated ones, or one
//! per network interface. Its record of a packet is a [`Sighting`]; packets are matched between two
//! points by the key of their sightings.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
mod error;
mod file;
pub mod matching;
mod point;
mod run_mark;
mod sighting;
pub mod store;
pub mod tcp;
pub mod write;

pub use error::{CaptureError, Incomplete};
pub use file::{
    Backwards, CaptureFile, CapturedPacket, FileFacts, Interface, MOST_CAPTURED_BYTES, Progress,
    TimeFacts, WrongStamp,
};
pub use point::{
    FlowTable, Jump, KeyBytes, LAST_KEY_BYTES, MOST_KEY_BYTES, MOST_WRONG_STAMPS, PacketCounts,
    Point, PointFacts, SORT_WINDOW_NS, UnreadFrames,
};
pub use run_mark::RunMark;
pub use sighting::{Direction, Sighting};
pub use tcp::TcpSegment;
