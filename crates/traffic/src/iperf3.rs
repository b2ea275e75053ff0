//! Pacing as iperf3 does it for UDP (`iperf_client_api.c`, `iperf_check_throttle`).
//!
//! iperf3 wakes on a periodic timer of absolute times, by default every millisecond. At each
//! wake-up it sends datagrams back to back for as long as the bits sent so far, payload only, are
//! fewer than rate × elapsed time; then it sleeps until the next tick. The first datagram leaves
//! without asking. So a flow's inter-arrival times are either nearly zero or nearly a tick.
//!
//! Two things are the operating system's: how late a sleeper wakes (Linux rounds timers of
//! ordinary processes by up to 50 us, `prctl(PR_SET_TIMERSLACK)`), and what a `sendto` costs.

use crate::pace::{Interval, Pace};
use crate::random::Random;
use slicewise_units::{Duration, Instant};

/// The host's part in pacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iperf3Params {
    /// Period of the timer, more than zero (iperf3's `--pacing-timer`).
    pub tick: Duration,
    /// A wake-up is late by a uniform time between zero and this.
    pub timer_slack: Duration,
    /// CPU time of sending one datagram: two back to back are this far apart.
    pub send_cost: Duration,
}

/// One UDP stream of iperf3.
#[derive(Debug, Clone)]
pub struct Iperf3 {
    /// When the next datagram is owed, from the start.
    pace: Pace,
    tick: u64,
    /// A wake-up is late by less than this.
    lateness_bound: u64,
    send_cost: u64,
    start: u64,
    /// The tick to wake at next, without lateness.
    next_tick: u64,
    /// When the clock was last read: at a wake-up, and before each send.
    read_at: u64,
    /// When the process can send next.
    ready_at: u64,
}

impl Iperf3 {
    /// A stream of datagrams at `pace`, which counts their payload.
    #[must_use]
    pub fn new(pace: Pace, params: &Iperf3Params) -> Self {
        Self {
            pace,
            tick: params.tick.nanos().max(1),
            lateness_bound: params.timer_slack.nanos().saturating_add(1),
            send_cost: params.send_cost.nanos(),
            start: 0,
            next_tick: 0,
            read_at: 0,
            ready_at: 0,
        }
    }

    pub(crate) fn begin(&mut self, at: Instant) {
        self.pace.restart();
        self.start = at.nanos();
        self.next_tick = self.start.saturating_add(self.tick);
        // Late enough for the first datagram to be owed.
        self.read_at = self.start.saturating_add(1);
        self.ready_at = self.start;
    }

    #[inline]
    pub(crate) const fn set_interval(&mut self, interval: Interval) {
        self.pace.set_interval(interval);
    }

    #[inline(always)]
    pub(crate) fn next_departure(&mut self, random: &mut Random) -> Instant {
        while self.pace.due() >= self.read_at - self.start {
            self.wake(random);
        }
        self.pace.advance();
        self.read_at = self.ready_at;
        self.ready_at = self.ready_at.saturating_add(self.send_cost);
        Instant::from_nanos(self.read_at)
    }

    /// Sleep until the next tick, or until the one after ticks that can owe nothing however late
    /// they are. Ticks missed while sending fire at once, as overdue timers do.
    #[inline(always)]
    fn wake(&mut self, random: &mut Random) {
        let owed_at = self.start.saturating_add(self.pace.due());
        let idle = owed_at.saturating_sub(self.next_tick.saturating_add(self.lateness_bound - 1));
        if idle >= self.tick && self.ready_at <= owed_at {
            self.next_tick = self.next_tick.saturating_add(idle - idle % self.tick);
        }
        let late = random.below(self.lateness_bound);
        self.read_at = self.next_tick.saturating_add(late).max(self.ready_at);
        self.ready_at = self.read_at;
        self.next_tick = self.next_tick.saturating_add(self.tick);
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "statistics")]
mod tests {
    use super::*;
    use crate::source::Pattern;
    use crate::source::tests::departures;
    use slicewise_units::BitRate;

    const HOST: Iperf3Params = Iperf3Params {
        tick: Duration::from_millis(1),
        timer_slack: Duration::from_micros(50),
        send_cost: Duration::from_micros(15),
    };

    fn gaps(rate: u64, host: &Iperf3Params, until: Duration, seed: u64) -> Vec<u64> {
        let pace = Pace::new(1448, BitRate::new(rate)).unwrap();
        let pattern = Pattern::Iperf3(Iperf3::new(pace, host));
        departures(pattern, until, seed)
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// Against iperf3's own rule, written down literally: every tick, and 128-bit products.
    #[test]
    fn sends_exactly_when_fewer_bits_are_sent_than_owed() {
        let host = Iperf3Params {
            timer_slack: Duration::ZERO,
            ..HOST
        };
        for rate in [15_750_000u64, 1_750_000, 760_000_000] {
            let pace = Pace::new(1448, BitRate::new(rate)).unwrap();
            let until = 300_000_000u64;
            let got = departures(
                Pattern::Iperf3(Iperf3::new(pace, &host)),
                Duration::from_nanos(until),
                1,
            );
            let mut expected = vec![0];
            let (mut bits, mut clock, mut free, mut tick) = (11_584u128, 0u64, 15_000u64, 0u64);
            loop {
                if bits * 1_000_000_000 < u128::from(rate) * u128::from(clock) {
                    if free >= until {
                        break;
                    }
                    expected.push(free);
                    bits += 11_584;
                    clock = free;
                    free += 15_000;
                } else {
                    tick += 1_000_000;
                    clock = tick.max(free);
                    free = clock;
                    if clock >= until {
                        break;
                    }
                }
            }
            assert_eq!(got, expected, "at {rate} bit/s");
        }
    }

    #[test]
    fn the_base_flow_has_the_published_inter_arrival_times() {
        let gaps = gaps(15_750_000, &HOST, Duration::from_secs(40), 1);
        assert!((54_383..=54_385).contains(&gaps.len()), "{}", gaps.len());
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<u64>() as f64 / count;
        // Exactly 1448 × 8 bits at 15.75 Mbit/s but for the two ends of the run.
        assert!((mean - 735_492.06).abs() < 40.0, "{mean}");
        let variance = gaps
            .iter()
            .map(|gap| (*gap as f64 - mean).powi(2))
            .sum::<f64>()
            / count;
        // Published: 0.1847 to 0.1869 ms².
        assert!((0.183e12..0.189e12).contains(&variance), "{variance}");
        let small = gaps.iter().filter(|gap| **gap == 15_000).count() as f64 / count;
        // 1.3596 datagrams a tick: one gap of 3.78 is between two of the same tick.
        assert!((small - 0.2645).abs() < 0.002, "{small}");
        assert!(
            gaps.iter()
                .all(|gap| *gap == 15_000 || (900_000..=1_100_000).contains(gap))
        );
    }

    #[test]
    fn a_slow_flow_keeps_its_rate_although_idle_ticks_are_skipped() {
        let gaps = gaps(100_000, &HOST, Duration::from_secs(100), 2);
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean / 115_840_000.0 - 1.0).abs() < 1e-4, "{mean}");
        // Every gap is a whole number of ticks but for two lateness draws.
        assert!(gaps.iter().all(|gap| {
            let off_grid = (gap + 500_000) % 1_000_000;
            (450_000..=550_000).contains(&off_grid)
        }));
    }

    #[test]
    fn a_flow_faster_than_the_sender_sends_without_pause() {
        let gaps = gaps(10_000_000_000, &HOST, Duration::from_millis(50), 3);
        // The first check finds no time elapsed, and so nothing owed until the first tick.
        assert!(gaps[0] >= 1_000_000);
        assert!(gaps.len() > 3_000 && gaps[1..].iter().all(|gap| *gap == 15_000));
    }
}
