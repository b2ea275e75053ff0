//! When packets are due at a rate, exactly.

use slicewise_units::{BitRate, NANOS_PER_SECOND};

/// How long a packet lasts at a rate: `whole + part / rate` nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    whole: u64,
    part: u64,
}

/// The time at which the next packet is due: as long after the first as all packets in between last, kept
/// as whole nanoseconds and an exact fraction, so that nothing drifts and nothing divides.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    interval: Interval,
    rate: u64,
    due_whole: u64,
    due_part: u64,
}

impl Pace {
    /// The pace of packets that count as `counted_bytes` at `rate`; `None` at rate zero.
    #[must_use]
    pub fn new(counted_bytes: u32, rate: BitRate) -> Option<Self> {
        Self::slower(counted_bytes, rate, 0)
    }

    /// The same by a clock that is slower by `ppb` parts per billion: so much longer each packet lasts.
    #[must_use]
    pub fn slower(counted_bytes: u32, rate: BitRate, ppb: u32) -> Option<Self> {
        let rate = rate.bits_per_second();
        // 2³² bytes × 8 × 10⁹ may exceed 64 bits; divided once, here.
        let second = u128::from(NANOS_PER_SECOND) + u128::from(ppb);
        let nanobits = u128::from(counted_bytes) * 8 * second;
        let whole = nanobits.checked_div(u128::from(rate))?;
        let part = nanobits % u128::from(rate);
        Some(Self {
            interval: Interval {
                whole: u64::try_from(whole).unwrap_or(u64::MAX),
                part: u64::try_from(part).unwrap_or(0),
            },
            rate,
            due_whole: 0,
            due_part: 0,
        })
    }

    /// How long a packet lasts.
    #[must_use]
    pub const fn interval(&self) -> Interval {
        self.interval
    }

    /// The next packet lasts `interval`, which must be of the same rate.
    #[inline]
    pub const fn set_interval(&mut self, interval: Interval) {
        self.interval = interval;
    }

    /// Owe nothing: the first packet is due at time zero.
    pub fn restart(&mut self) {
        (self.due_whole, self.due_part) = (0, 0);
    }

    /// When the next packet is due, in whole nanoseconds rounded down.
    ///
    /// With s bits counted so far, `s < rate × t` holds for whole nanoseconds t exactly where
    /// this is less than t.
    #[inline]
    #[must_use]
    pub const fn due(&self) -> u64 {
        self.due_whole
    }

    /// The next packet has been sent.
    #[inline]
    pub fn advance(&mut self) {
        // Neither sum overflows: the parts are below the rate, and no rate is above 10¹⁴.
        let part = self.due_part + self.interval.part;
        let (left, is_less) = part.overflowing_sub(self.rate);
        let carry = !is_less;
        self.due_part = if carry { left } else { part };
        self.due_whole = self
            .due_whole
            .saturating_add(self.interval.whole)
            .saturating_add(u64::from(carry));
    }

    /// Mean time between two packets, ns.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the mean of a random variable")]
    pub fn interval_ns(&self) -> f64 {
        self.interval.whole as f64 + self.interval.part as f64 / self.rate as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_nth_packet_is_due_at_n_times_bits_by_rate(
            bytes in 1u32..100_000,
            rate in 1u64..1_000_000_000_000,
            packets in 1u64..2_000,
        ) {
            let mut pace = Pace::new(bytes, BitRate::new(rate)).unwrap();
            for _ in 0..packets {
                pace.advance();
            }
            let exact = u128::from(packets) * u128::from(bytes) * 8_000_000_000 / u128::from(rate);
            prop_assert_eq!(u128::from(pace.due()), exact);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packets_of_several_sizes_are_due_when_all_before_them_have_lasted(
            sizes in prop::collection::vec(1u32..70_000, 1..200),
            rate in 1u64..1_000_000_000_000,
        ) {
            let rate = BitRate::new(rate);
            let mut pace = Pace::new(1, rate).unwrap();
            for size in &sizes {
                pace.set_interval(Pace::new(*size, rate).unwrap().interval());
                pace.advance();
            }
            let bytes: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
            let exact = bytes * 8_000_000_000 / u128::from(rate.bits_per_second());
            prop_assert_eq!(u128::from(pace.due()), exact);
        }
    }

    #[test]
    fn rate_zero_has_no_pace() {
        assert!(Pace::new(1448, BitRate::ZERO).is_none());
    }

    #[test]
    fn a_packet_in_584_years_does_not_overflow() {
        let mut pace = Pace::new(u32::MAX, BitRate::new(1)).unwrap();
        pace.advance();
        pace.advance();
        assert_eq!(pace.due(), u64::MAX);
    }
}
