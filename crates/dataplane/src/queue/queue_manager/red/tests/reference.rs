//! The formulas of Floyd and Jacobson 1993, figure 2, in floating point.

use super::RedDecision;
use proptest::prelude::*;
use slicewise_model::RedCurve;
use slicewise_units::{Duration, Instant};

pub(super) struct ReferenceRed {
    weight: f64,
    packet: Duration,
    average: f64,
    /// One count a curve; the paper starts at −1.
    counts: [i64; 2],
    idle_since: Instant,
    /// Packets' worth of idle time already taken off the average.
    decayed: i32,
}

impl ReferenceRed {
    pub(super) fn new(exponent: u8, packet: Duration) -> Self {
        Self {
            weight: 0.5f64.powi(i32::from(exponent)),
            packet,
            average: 0.0,
            counts: [-1; 2],
            idle_since: Instant::ZERO,
            decayed: 0,
        }
    }

    pub(super) fn average_packets(&self) -> f64 {
        self.average
    }

    pub(super) fn on_empty(&mut self, now: Instant) {
        self.idle_since = now;
        self.decayed = 0;
    }

    /// Checks that `decision` is that of the paper with `random`, unless it is within floating-point
    /// error.
    pub(super) fn check_arrival(
        &mut self,
        queue_packets: u32,
        index: usize,
        curve: RedCurve,
        now: Instant,
        random: u32,
        decision: RedDecision,
    ) -> Result<(), TestCaseError> {
        if queue_packets == 0 {
            let packets = (now - self.idle_since).nanos() / self.packet.nanos();
            let packets = i32::try_from(packets).unwrap_or(i32::MAX);
            self.average *= (1.0 - self.weight).powi(packets - self.decayed);
            self.decayed = packets;
        } else {
            self.average += self.weight * (f64::from(queue_packets) - self.average);
        }
        let (min, max) = (f64::from(curve.min_packets), f64::from(curve.max_packets));
        let unsure = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let count = &mut self.counts[index];
        let expected = if self.average >= max {
            *count = 0;
            RedDecision::DropForced
        } else if self.average < min {
            *count = -1;
            RedDecision::Admit
        } else {
            *count += 1;
            let p_b = (self.average - min) / (max - min) / f64::from(curve.mark_denominator);
            #[expect(clippy::cast_precision_loss, reason = "a count of packets")]
            let rest = 1.0 - *count as f64 * p_b;
            let p_a = if rest > 0.0 {
                (p_b / rest).min(1.0)
            } else {
                1.0
            };
            let drawn = f64::from(random) / 2f64.powi(32);
            // Near the pole a rounding error of the average is magnified.
            if (drawn - p_a).abs() < 1e-4 || unsure(rest, 0.0) {
                *count = if decision == RedDecision::DropEarly {
                    0
                } else {
                    *count
                };
                return Ok(());
            }
            if drawn < p_a {
                *count = 0;
                RedDecision::DropEarly
            } else {
                RedDecision::Admit
            }
        };
        if !unsure(self.average, min) && !unsure(self.average, max) {
            prop_assert_eq!(decision, expected, "average {}", self.average);
        } else {
            // Follow the decision made, so that the counts agree from here on.
            *count = match decision {
                RedDecision::DropForced | RedDecision::DropEarly => 0,
                RedDecision::Admit if self.average < min => -1,
                RedDecision::Admit => *count,
            };
        }
        Ok(())
    }
}
