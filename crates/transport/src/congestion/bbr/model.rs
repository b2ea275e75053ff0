//! Parts of BBR's model of a path: rounds, the smallest round trip, aggregation of acknowledgements, bounds after loss.

use super::arithmetic::{UNBOUNDED, percent_of, product};
use super::delivery_rate::PathSample;
use super::{Arrived, BETA};
use slicewise_units::{Duration, Instant};

/// For how long a round trip is the smallest.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
/// How long after the last time that a small round trip was seen one is looked for.
const PROBE_RTT_EVERY: Duration = Duration::from_secs(5);
/// Rounds of each half of the window in which the largest aggregation counts.
const HALF_WINDOW: u64 = 5;

/// Round trips, counted by what was delivered when data was sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// A round begins with the present sample.
    pub(super) is_start: bool,
    ends_at: u64,
}

impl Rounds {
    pub(super) fn on_sample(&mut self, sample: &PathSample, delivered: u64) {
        self.is_start = sample.delivered > 0 && sample.prior_delivered >= self.ends_at;
        if self.is_start {
            self.begin(delivered);
            self.count += 1;
        }
    }

    /// The present round ends with what is sent from now on.
    pub(super) const fn begin(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }
}

/// The smallest round trip of ten seconds, and of five for when to look for it.
#[derive(Debug, Clone, Default)]
pub(super) struct MinRtt {
    min: Option<(Duration, Instant)>,
    recent: Option<(Duration, Instant)>,
    is_probe_due: bool,
}

impl MinRtt {
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.min.map(|(rtt, _)| rtt)
    }

    pub(super) fn on_sample(&mut self, rtt: Duration, now: Instant) {
        let is_over = |seen: Option<(Duration, Instant)>, after: Duration| {
            seen.is_none_or(|(_, at)| now.saturating_since(at) > after)
        };
        // The first sample is no old one that is missed.
        self.is_probe_due |= self.recent.is_some() && is_over(self.recent, PROBE_RTT_EVERY);
        if is_over(self.recent, PROBE_RTT_EVERY)
            || self.recent.is_some_and(|(least, _)| rtt < least)
        {
            self.recent = Some((rtt, now));
        }
        let is_smaller = |(least, _)| self.recent.is_some_and(|(recent, _)| recent < least);
        if is_over(self.min, MIN_RTT_LASTS) || self.min.is_some_and(is_smaller) {
            self.min = self.recent;
        }
    }

    /// A small round trip was not seen for so long that one must be looked for; asked once.
    pub(super) const fn take_probe_due(&mut self) -> bool {
        std::mem::replace(&mut self.is_probe_due, false)
    }

    /// One was looked for.
    pub(super) fn was_probed(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.recent {
            *at = now;
        }
        self.is_probe_due = false;
    }
}

/// Data that is delivered at once beyond the rate of the path, where acknowledgements come in bunches.
#[derive(Debug, Clone, Default)]
pub(super) struct Aggregation {
    began: Instant,
    delivered: u64,
    /// Most of it in this half of the window, and in the one before.
    most: [u64; 2],
    half_began: u64,
}

impl Aggregation {
    pub(super) const fn restart(&mut self, now: Instant) {
        (self.began, self.delivered) = (now, 0);
    }

    /// `rate` is what is expected, bytes a second.
    pub(super) fn on_delivered(
        &mut self,
        arrived: &Arrived,
        rate: u64,
        window: u64,
        rounds: &Rounds,
        is_filled: bool,
    ) {
        let half = if is_filled { HALF_WINDOW } else { 1 };
        if rounds.is_start && rounds.count >= self.half_began + half {
            self.most = [0, self.most[0]];
            self.half_began = rounds.count;
        }
        let mut expected = product(rate, arrived.now.saturating_since(self.began));
        if self.delivered <= expected {
            self.restart(arrived.now);
            expected = 0;
        }
        self.delivered += arrived.bytes;
        let extra = (self.delivered - expected.min(self.delivered)).min(window);
        self.most[0] = self.most[0].max(extra);
    }

    pub(super) fn extra(&self) -> u64 {
        self.most[0].max(self.most[1])
    }
}

/// Bounds of the rate and of what is under way that follow from losses, until the next probe for bandwidth.
#[derive(Debug, Clone)]
pub(super) struct LowerBounds {
    pub(super) rate: u64,
    pub(super) bytes: u64,
    /// Something was lost in this round trip.
    has_lost: bool,
    /// The largest of this round trip.
    latest_rate: u64,
    pub(super) latest_delivered: u64,
    ends_at: u64,
    is_start: bool,
    /// The bounds before the last loss that began a round trip.
    before: (u64, u64),
}

impl Default for LowerBounds {
    fn default() -> Self {
        Self {
            rate: UNBOUNDED,
            bytes: UNBOUNDED,
            has_lost: false,
            latest_rate: 0,
            latest_delivered: 0,
            ends_at: 0,
            is_start: false,
            before: (UNBOUNDED, UNBOUNDED),
        }
    }
}

impl LowerBounds {
    /// Something is lost. Returns true if nothing was before in this round trip, which then begins anew.
    pub(super) const fn on_lost(&mut self, delivered: u64) -> bool {
        let is_first = !self.has_lost;
        if is_first {
            self.ends_at = delivered;
            self.before = (self.rate, self.bytes);
        }
        self.has_lost = true;
        is_first
    }

    /// `probing`: losses are those of a probe; with the model's rate and the window, from which bounds begin.
    pub(super) fn on_sample(
        &mut self,
        sample: &PathSample,
        delivered: u64,
        (probing, max_rate, window): (bool, u64, u64),
    ) {
        self.latest_rate = self.latest_rate.max(sample.rate.unwrap_or(0));
        self.latest_delivered = self.latest_delivered.max(sample.delivered);
        self.is_start = sample.delivered > 0 && sample.prior_delivered >= self.ends_at;
        if !self.is_start {
            return;
        }
        self.ends_at = delivered;
        if self.has_lost && !probing {
            let (rate, bytes) = (self.rate.min(max_rate), self.bytes.min(window));
            self.rate = self.latest_rate.max(percent_of(rate, BETA));
            self.bytes = self.latest_delivered.max(percent_of(bytes, BETA));
        }
        self.has_lost = false;
    }

    /// The next round trip begins with this sample, if one does.
    pub(super) fn advance(&mut self, sample: &PathSample) {
        if self.is_start {
            self.latest_rate = sample.rate.unwrap_or(0);
            self.latest_delivered = sample.delivered;
        }
    }

    /// Forget the present round trip.
    pub(super) const fn forget_latest(&mut self) {
        (self.latest_rate, self.latest_delivered) = (0, 0);
        self.has_lost = false;
    }

    /// No bounds.
    pub(super) const fn reset(&mut self) {
        (self.rate, self.bytes) = (UNBOUNDED, UNBOUNDED);
    }

    /// The last losses were none.
    pub(super) fn undo(&mut self) {
        self.has_lost = false;
        self.rate = self.rate.max(self.before.0);
        self.bytes = self.bytes.max(self.before.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn a_small_round_trip_is_looked_for_each_five_seconds_without_one() {
        let ms = Duration::from_millis;
        let mut min = MinRtt::default();
        min.on_sample(ms(40), second(0));
        min.on_sample(ms(50), second(5));
        assert!(!min.take_probe_due());
        min.on_sample(ms(50), second(6));
        assert!(min.take_probe_due());
        assert_eq!(min.rtt(), Some(ms(40)), "it lasts for ten seconds");
        min.was_probed(second(6));
        min.on_sample(ms(30), second(10));
        assert_eq!(min.rtt(), Some(ms(30)));
        min.on_sample(ms(45), second(15));
        assert!(!min.take_probe_due(), "30 ms was seen at 10 s");
    }

    #[test]
    fn bounds_fall_to_what_is_delivered_but_not_below_seven_tenths_a_round() {
        let mut lower = LowerBounds::default();
        let mut sample = PathSample {
            rate: Some(500),
            delivered: 400,
            ..PathSample::default()
        };
        assert!(lower.on_lost(0));
        assert!(!lower.on_lost(0));
        lower.on_sample(&sample, 1_000, (false, 1_000, 2_000));
        assert_eq!((lower.rate, lower.bytes), (700, 1_400));
        lower.advance(&sample);
        assert!(lower.on_lost(1_000));
        (sample.prior_delivered, sample.rate) = (1_000, Some(600));
        lower.on_sample(&sample, 2_000, (false, 1_000, 2_000));
        assert_eq!((lower.rate, lower.bytes), (600, 980));
        lower.undo();
        assert_eq!((lower.rate, lower.bytes), (700, 1_400));
        lower.reset();
        assert!(lower.on_lost(2_000));
        sample.prior_delivered = 2_000;
        lower.on_sample(&sample, 3_000, (true, 1_000, 2_000));
        assert_eq!(lower.rate, UNBOUNDED, "losses of a probe say nothing");
    }

    #[test]
    fn what_comes_in_bunches_counts_for_ten_rounds() {
        let mut aggregation = Aggregation::default();
        let mut rounds = Rounds::default();
        let mut arrived = Arrived {
            sample: PathSample::default(),
            bytes: 0,
            in_flight: 0,
            rtt: None,
            is_limited: true,
            is_recovering: false,
            now: Instant::ZERO,
        };
        for round in 0..16 {
            (rounds.count, rounds.is_start) = (round, true);
            arrived.now = second(round);
            // As much as the path delivers in five seconds at once, and 1,000 bytes a second after that.
            arrived.bytes = match round {
                0 => 5_000,
                1..=5 => 0,
                _ => 1_000,
            };
            aggregation.on_delivered(&arrived, 1_000, 100_000, &rounds, true);
            let extra = aggregation.extra();
            assert_eq!(extra >= 4_000, round < 10, "round {round}: {extra}");
        }
    }
}
