//! TCP Prague: a scalable congestion control for paths with a low-latency queue (RFC 9332), whose packets are ECT(1)
//! (draft-briscoe-iccrg-prague-congestion-control; values of Linux's `tcp_prague`).
//!
//! As DCTCP, it reduces its window by how much was marked. Other than DCTCP, it reduces at once, grows also between
//! reductions by each byte that was not marked, and is as fast and as slow as a connection with a round trip of 25 ms where its
//! own is shorter.

use super::dctcp::MarkedShare;
use super::{Acknowledged, Window};
use slicewise_units::{Duration, Instant};

/// Round trip that shorter ones grow and reduce as (`prague_rtt_target`).
const TARGET: Duration = Duration::from_millis(25);
/// Growth is kept in units of 2⁻²⁰ bytes.
const FRACTION_BITS: u32 = 20;

/// How much was marked of late, and the answers to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prague {
    share: MarkedShare,
    /// When the share was last updated.
    updated_at: Instant,
    /// When the window was last reduced for a mark; `None` before the first.
    reduced_at: Option<Instant>,
    /// Growth that is less than a byte.
    fraction: u64,
}

impl Prague {
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        if !ack.is_limited || ack.is_marked {
            return;
        }
        let mut bytes = ack.bytes;
        if window.is_slow_start() {
            let grown = (window.bytes + bytes).min(window.ssthresh);
            bytes -= grown - window.bytes;
            window.bytes = grown;
        }
        // A segment for each window acknowledged, times (round trip / target)².
        let ratio = |time: Duration| u128::from(time.min(TARGET).nanos());
        let (own, target) = (ratio(ack.smoothed), ratio(TARGET));
        let acknowledged = u128::from(bytes) * u128::from(window.mss) * own * own;
        let divisor = u128::from(window.bytes.max(1)) * target * target;
        let growth = (acknowledged << FRACTION_BITS) / divisor;
        self.fraction += u64::try_from(growth).unwrap_or(0);
        window.bytes += self.fraction >> FRACTION_BITS;
        self.fraction &= (1 << FRACTION_BITS) - 1;
    }

    /// Before the first mark nothing is known of a queue that marks: the share is not updated.
    pub(crate) fn on_round(&mut self, ack: &Acknowledged) {
        let is_due = ack.now >= self.updated_at.saturating_add(TARGET);
        if self.reduced_at.is_some() && self.share.count(ack) && is_due {
            self.share.update(ack);
            self.updated_at = ack.now;
        }
    }

    /// A mark was echoed. Returns whether the window was reduced: at most once each round trip or target, whichever is longer.
    /// The first mark ends slow start and halves it.
    pub(crate) fn on_mark(
        &mut self,
        window: &mut Window,
        smoothed: Duration,
        now: Instant,
    ) -> bool {
        let reduced = match self.reduced_at {
            None => window.bytes / 2,
            Some(at) if now < at.saturating_add(TARGET.max(smoothed)) => return false,
            Some(_) => self.share.reduced(window.bytes),
        };
        window.bytes = reduced.max(2 * window.mss);
        window.ssthresh = window.bytes;
        self.reduced_at = Some(now);
        true
    }
}
