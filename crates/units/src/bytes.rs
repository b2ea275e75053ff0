use crate::meant;
use crate::text::{self, Quantity, QuantityError, Unit};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A size in bytes. Sums saturate: `u64::MAX` bytes are as good as unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest size that text can state (1 EB); far above any buffer.
    pub const MAX: Self = Self(1_000_000_000_000_000_000);

    /// A size of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The size in bits; saturates at `u64::MAX`.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// `self - other`, or zero where `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "{self} - {other} would be negative");
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Units of size, largest first where two name the same number exactly.
const UNITS: &[Unit] = &[
    Unit::new("B", 1),
    Unit::new("byte", 1),
    Unit::new("bytes", 1),
    Unit::new("kB", 1_000),
    Unit::new("MB", 1_000_000),
    Unit::new("GB", 1_000_000_000),
    Unit::new("KiB", 1 << 10),
    Unit::new("MiB", 1 << 20),
    Unit::new("GiB", 1 << 30),
];

const QUANTITY: Quantity = Quantity {
    name: "size",
    units: UNITS,
    example: "1500 B",
    meant: meant::size,
};

impl FromStr for ByteCount {
    type Err = QuantityError;
    fn from_str(s: &str) -> Result<Self, QuantityError> {
        text::parse(s, QUANTITY, Self::MAX.0).map(Self)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::format(
            f,
            self.0,
            &[
                ("GB", 1_000_000_000),
                ("MB", 1_000_000),
                ("kB", 1_000),
                ("B", 1),
            ],
        )
    }
}
