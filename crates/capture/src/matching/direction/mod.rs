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
///
/// The offset of the clocks is below every difference of packets going forward, above every one of those
/// going back, and closest to those that waited least.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// Of packets known to go forward.
    forward: Least,
    /// Of those known to go back: negated, so that the least is closest here, too.
    reverse: Least,
    /// Until there are both.
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
            // The clocks may well agree: then they do, rather than differ by half of what one way
            // is slower than the other.
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

/// The least of the last packets: clocks drift, so that it does not hold for ever.
#[derive(Debug, Clone, Copy)]
struct Least {
    now_ns: i64,
    /// Of the window before, which is whole.
    before_ns: i64,
    packets: u32,
}

impl Least {
    const NONE: Self = Self {
        now_ns: i64::MAX,
        before_ns: i64::MAX,
        packets: 0,
    };
    /// Some seconds of one flow of a megabit a second.
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
