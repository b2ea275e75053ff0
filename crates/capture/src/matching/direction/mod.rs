//! Which way flows go: a capture at the sender holds the packets coming back, too.
//!
//! Evidence about a packet seen at both points, best first:
//!
//! 1. **Time to live**: no router raises it, so it is lower at the far end.
//! 2. **The flow with addresses and ports swapped**: received − sent is offset + delay of packets that
//!    go forward, offset − delay of those that go back. Whatever the clocks say, the flow with the larger
//!    difference goes forward.
//! 3. **Capture direction**: out of the host at the sending point and into the host at the receiving one
//!    is forward. (In and out again is not backward: a router's own interfaces look like that.)
//! 4. **Time order** against where the clocks are split, see [`DirectionProbe`].
//!
//! Otherwise a flow goes as the user said, forward; how many do is counted.

mod filter;
mod probe;

#[cfg(test)]
mod tests;

pub use filter::{DirectionCounts, DirectionFilter, WayCounts};
pub use probe::{DirectionProbe, SplitBasis};

use crate::{Direction, Sighting};

/// Which way a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowDirection {
    /// From the sending point to the receiving point.
    Forward,
    /// Back.
    Reverse,
}

impl FlowDirection {
    const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

fn by_time_to_live(sent: &Sighting, received: &Sighting) -> Option<FlowDirection> {
    match sent.ttl.cmp(&received.ttl) {
        std::cmp::Ordering::Greater => Some(FlowDirection::Forward),
        std::cmp::Ordering::Less => Some(FlowDirection::Reverse),
        std::cmp::Ordering::Equal => None,
    }
}

fn by_capture(sent: &Sighting, received: &Sighting) -> Option<FlowDirection> {
    let went = (sent.direction, received.direction);
    (went == (Direction::Outbound, Direction::Inbound)).then_some(FlowDirection::Forward)
}

/// Received − sent, ns.
fn difference(sent: &Sighting, received: &Sighting) -> i64 {
    let sent = i64::try_from(sent.time_ns).unwrap_or(i64::MAX);
    let received = i64::try_from(received.time_ns).unwrap_or(i64::MAX);
    received - sent
}

/// Where differences of packets going forward and back part.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// Of the last packet known to go forward, and the last known to go back: the offset of the clocks
    /// is between them, also while they drift.
    forward_ns: Option<i64>,
    reverse_ns: Option<i64>,
    /// Until there are both.
    otherwise_ns: i64,
}

impl Split {
    const fn learn(&mut self, direction: FlowDirection, difference_ns: i64) {
        match direction {
            FlowDirection::Forward => self.forward_ns = Some(difference_ns),
            FlowDirection::Reverse => self.reverse_ns = Some(difference_ns),
        }
    }

    fn direction_of(&self, difference_ns: i64) -> FlowDirection {
        let at_ns = match (self.forward_ns, self.reverse_ns) {
            (Some(forward), Some(reverse)) => i64::midpoint(forward, reverse),
            _ => self.otherwise_ns,
        };
        if difference_ns >= at_ns {
            FlowDirection::Forward
        } else {
            FlowDirection::Reverse
        }
    }
}
