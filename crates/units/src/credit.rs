use crate::{BitRate, ByteCount, Duration, NANOS_PER_SECOND};
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// Token-bucket credit in *nanobits*: one bit/s earned for one nanosecond.
///
/// Because a rate is a whole number of bit/s and time a whole number of
/// nanoseconds, earning credit is exact and never drifts. Negative credit is debt. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Credit(i128);

impl Credit {
    /// Neither credit nor debt.
    pub const ZERO: Self = Self(0);

    /// Returns the cost of sending `size`.
    #[must_use]
    pub const fn for_bytes(size: ByteCount) -> Self {
        Self(size.bytes() as i128 * 8 * NANOS_PER_SECOND as i128)
    }

    /// Returns the exact credit that `rate` earns in `duration`; saturates at 2^127 nanobits, which any rate that text
    /// can state takes longer than 584 years to earn.
    #[inline]
    #[must_use]
    pub const fn earned(rate: BitRate, duration: Duration) -> Self {
        let nanobits = rate.bits_per_second() as u128 * duration.nanos() as u128;
        Self(if nanobits > i128::MAX as u128 {
            i128::MAX
        } else {
            nanobits as i128
        })
    }

    /// A credit of `nanobits`.
    #[inline]
    #[must_use]
    pub const fn from_nanobits(nanobits: i128) -> Self {
        Self(nanobits)
    }

    /// The credit in nanobits.
    #[must_use]
    pub const fn nanobits(self) -> i128 {
        self.0
    }

    /// Whole bytes this credit pays for; zero when in debt.
    #[must_use]
    pub fn whole_bytes(self) -> ByteCount {
        let bytes = self.0.max(0) / (8 * i128::from(NANOS_PER_SECOND));
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// How long `rate` needs to earn this much, rounded up to a nanosecond so that whoever
    /// waits that long has enough. Zero where nothing is missing; `None` if it never will.
    #[inline]
    #[must_use]
    pub fn time_to_earn(self, rate: BitRate) -> Option<Duration> {
        let rate = rate.bits_per_second();
        // 64-bit division is several times faster, and nearly always enough.
        if let Ok(missing) = u64::try_from(self.0)
            && rate > 0
        {
            return Some(Duration::from_nanos(missing.div_ceil(rate)));
        }
        if self.0 <= 0 {
            return Some(Duration::ZERO);
        }
        if rate == 0 {
            return None;
        }
        let nanos = self.0.unsigned_abs().div_ceil(u128::from(rate));
        Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

impl Add for Credit {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Credit {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Credit {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Credit {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Credit {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
