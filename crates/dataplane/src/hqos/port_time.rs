//! The time of the port, in bytes at its rate.

use slicewise_units::{Instant, NANOS_PER_SECOND};

/// Time in bytes that a port could have sent, and bytes that it has sent if those are more: credits are earned by it.
#[derive(Debug)]
pub(super) struct PortTime {
    /// Byte/s.
    rate: u64,
    /// The clock was read last.
    at: Instant,
    /// Bytes of time that the clock has shown, and nanobytes beyond them.
    clock: u64,
    beyond: u64,
    /// Never behind the clock; ahead of it where frames left faster than the rate of the port.
    time: u64,
}

impl PortTime {
    /// Time 0 at `now`.
    pub(super) const fn new(rate: u64, now: Instant) -> Self {
        Self {
            rate,
            at: now,
            clock: 0,
            beyond: 0,
            time: 0,
        }
    }

    #[inline]
    pub(super) const fn bytes(&self) -> u64 {
        self.time
    }

    /// The clock is read.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        let nanos = now.nanos().saturating_sub(self.at.nanos());
        self.at = self.at.max(now);
        let (bytes, beyond) = match nanos.checked_mul(self.rate) {
            Some(work) if work < u64::MAX - NANOS_PER_SECOND => {
                let work = work + self.beyond;
                (work / NANOS_PER_SECOND, work % NANOS_PER_SECOND)
            }
            _ => Self::of_long(nanos, self.rate, self.beyond),
        };
        self.clock = self.clock.saturating_add(bytes);
        self.beyond = beyond;
        self.time = self.time.max(self.clock);
    }

    #[cold]
    fn of_long(nanos: u64, rate: u64, beyond: u64) -> (u64, u64) {
        let work = u128::from(nanos) * u128::from(rate) + u128::from(beyond);
        let second = u128::from(NANOS_PER_SECOND);
        let bytes = u64::try_from(work / second).unwrap_or(u64::MAX);
        (bytes, u64::try_from(work % second).unwrap_or(0))
    }

    /// A frame leaves that costs `bytes`.
    #[inline]
    pub(super) const fn on_departure(&mut self, bytes: u64) {
        self.time += bytes;
    }

    /// When the clock shows `bytes`.
    pub(super) fn instant_of(&self, bytes: u64) -> Instant {
        let Some(missing) = bytes.checked_sub(self.clock).filter(|missing| *missing > 0) else {
            return self.at;
        };
        let work = u128::from(missing) * u128::from(NANOS_PER_SECOND) - u128::from(self.beyond);
        let nanos = work.div_ceil(u128::from(self.rate.max(1)));
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Instant::from_nanos(self.at.nanos().saturating_add(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::PortTime;
    use proptest::prelude::*;
    use slicewise_units::Instant;

    proptest! {
        #[test]
        fn no_byte_of_time_is_lost_in_steps(
            rate in 1_000_u64..100_000_000_000,
            steps in prop::collection::vec(0_u64..1_000_000_000_000, 1..20),
        ) {
            let mut port = PortTime::new(rate, Instant::ZERO);
            let mut now = 0;
            for step in steps {
                now += step;
                port.advance(Instant::from_nanos(now));
            }
            let bytes = u128::from(now) * u128::from(rate) / 1_000_000_000;
            prop_assert_eq!(u128::from(port.bytes()), bytes);
        }

        #[test]
        fn a_time_is_reached_at_its_instant_and_not_before(
            rate in 1_000_u64..100_000_000_000,
            start in 0_u64..1_000_000_000,
            ahead in 1_u64..1_000_000,
        ) {
            let mut port = PortTime::new(rate, Instant::ZERO);
            port.advance(Instant::from_nanos(start));
            let target = port.bytes() + ahead;
            let at = port.instant_of(target);
            port.advance(Instant::from_nanos(at.nanos() - 1));
            prop_assert!(port.bytes() < target);
            port.advance(at);
            prop_assert!(port.bytes() >= target);
        }
    }
}
