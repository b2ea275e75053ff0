//! When to leave slow start before something is lost: `HyStart++` (RFC 9406).

use super::Acknowledged;
use slicewise_units::Duration;

/// Constants of section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Most segments by which the window grows an acknowledgement, unless the host paces or sends bursts anyway.
const UNPACED_LIMIT: u64 = 8;

/// Slow start, watched.
#[derive(Debug, Clone)]
pub(crate) struct HyStart {
    sends_bursts: bool,
    /// The round ends when this is acknowledged.
    round_end: u64,
    last_round_min: Duration,
    this_round_min: Duration,
    samples: u32,
    /// In conservative slow start: the smallest round trip when it began, and its rounds.
    conservative: Option<(Duration, u32)>,
}

/// Effect of an acknowledgement in slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The window grows by so many bytes.
    By(u64),
    /// It has grown enough: congestion avoidance begins.
    Enough,
}

impl HyStart {
    pub(crate) const fn new(sends_bursts: bool) -> Self {
        Self {
            sends_bursts,
            round_end: 0,
            last_round_min: Duration::MAX,
            this_round_min: Duration::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// Data was acknowledged in slow start.
    pub(crate) fn on_ack(&mut self, ack: &Acknowledged, mss: u64) -> Growth {
        if ack.una >= self.round_end {
            self.round_end = ack.next;
            (self.last_round_min, self.this_round_min) = (self.this_round_min, Duration::MAX);
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return Growth::Enough;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.this_round_min = self.this_round_min.min(rtt);
            self.samples += 1;
            self.judge();
        }
        let mut bytes = ack.bytes;
        if !self.sends_bursts {
            bytes = bytes.min(UNPACED_LIMIT * mss);
        }
        if self.conservative.is_some() {
            bytes /= CSS_GROWTH_DIVISOR;
        }
        Growth::By(bytes)
    }

    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.conservative {
            // The round trip is short again: it was not the queue.
            Some((baseline, _)) if self.this_round_min < baseline => self.conservative = None,
            Some(_) => {}
            None if self.last_round_min < Duration::MAX => {
                let share = Duration::from_nanos(self.last_round_min.nanos() / MIN_RTT_DIVISOR);
                let threshold = share.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.this_round_min >= self.last_round_min + threshold {
                    self.conservative = Some((self.this_round_min, 0));
                }
            }
            None => {}
        }
    }
}
