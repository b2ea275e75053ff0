//! Sums of the guarantees of a delay class, and what is due of several until each deadline. All arithmetic is exact.

use slicewise_units::{BitRate, ByteCount, Duration, NANOS_PER_SECOND};

/// One class. All amounts are exact: bit/s, and nanobits (bit/s × ns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClassSums {
    pub(super) delay: Duration,
    pub(super) count: u64,
    /// Rates and bursts as the guarantees count.
    pub(super) rate: u128,
    pub(super) burst: u128,
    /// The same as the link counts at most.
    pub(super) link_rate: u128,
    pub(super) link_burst: u128,
}

/// Resources of some equal slices together.
pub(super) type Load = ClassSums;

/// Usage of a delay class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassUse {
    /// Sums of its guarantees.
    pub reserved: ClassReserved,
    /// How much more burst this class could admit before its own condition fails, as the link
    /// counts it (longer classes may allow less).
    pub slack: ByteCount,
}

/// Sums of the guarantees of one delay class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassReserved {
    /// Its delay.
    pub delay: Duration,
    /// Slices in it.
    pub count: u64,
    /// Sum of their guaranteed rates.
    pub rate: BitRate,
    /// Sum of their bursts.
    pub burst: ByteCount,
    /// Most that the rates take of the link, as it counts.
    pub link_rate: BitRate,
    /// Most that the bursts take of the link, as it counts.
    pub link_burst: ByteCount,
}

impl ClassReserved {
    pub(super) fn of(sums: &ClassSums) -> Self {
        Self {
            delay: sums.delay,
            count: sums.count,
            rate: rate(sums.rate),
            burst: bytes(sums.burst),
            link_rate: rate(sums.link_rate),
            link_burst: bytes(sums.link_burst),
        }
    }
}

/// Nanobits in a byte.
pub(super) const NANOBITS_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

/// Classes in the order of their delays, each with the demand until its deadline, nanobits.
pub(super) fn demands(
    classes: impl Iterator<Item = ClassSums>,
) -> impl Iterator<Item = (ClassSums, u128)> {
    let (mut demand, mut rate_before, mut delay_before) = (0u128, 0u128, 0u64);
    classes.map(move |sums| {
        let gap = sums.delay.nanos() - delay_before;
        // Rates add up to at most the link's, a u64: the product fits.
        demand = demand
            .saturating_add(rate_before * u128::from(gap))
            .saturating_add(sums.link_burst);
        delay_before = sums.delay.nanos();
        rate_before += sums.link_rate;
        (sums, demand)
    })
}

impl ClassSums {
    pub(super) fn plus(&self, load: &Load) -> Self {
        Self {
            delay: self.delay,
            count: self.count.saturating_add(load.count),
            rate: self.rate.saturating_add(load.rate),
            burst: self.burst.saturating_add(load.burst),
            link_rate: self.link_rate.saturating_add(load.link_rate),
            link_burst: self.link_burst.saturating_add(load.link_burst),
        }
    }

    /// Its largest backlog, nanobits: the bursts, plus the rates times the delay.
    pub(super) fn waiting(&self) -> u128 {
        self.rate
            .saturating_mul(u128::from(self.delay.nanos()))
            .saturating_add(self.burst)
    }
}

/// Rate times time, nanobits.
pub(super) fn earned(rate: BitRate, time: Duration) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.nanos())
}

pub(super) fn nanobits(size: ByteCount) -> u128 {
    u128::from(size.bytes()) * NANOBITS_PER_BYTE
}

/// Whole bytes, rounded down.
pub(super) fn bytes(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits / NANOBITS_PER_BYTE).unwrap_or(u64::MAX))
}

pub(super) fn bytes_up(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits.div_ceil(NANOBITS_PER_BYTE)).unwrap_or(u64::MAX))
}

pub(super) fn rate(bits_per_second: u128) -> BitRate {
    BitRate::new(u64::try_from(bits_per_second).unwrap_or(u64::MAX))
}
