//! Random early detection, weighted by DSCP.
//!
//! After S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993: the algorithm of its figure 2 with the
//! queue counted in packets. All arithmetic is on integers, so that every machine decides the same.

use crate::frame::DropReason;
use crate::queue::QueuedFrame;
use rand_core::Rng;
use slicewise_model::WredParams;
use slicewise_units::{Duration, Instant};

/// Decision on an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum RedDecision {
    /// Let it join the queue.
    Admit,
    /// Drop it, by chance: the average is between the thresholds.
    DropEarly,
    /// Drop it: the average is at the maximum threshold or above.
    DropForced,
}

/// (W)RED of one queue: one average, and for each code point a curve with its own count of
/// packets since the last drop, so that drops are spread evenly within each.
#[derive(Debug, Clone)]
pub struct RedState {
    average: Average,
    curves: Box<[CurveState]>,
    ecn: bool,
}

impl RedState {
    /// The state of an empty queue.
    #[must_use]
    pub fn new(params: &WredParams) -> Self {
        let curves = params.curves.iter().map(|curve| CurveState {
            min_packets: curve.min_packets,
            max_packets: curve.max_packets,
            mark_denominator: curve.mark_denominator.max(1),
            count: 0,
        });
        Self {
            average: Average {
                value: 0,
                exponent: u32::from(params.exponential_weight.clamp(1, 16)),
                typical_transmission: params.typical_transmission.max(Duration::from_nanos(1)),
                idle_since: Instant::ZERO,
            },
            curves: curves.collect(),
            ecn: params.ecn,
        }
    }

    /// [Decide](Self::on_arrival) on a frame that finds `queue_packets` waiting. By chance a frame of a transport with ECN is
    /// marked instead of dropped, if so configured.
    #[inline]
    pub(super) fn on_frame(
        &mut self,
        queue_packets: u32,
        queued: &mut QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        match self.on_arrival(queue_packets, queued.dscp(), queued.arrival(), random) {
            RedDecision::Admit => Ok(()),
            RedDecision::DropEarly if self.ecn && queued.ecn().is_capable() => {
                queued.mark();
                Ok(())
            }
            RedDecision::DropEarly => Err(DropReason::RedEarly),
            RedDecision::DropForced => Err(DropReason::RedForced),
        }
    }

    /// Decide on a packet with code point `dscp` that finds `queue_packets` waiting. O(1); where
    /// the queue is empty, O(log of the time it has been).
    ///
    /// A random number is drawn only where the average is between the thresholds. A code point
    /// without a curve (above 63) is always admitted.
    pub fn on_arrival(
        &mut self,
        queue_packets: u32,
        dscp: u8,
        now: Instant,
        random: &mut impl Rng,
    ) -> RedDecision {
        if queue_packets == 0 {
            self.average.decay_while_idle(now);
        } else {
            self.average.sample(queue_packets);
        }
        match self.curves.get_mut(usize::from(dscp)) {
            Some(curve) => curve.decide(self.average.value, random),
            None => RedDecision::Admit,
        }
    }

    /// The last packet has left at `now`.
    pub fn on_empty(&mut self, now: Instant) {
        self.average.idle_since = now;
    }

    /// The average queue in thousandths of a packet, rounded down.
    #[cfg(test)]
    pub fn average_packets_milli(&self) -> u64 {
        let milli = (u128::from(self.average.value) * 1_000) >> FRACTION_BITS;
        u64::try_from(milli).unwrap_or(u64::MAX)
    }

    /// Go on with the average of `old` after a change of parameters.
    pub fn resume_from(&mut self, old: &Self) {
        self.average.value = old.average.value;
        self.average.idle_since = old.average.idle_since;
    }
}

/// The exponentially weighted average of the queue.
#[derive(Debug, Clone, Copy)]
struct Average {
    /// In packets, fixed point with [`FRACTION_BITS`]: any queue fits.
    value: u64,
    /// The weight of the newest sample is 2^-exponent.
    exponent: u32,
    /// How long a packet takes to leave: one sample of an empty queue while idle.
    typical_transmission: Duration,
    /// The end of the idle time accounted for so far. Valid only while idle.
    idle_since: Instant,
}

impl Average {
    /// avg ← avg + w·(q − avg), rounded to the nearest.
    #[inline]
    fn sample(&mut self, queue_packets: u32) {
        let queue = u64::from(queue_packets) << FRACTION_BITS;
        if queue >= self.value {
            self.value += rounded_shift(queue - self.value, self.exponent);
        } else {
            self.value -= rounded_shift(self.value - queue, self.exponent);
        }
    }

    /// avg ← (1 − w)^m · avg, where m packets could have been sent since the queue went idle.
    ///
    /// The remainder of the division is kept for the next call: packets that find the queue empty
    /// and are dropped do not change how fast the average decays.
    fn decay_while_idle(&mut self, now: Instant) {
        let idle = now.saturating_since(self.idle_since).nanos();
        let packet = self.typical_transmission.nanos();
        let packets = idle / packet;
        self.idle_since = self
            .idle_since
            .max(Instant::from_nanos(now.nanos() - idle % packet));
        self.value = times_power(self.value, self.exponent, packets);
    }
}

/// A curve and how long ago it dropped.
#[derive(Debug, Clone, Copy)]
struct CurveState {
    min_packets: u32,
    max_packets: u32,
    mark_denominator: u32,
    /// Value of the paper's `count` for the next packet that comes while the average is between
    /// the thresholds.
    count: u32,
}

impl CurveState {
    #[inline]
    fn decide(&mut self, average: u64, random: &mut impl Rng) -> RedDecision {
        let min = u64::from(self.min_packets) << FRACTION_BITS;
        let max = u64::from(self.max_packets) << FRACTION_BITS;
        if average >= max {
            self.count = 1;
            return RedDecision::DropForced;
        }
        if average < min {
            self.count = 0;
            return RedDecision::Admit;
        }
        let count = self.count;
        if self.drops_early(average - min, count, random.next_u32()) {
            // The paper sets its count to 0 here and adds one as the next packet arrives.
            self.count = 1;
            RedDecision::DropEarly
        } else {
            self.count = count.saturating_add(1);
            RedDecision::Admit
        }
    }

    /// True with probability p_a = p_b / (1 − count·p_b), where p_b = part / span: `random` / 2^32
    /// is below it. Cross-multiplied, so that nothing is rounded:
    /// random · (span − count·part) < part · 2^32.
    ///
    /// `excess` is how far the average is above the minimum threshold, in fixed point.
    #[inline]
    fn drops_early(&self, excess: u64, count: u32, random: u32) -> bool {
        let range = u128::from(self.max_packets - self.min_packets) << FRACTION_BITS;
        let span = range * u128::from(self.mark_denominator);
        let part = u128::from(excess);
        match span.checked_sub(u128::from(count) * part) {
            // 32 bits of random, 96 of span: the product fits.
            Some(rest) => u128::from(random) * rest < part << 32,
            None => true,
        }
    }
}

/// `value` / 2^`bits`, rounded to the nearest.
#[inline]
const fn rounded_shift(value: u64, bits: u32) -> u64 {
    // 1 ≤ bits ≤ 16, so that the last bit shifted out exists.
    (value >> bits) + ((value >> (bits - 1)) & 1)
}

/// `value` · (1 − 2^-`exponent`)^`power`, by repeated squaring; at most 1 below the exact value
/// for every factor multiplied in.
fn times_power(mut value: u64, exponent: u32, power: u64) -> u64 {
    // (1 − w)^m < e^(−m·w): from here on less than 2^-64 is left of any value.
    if power >> exponent >= 45 {
        return 0;
    }
    // Fixed point with 64 bits after the point.
    let mut factor = u64::MAX - (1 << (64 - exponent)) + 1;
    let mut power = power;
    while power > 0 {
        if power & 1 == 1 {
            value = times_fraction(value, factor);
        }
        factor = times_fraction(factor, factor);
        power >>= 1;
    }
    value
}

/// `value` × `fraction` / 2^64, rounded down.
#[inline]
fn times_fraction(value: u64, fraction: u64) -> u64 {
    let product = (u128::from(value) * u128::from(fraction)) >> 64;
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Bits after the point of the average: 2^-32 packets is far below what any threshold resolves,
/// and 32 bits before the point hold any queue.
const FRACTION_BITS: u32 = 32;

#[cfg(test)]
mod tests;
