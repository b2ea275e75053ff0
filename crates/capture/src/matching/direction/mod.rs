//! Direction of flows: a capture at the sender also contains the packets coming back.
//!
//! Evidence from a packet seen at both points, strongest first:
//!
//! 1. **Time to live**: routers only lower it, so it is lower at the far end.
//! 2. **The flow with addresses and ports swapped**: received − sent is offset + delay of packets that
//!    go forward, offset − delay of those that go back. Whatever the clocks, the flow with the larger difference goes forward.
//! 3. **Capture direction**: out of the host at the sending point and into the host at the receiving one
//!    is forward. (In at one point and out at the other is not backward: a router's own interfaces look like that.)
//! 4. **Time order** against where the clocks are split, see [`DirectionProbe`].
//!
//! Otherwise a flow is assumed to go forward, as the user stated; such flows are counted.

mod filter;
mod probe;

#[cfg(test)]
mod tests;

pub use filter::{DirectionCounts, DirectionFilter, WayCounts};
pub use probe::{DirectionProbe, SplitBasis};

use crate::{Direction, Sighting};

/// Direction of a flow.
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

/// The boundary between the time differences of forward and reverse packets.
///
/// The clock offset is below every difference of forward packets and above every one of reverse packets,
/// and closest to those of the packets that waited least.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// Smallest difference of packets known to go forward.
    forward: Least,
    /// Same for packets known to go back, negated so that the smallest is closest here too.
    reverse: Least,
    /// Used until both are known.
    otherwise_ns: i64,
}

impl Split {
    const fn new(otherwise_ns: i64) -> Self {
        Self {
            forward: Least::NONE,
            reverse: Least::NONE,
            otherwise_ns,
        }
    }

    #[inline]
    fn learn(&mut self, direction: FlowDirection, difference_ns: i64) {
        match direction {
            FlowDirection::Forward => self.forward.add(difference_ns),
            FlowDirection::Reverse => self.reverse.add(difference_ns.saturating_neg()),
        }
    }

    fn direction_of(&self, difference_ns: i64) -> FlowDirection {
        let at_ns = match (self.forward.get(), self.reverse.get()) {
            // If the clocks may agree, assume they do, rather than differ by half the asymmetry of the
            // path.
            (Some(forward), Some(reverse)) if forward >= 0 && reverse >= 0 => 0,
            (Some(forward), Some(reverse)) => i64::midpoint(forward, reverse.saturating_neg()),
            _ => self.otherwise_ns,
        };
        if difference_ns >= at_ns {
            FlowDirection::Forward
        } else {
            FlowDirection::Reverse
        }
    }

    const fn has_both(&self) -> bool {
        self.forward.get().is_some() && self.reverse.get().is_some()
    }
}

/// Minimum over the last packets: clocks drift, so older minima expire.
#[derive(Debug, Clone, Copy)]
struct Least {
    now_ns: i64,
    /// Minimum of the previous, complete window.
    before_ns: i64,
    packets: u32,
}

impl Least {
    const NONE: Self = Self {
        now_ns: i64::MAX,
        before_ns: i64::MAX,
        packets: 0,
    };
    /// Some seconds of one flow of a megabit per second.
    const WINDOW_PACKETS: u32 = 1 << 10;

    #[inline]
    fn add(&mut self, ns: i64) {
        if self.packets >= Self::WINDOW_PACKETS {
            (self.before_ns, self.now_ns, self.packets) = (self.now_ns, i64::MAX, 0);
        }
        self.now_ns = self.now_ns.min(ns);
        self.packets += 1;
    }

    const fn get(&self) -> Option<i64> {
        if self.packets == 0 {
            return None;
        }
        let least = if self.now_ns < self.before_ns {
            self.now_ns
        } else {
            self.before_ns
        };
        Some(least)
    }
}
