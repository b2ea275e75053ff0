//! Do the clocks of two points agree, and if not, how far are they apart?
//!
//! Between clocks, a packet shows the difference received − sent = offset + delay. Delay has a floor:
//! now and then a packet does not queue. If the floor of the differences slopes, the clocks drift; if it
//! is below zero, they disagree.

mod estimate;
mod floor;

#[cfg(test)]
mod tests;

pub use estimate::{ClockEstimate, ClockMethod, ClockReport, ClockVerdict};
pub use floor::DelayFloor;
