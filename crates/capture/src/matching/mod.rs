//! Matches packets between the point where they were sent and the point where they were received.
//!
//! Two streams of sightings go in, results go to a [`MatchObserver`]: sent, received, lost (RFC
//! 7680), duplicated (RFC 5560), seen at the receiver only, or ambiguous. A [`Matcher`] holds the
//! packets of one time-out only, so memory does not grow with the captures. [`drive`] feeds it from two
//! sources in time order.

mod alignment;
mod direction;
mod drive;
mod index;
mod late;
mod matcher;
mod observer;
mod reordering;
mod sent_flows;
mod steps;
mod window;

#[cfg(test)]
mod tests;

pub use alignment::Alignment;
pub use direction::{
    DirectionCounts, DirectionFilter, DirectionProbe, FlowDirection, SplitBasis, WayCounts,
};
pub use drive::drive;
pub use matcher::{MatchParams, Matcher};
pub use observer::{AmbiguousGroup, MatchCounts, MatchObserver, SendOrder};
pub use reordering::{MOST_GAPS, Reordering, ReorderingTracker};
pub use steps::{JumpView, Shift};
