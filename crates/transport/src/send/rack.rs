//! Loss by time: RACK (RFC 8985, section 6).

use super::scoreboard::{Delivered, Newest, Scoreboard};
use crate::segment::{is_earlier, stamp};
use slicewise_units::{Duration, Instant};

/// Recoveries for which a wider window of reordering is kept (RFC 8985, section 6.2, step 4).
const PERSIST: u32 = 16;
/// Segments sacked from which a gap is a loss, unless reordering was seen (RFC 5681's three duplicates).
const DUP_THRESH: u64 = 3;

/// State of RACK: the latest delivery, by which data sent before it is judged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rack {
    newest: Option<Newest>,
    /// Round trip of the newest delivery.
    rtt: Duration,
    /// The highest position known to have arrived.
    highest: u64,
    is_reordering_seen: bool,
    multiplier: u32,
    persist: u32,
    /// The position at which the multiplier was last raised: once a round trip.
    raised_at: Option<u64>,
}

/// State of the connection that RACK needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) min_rtt: Duration,
    pub(crate) smoothed: Option<Duration>,
    pub(crate) mss_bytes: u64,
    pub(crate) is_recovering: bool,
}

impl Rack {
    /// Steps 1 to 3: take note of what has arrived. Of something sent again, an `echo` of a time stamp before that, or a
    /// round trip shorter than any, says that the original arrived. With a block comes the time stamp of what arrived in order
    /// before it (RFC 7323, section 4.3), which says nothing.
    pub(crate) fn on_delivered(
        &mut self,
        delivered: &Delivered,
        echo: u32,
        min_rtt: Duration,
        now: Instant,
    ) {
        let Some(newest) = delivered.newest else {
            return;
        };
        let rtt = now.saturating_since(newest.sent_at);
        let answers_earlier = !newest.is_sacked && is_earlier(echo, stamp(newest.sent_at));
        let is_original = answers_earlier || rtt < min_rtt;
        if !newest.was_resent || !is_original {
            let is_newer = self
                .newest
                .is_none_or(|before| (before.sent_at, before.end) < (newest.sent_at, newest.end));
            if is_newer {
                (self.newest, self.rtt) = (Some(newest), rtt);
            }
        }
        if let Some(lowest) = delivered.lowest_sent_once
            && lowest < self.highest
        {
            self.is_reordering_seen = true;
        }
        self.highest = self.highest.max(delivered.highest_sent_once);
    }

    /// A segment arrived twice (RFC 2883): the window of reordering was too short. `next` is the next position to
    /// send, `una` the first not acknowledged.
    pub(crate) fn on_duplicate(&mut self, una: u64, next: u64) {
        if self.raised_at.is_none_or(|at| una >= at) {
            self.raised_at = Some(next);
            self.multiplier += 1;
        }
        self.persist = PERSIST;
    }

    /// Notes that data taken for lost was late: that was reordering.
    pub(crate) fn on_undone(&mut self) {
        self.newest = None;
        self.is_reordering_seen = true;
    }

    /// A recovery has ended.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 0;
        }
    }

    /// Step 4: how much later than its successors a segment may arrive.
    fn reordering_window(&self, path: Path, sacked_bytes: u64) -> Duration {
        let is_clear = path.is_recovering || sacked_bytes >= DUP_THRESH * path.mss_bytes;
        if !self.is_reordering_seen && is_clear {
            return Duration::ZERO;
        }
        let Some(smoothed) = path.smoothed else {
            return Duration::ZERO;
        };
        let quarter = path.min_rtt.min(smoothed).nanos() / 4;
        let window = quarter.saturating_mul(u64::from(self.multiplier) + 1);
        Duration::from_nanos(window).min(smoothed)
    }

    /// After a time-out: what was sent a round trip ago is lost, what was sent since may still arrive (section 6.3).
    pub(crate) fn detect_on_timeout(&self, board: &mut Scoreboard, path: Path, now: Instant) {
        let patience = self.rtt + self.reordering_window(path, board.sacked_bytes());
        board.lose_on_timeout(|sent_at| sent_at.saturating_add(patience) <= now);
    }

    /// Step 5: find what is lost. Returns the bytes newly lost, and when to look again.
    pub(crate) fn detect(
        &self,
        board: &mut Scoreboard,
        path: Path,
        now: Instant,
    ) -> (u64, Option<Instant>) {
        let Some(newest) = self.newest else {
            return (0, None);
        };
        let patience = self.rtt + self.reordering_window(path, board.sacked_bytes());
        let (lost, waits) = board.lose(newest, |sent_at| sent_at.saturating_add(patience) <= now);
        (lost, waits.map(|sent_at| sent_at.saturating_add(patience)))
    }
}
