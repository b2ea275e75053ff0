//! A constant rate, exactly.

use slicewise_traffic::application::KILOSECOND_NS;
use slicewise_units::{Duration, Instant};

/// Events number 0, 1, 2, … at a constant rate: number n is due n / rate after the start, rounded up to a nanosecond.
/// Each is computed from its number, so nothing accumulates.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    start: Instant,
    per_kilosecond: u64,
}

impl Schedule {
    pub fn new(start: Instant, per_kilosecond: u64) -> Self {
        Self {
            start,
            per_kilosecond,
        }
    }

    /// When number `n` is due; never, where the rate is 0.
    pub fn due(&self, n: u64) -> Instant {
        if self.per_kilosecond == 0 {
            return Instant::MAX;
        }
        let after =
            (u128::from(n) * u128::from(KILOSECOND_NS)).div_ceil(u128::from(self.per_kilosecond));
        self.start + Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// How many are due before `time`.
    pub fn before(&self, time: Instant) -> u64 {
        let span = u128::from(time.saturating_since(self.start).nanos());
        if span == 0 || self.per_kilosecond == 0 {
            return 0;
        }
        let last = (span - 1) * u128::from(self.per_kilosecond) / u128::from(KILOSECOND_NS);
        u64::try_from(last + 1).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn due_times_do_not_drift() {
        // 3 a second: 333,333,333.3 ns apart.
        let schedule = Schedule::new(Instant::from_nanos(5), 3_000);
        let due = [0, 1, 2, 3, 3_000_000].map(|n| schedule.due(n).nanos());
        assert_eq!(
            due,
            [
                5,
                333_333_339,
                666_666_672,
                1_000_000_005,
                1_000_000_000_000_005
            ]
        );
    }

    #[test]
    fn at_a_rate_of_zero_nothing_is_ever_due() {
        let schedule = Schedule::new(Instant::ZERO, 0);
        assert_eq!(schedule.due(0), Instant::MAX);
        assert_eq!(schedule.before(Instant::MAX), 0);
    }

    proptest! {
        #[test]
        fn the_number_due_before_a_time_is_that_of_earlier_due_times(
            start in 0u64..1_000_000_000,
            per_kilosecond in 1u64..=10_000_000_000,
            n in 0u64..1_000_000,
        ) {
            let schedule = Schedule::new(Instant::from_nanos(start), per_kilosecond);
            let due = schedule.due(n);
            prop_assert!(schedule.before(due) <= n);
            let after = schedule.before(due + Duration::from_nanos(1));
            prop_assert!(after > n);
            prop_assert!(schedule.due(after) > due);
        }
    }
}
