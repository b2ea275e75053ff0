//! Round-trip time and retransmission time-out (RFC 6298), and the smallest round trip of late (RFC 8985, section 6.2).

use slicewise_units::{Duration, Instant};

/// Time-out before the first sample (RFC 6298, section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Largest time-out (RFC 6298, section 2.5; `TCP_RTO_MAX` of Linux).
const MAX_RTO: Duration = Duration::from_secs(120);
/// The smallest round trip is that of so long (ip-sysctl, `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// Estimate of a sender's round trip.
#[derive(Debug, Clone)]
pub(crate) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
    min: Duration,
    min_seen_at: Instant,
    min_rto: Duration,
    min_rto_above_srtt: bool,
    backoff: u32,
}

impl RoundTrip {
    pub(crate) const fn new(min_rto: Duration, min_rto_above_srtt: bool) -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            min: Duration::MAX,
            min_seen_at: Instant::ZERO,
            min_rto,
            min_rto_above_srtt,
            backoff: 0,
        }
    }

    /// A round trip was measured. `first` is that of the first byte acknowledged, the delay of the acknowledgement
    /// included; `last` that of the last.
    pub(crate) fn on_sample(&mut self, first: Duration, last: Duration, now: Instant) {
        let sample = first.nanos();
        let (smoothed, variation) = match self.smoothed {
            None => (sample, sample / 2),
            Some(smoothed) => {
                let (smoothed, variation) = (smoothed.nanos(), self.variation.nanos());
                let error = smoothed.abs_diff(sample);
                (
                    smoothed - smoothed / 8 + sample / 8,
                    variation - variation / 4 + error / 4,
                )
            }
        };
        self.smoothed = Some(Duration::from_nanos(smoothed));
        self.variation = Duration::from_nanos(variation);
        if last <= self.min || now.saturating_since(self.min_seen_at) > MIN_RTT_WINDOW {
            (self.min, self.min_seen_at) = (last, now);
        }
        self.backoff = 0;
    }

    pub(crate) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The smallest; the largest duration before the first sample.
    pub(crate) const fn min(&self) -> Duration {
        self.min
    }

    /// The time-out, doubled for each in a row.
    pub(crate) fn rto(&self) -> Duration {
        let base = match self.smoothed {
            None => INITIAL_RTO.max(self.min_rto),
            Some(smoothed) => {
                let variation = self.variation * 4;
                if self.min_rto_above_srtt {
                    smoothed + variation.max(self.min_rto)
                } else {
                    (smoothed + variation).max(self.min_rto)
                }
            }
        };
        (base * (1u64 << self.backoff.min(16))).min(MAX_RTO)
    }

    /// The time-out has expired (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Time-outs in a row.
    pub(crate) const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Something was acknowledged although no sample can be taken of it.
    pub(crate) fn on_progress(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_time_out_follows_mean_and_variation() {
        let mut trip = RoundTrip::new(ms(1), false);
        assert_eq!(trip.rto(), Duration::from_secs(1));
        trip.on_sample(ms(80), ms(80), Instant::ZERO);
        assert_eq!(trip.rto(), ms(80 + 4 * 40), "RFC 6298, 2.2");
        trip.on_sample(ms(160), ms(160), Instant::ZERO);
        // 80 + (160 - 80) / 8 = 90; 40 · 3/4 + 80 / 4 = 50.
        assert_eq!(trip.smoothed(), Some(ms(90)));
        assert_eq!(trip.rto(), ms(90 + 4 * 50), "RFC 6298, 2.3");
        assert_eq!(trip.min(), ms(80));
    }

    #[test]
    fn it_doubles_until_something_is_acknowledged_and_stays_below_its_largest() {
        let mut trip = RoundTrip::new(ms(200), false);
        trip.on_sample(ms(10), ms(10), Instant::ZERO);
        let rtos: Vec<u64> = (0..12)
            .map(|_| {
                let rto = trip.rto();
                trip.back_off();
                rto.nanos() / 1_000_000
            })
            .collect();
        assert_eq!(
            rtos,
            [
                200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 120_000,
                120_000
            ]
        );
        trip.on_progress();
        assert_eq!(trip.rto(), ms(200));
    }

    #[test]
    fn linux_adds_its_least_to_the_mean() {
        let mut trip = RoundTrip::new(ms(200), true);
        trip.on_sample(ms(100), ms(100), Instant::ZERO);
        assert_eq!(trip.rto(), ms(100 + 200));
        trip.on_sample(ms(900), ms(900), Instant::ZERO);
        // 100 + 800 / 8 = 200; 50 · 3/4 + 800 / 4 = 237.5.
        assert_eq!(trip.rto(), ms(200 + 950));
    }
}
