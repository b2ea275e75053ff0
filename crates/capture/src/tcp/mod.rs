//! TCP as seen at a point near the sender: retransmissions and round-trip times.

mod rtt;
mod segment;
mod tracker;

#[cfg(test)]
mod tests;

pub use rtt::RttFigures;
pub use segment::TcpSegment;
pub use tracker::{TcpFigures, TcpTracker};
