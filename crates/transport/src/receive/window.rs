//! How much the receiver takes, growing with what arrives: dynamic right-sizing (M. Fisk, W. Feng, "Dynamic Right-Sizing in
//! TCP", 2001).

use crate::behaviour::Behaviour;
use slicewise_units::{Duration, Instant};

/// The receiver's window.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    bytes: u64,
    most_bytes: u64,
    /// Bits by which the header's 16 are shifted (RFC 7323, section 2).
    scale: u32,
    /// Behind the last position that was ever allowed: a window is not taken back (RFC 9293, section 3.8.6).
    edge: u64,
    /// Shortest round trip of late; the largest duration before there is one.
    rtt: Duration,
    /// Start of the present measurement, and the bytes that have arrived since.
    since: Instant,
    arrived: u64,
}

impl ReceiveWindow {
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        let most_bytes = behaviour.receive_window_bytes.min(u64::from(u32::MAX >> 2));
        let bits = u64::BITS - most_bytes.leading_zeros();
        Self {
            bytes: behaviour.initial_receive_window_bytes.min(most_bytes),
            most_bytes,
            scale: bits.saturating_sub(16).min(14),
            edge: 1,
            rtt: Duration::MAX,
            since: Instant::ZERO,
            arrived: 0,
        }
    }

    pub(crate) const fn edge(&self) -> u64 {
        self.edge
    }

    /// A round trip was measured.
    pub(crate) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt = if self.rtt == Duration::MAX {
            rtt
        } else {
            let (old, new) = (self.rtt.nanos(), rtt.nanos());
            Duration::from_nanos(if new < old {
                new
            } else {
                old - old / 8 + new / 8
            })
        };
    }

    /// `bytes` have arrived in order. Each round trip, the window becomes twice what arrived in it, so that the sender can
    /// double what it sends.
    pub(crate) fn on_arrived(&mut self, bytes: u64, now: Instant) {
        self.arrived += bytes;
        let passed = now.saturating_since(self.since);
        if passed < self.rtt || self.bytes >= self.most_bytes {
            return;
        }
        // Data of a round trip, however late it is looked at.
        let arrived = u128::from(self.arrived) * u128::from(self.rtt.nanos().max(1));
        let arrived = arrived / u128::from(passed.nanos().max(1));
        let wanted = u64::try_from(2 * arrived).unwrap_or(u64::MAX);
        self.bytes = self.bytes.max(wanted.min(self.most_bytes));
        (self.since, self.arrived) = (now, 0);
    }

    /// Returns the window beyond `next`, bytes, while `held` bytes wait behind a gap.
    pub(crate) fn advertise(&mut self, next: u64, held: u64) -> u32 {
        let free = self.bytes.saturating_sub(held) >> self.scale << self.scale;
        self.edge = self.edge.max(next + free);
        u32::try_from(self.edge - next).unwrap_or(u32::MAX)
    }
}
