//! Samples of the rate at which data is delivered (draft-ietf-ccwg-bbr, section 4.1): bytes delivered between two moments, over the longer
//! of the time in which they were sent and the time in which they were acknowledged.

use super::arithmetic::rate_of;
use slicewise_units::{Duration, Instant};
use std::collections::VecDeque;

/// State of the connection when a part of the stream was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    sent_at: Instant,
    /// Behind the last position of the part.
    end: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes under way, the part included.
    in_flight: u64,
    lost: u64,
    is_application_limited: bool,
}

/// A sample of the path, of the data delivered that was sent last, or of data that was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PathSample {
    /// Bytes a second; `None` if the interval is shorter than any round trip, or nothing was delivered.
    pub(crate) rate: Option<u64>,
    /// Bytes delivered since the data was sent.
    pub(crate) delivered: u64,
    /// Bytes delivered when the data was sent.
    pub(crate) prior_delivered: u64,
    /// Bytes under way when the data was sent, itself included.
    pub(crate) in_flight: u64,
    /// Bytes lost since the data was sent.
    pub(crate) lost: u64,
    /// The application, not the path, limited the sender when the data was sent.
    pub(crate) is_application_limited: bool,
}

/// Counters of a sender from which samples follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveryRate {
    /// In order of time; those whose data has been acknowledged are gone.
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// The application limits the sender until more than this is delivered; 0: it does not.
    limited_to: u64,
}

impl DeliveryRate {
    /// Bytes delivered so far.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The application, not the path, limits the sender.
    pub(crate) const fn is_limited(&self) -> bool {
        self.limited_to > 0 && self.delivered <= self.limited_to
    }

    /// The application has nothing more to send while `in_flight` bytes are under way.
    pub(crate) fn limit(&mut self, in_flight: u64) {
        self.limited_to = (self.delivered + in_flight).max(1);
    }

    /// A part that ends at `end` is sent; `in_flight` bytes are under way now, and `before` were before.
    pub(crate) fn on_sent(&mut self, end: u64, before: u64, in_flight: u64, now: Instant) {
        if before == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        self.sent.push_back(Sent {
            sent_at: now,
            end,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            lost: self.lost,
            is_application_limited: self.is_limited(),
        });
    }

    /// `bytes` were delivered, of which the last were sent at `newest`; all below `una` is acknowledged. `min_rtt` is the
    /// smallest round trip.
    pub(crate) fn on_delivered(
        &mut self,
        bytes: u64,
        newest: Option<Instant>,
        una: u64,
        min_rtt: Duration,
        now: Instant,
    ) -> PathSample {
        self.delivered += bytes;
        self.delivered_at = now;
        let found = newest.and_then(|sent_at| self.find(sent_at));
        while self.sent.front().is_some_and(|sent| sent.end <= una) {
            self.sent.pop_front();
        }
        let Some(sent) = found else {
            return PathSample::default();
        };
        self.first_sent_at = self.first_sent_at.max(sent.sent_at);
        let sending = sent.sent_at.saturating_since(sent.first_sent_at);
        let acknowledging = now.saturating_since(sent.delivered_at);
        let interval = sending.max(acknowledging);
        let delivered = self.delivered - sent.delivered;
        let is_valid = interval >= min_rtt && interval > Duration::ZERO;
        PathSample {
            rate: is_valid.then(|| rate_of(delivered, interval)),
            ..self.sample(&sent)
        }
    }

    /// `bytes` are lost, the last of which were sent at `sent_at`.
    pub(crate) fn on_lost(&mut self, bytes: u64, sent_at: Instant) -> Option<PathSample> {
        self.lost += bytes;
        self.find(sent_at).map(|sent| self.sample(&sent))
    }

    fn sample(&self, sent: &Sent) -> PathSample {
        PathSample {
            rate: None,
            delivered: self.delivered - sent.delivered,
            prior_delivered: sent.delivered,
            in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            is_application_limited: sent.is_application_limited,
        }
    }

    /// State when the last of what was sent at `sent_at` was.
    fn find(&self, sent_at: Instant) -> Option<Sent> {
        let after = self.sent.partition_point(|sent| sent.sent_at <= sent_at);
        let sent = self.sent.get(after.checked_sub(1)?)?;
        (sent.sent_at == sent_at).then_some(*sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Ten segments, one each millisecond, each acknowledged after `delay(n)` milliseconds; the last sample.
    fn rate_of(delay: impl Fn(u64) -> u64) -> Option<u64> {
        let mut rates = DeliveryRate::default();
        for n in 0..10 {
            rates.on_sent((n + 1) * MSS, n * MSS, (n + 1) * MSS, ms(n));
        }
        let min = Duration::from_millis(5);
        let samples = (0..10).map(|n| {
            let end = (n + 1) * MSS;
            rates.on_delivered(MSS, Some(ms(n)), end, min, ms(n + delay(n)))
        });
        samples.last().and_then(|sample| sample.rate)
    }

    #[test]
    fn the_longer_of_both_times_counts() {
        // 10 segments over 30 ms from the first that was sent to the last acknowledgement.
        assert_eq!(rate_of(|_| 21), Some(10 * MSS * 1_000 / 30));
        // Acknowledgements that come together are no faster than the data was sent.
        assert_eq!(rate_of(|n| 20 - n), Some(10 * MSS * 1_000 / 20));
    }

    #[test]
    fn an_interval_shorter_than_a_round_trip_is_no_sample() {
        let mut rates = DeliveryRate::default();
        rates.on_sent(MSS, 0, MSS, ms(0));
        let sample = rates.on_delivered(MSS, Some(ms(0)), MSS, Duration::from_millis(5), ms(4));
        assert_eq!((sample.rate, sample.delivered), (None, MSS));
    }

    #[test]
    fn samples_of_data_sent_while_the_application_was_idle_say_so() {
        let mut rates = DeliveryRate::default();
        rates.on_sent(MSS, 0, MSS, ms(0));
        rates.limit(MSS);
        rates.on_sent(2 * MSS, MSS, 2 * MSS, ms(1));
        let min = Duration::from_millis(5);
        let first = rates.on_delivered(MSS, Some(ms(0)), MSS, min, ms(10));
        let second = rates.on_delivered(MSS, Some(ms(1)), 2 * MSS, min, ms(11));
        rates.on_sent(3 * MSS, 0, MSS, ms(11));
        let third = rates.on_delivered(MSS, Some(ms(11)), 3 * MSS, min, ms(20));
        let limited = [first, second, third].map(|sample| sample.is_application_limited);
        assert_eq!(limited, [false, true, false]);
    }
}
