use crate::meant;
use crate::text::{self, Quantity, QuantityError, Unit};
use crate::{ByteCount, Duration, NANOS_PER_SECOND};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A rate in bit/s. Which bits of a frame it counts is stated by
/// [`Accounting`](crate::Accounting), beside it. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// Nothing per second.
    pub const ZERO: Self = Self(0);
    /// The largest rate that text can state: 100 Tbit/s.
    pub const MAX: Self = Self(100_000_000_000_000);

    /// A rate of `bits_per_second` bit/s.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// The rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Whole bytes that pass at this rate in `duration`, rounded down.
    #[must_use]
    pub fn bytes_in(self, duration: Duration) -> ByteCount {
        let bytes =
            u128::from(self.0) * u128::from(duration.nanos()) / (8 * u128::from(NANOS_PER_SECOND));
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// How long `size` takes at this rate, rounded up to a nanosecond.
    ///
    /// `None` at rate zero, or where the time exceeds 584 years. To send one frame after
    /// another without drift, keep the remainder: see `LinkClock` in the data plane.
    #[must_use]
    pub fn time_to_send(self, size: ByteCount) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let nanobits = u128::from(size.bytes()) * 8 * u128::from(NANOS_PER_SECOND);
        u64::try_from(nanobits.div_ceil(u128::from(self.0)))
            .ok()
            .map(Duration::from_nanos)
    }

    /// `self × numerator / denominator`, rounded down; saturates.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let product = u128::from(self.0) * u128::from(numerator) / u128::from(denominator.max(1));
        Self(u64::try_from(product).unwrap_or(u64::MAX))
    }

    /// `self - other`, or zero where `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or `None` past `u64::MAX` bit/s.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl Add for BitRate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for BitRate {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for BitRate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "{self} - {other} would be negative");
        Self(self.0.saturating_sub(other.0))
    }
}

const UNITS: &[Unit] = &[
    Unit::new("bit/s", 1),
    Unit::new("kbit/s", 1_000),
    Unit::new("Mbit/s", 1_000_000),
    Unit::new("Gbit/s", 1_000_000_000),
    Unit::new("Tbit/s", 1_000_000_000_000),
    Unit::new("B/s", 8),
    Unit::new("kB/s", 8_000),
    Unit::new("MB/s", 8_000_000),
    Unit::new("GB/s", 8_000_000_000),
];

const QUANTITY: Quantity = Quantity {
    name: "rate",
    units: UNITS,
    example: "17.5 Mbit/s",
    meant: meant::rate,
};

impl FromStr for BitRate {
    type Err = QuantityError;
    fn from_str(s: &str) -> Result<Self, QuantityError> {
        text::parse(s, QUANTITY, Self::MAX.0).map(Self)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
            ("bit/s", 1),
        ];
        text::format(f, self.0, &units)
    }
}
