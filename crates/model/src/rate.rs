//! Rates, as written and validated, and what holds a queue to one: shaping, and the policer of a priority.

use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Layer};

/// The largest frame a burst must hold: 1500 B of payload, Ethernet header and two VLAN tags.
pub(crate) const LARGEST_FRAME: ByteCount = ByteCount::new(1522);

/// Returns the same with the bytes and cells that `accounting` adds, whatever its layer.
pub(crate) fn largest_frame(accounting: Accounting) -> ByteCount {
    let added = Accounting {
        layer: Layer::L2,
        ..accounting
    };
    let frame = FrameLengths {
        l2_bytes: 1522,
        l3_offset: FrameLengths::L3_OFFSET_MAX,
    };
    added.count(frame).max(LARGEST_FRAME)
}

/// A rate and what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// bit/s.
    pub rate: BitRate,
    /// Which bytes of a frame are counted.
    pub accounting: Accounting,
}

impl Rate {
    /// A rate that counts frames without FCS: the default.
    #[must_use]
    pub const fn l2(rate: BitRate) -> Self {
        Self {
            rate,
            accounting: Accounting::L2,
        }
    }

    /// The same rate of other bytes.
    #[must_use]
    pub(crate) const fn counted_as(self, accounting: Accounting) -> Self {
        Self { accounting, ..self }
    }
}

/// A rate as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateSpec {
    /// Absolute.
    Absolute(BitRate),
    /// In thousandths of a percent of the parent's rate (100 % is 100,000).
    PercentMilli(u32),
}

/// A burst as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstSpec {
    /// A number of bytes.
    Size(ByteCount),
    /// The rate times this duration: the only form IOS allows with a rate in percent. At least 1500 B.
    Time(Duration),
}

/// Minimum of a burst given as a time: one full packet, as in IOS.
const BURST_TIME_MIN: ByteCount = ByteCount::new(1500);

impl BurstSpec {
    /// The burst in bytes at `rate`.
    #[must_use]
    pub fn size(self, rate: BitRate) -> ByteCount {
        match self {
            Self::Size(size) => size,
            Self::Time(time) => rate.bytes_in(time).max(BURST_TIME_MIN),
        }
    }
}

impl From<ByteCount> for BurstSpec {
    fn from(size: ByteCount) -> Self {
        Self::Size(size)
    }
}

impl From<Duration> for BurstSpec {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

/// A shaper's burst as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstBits {
    /// A number of bits.
    Bits(u64),
    /// Data that the rate sends in this time.
    Time(Duration),
}

impl BurstBits {
    /// The burst in bits at `rate`.
    #[must_use]
    pub fn at(self, rate: BitRate) -> u64 {
        match self {
            Self::Bits(bits) => bits,
            Self::Time(time) => rate.bytes_in(time).bits(),
        }
    }
}

impl From<u64> for BurstBits {
    fn from(bits: u64) -> Self {
        Self::Bits(bits)
    }
}

impl From<Duration> for BurstBits {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

/// Token-bucket shaping as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaperSpec {
    /// Average rate, before `peak` is applied.
    pub rate: RateSpec,
    /// Committed burst Bc; default 4 ms at the rate.
    pub committed_burst_bits: Option<BurstBits>,
    /// Excess burst Be; default equal to Bc where `peak`, else 0.
    pub excess_burst_bits: Option<BurstBits>,
    /// Send Bc + Be every Tc instead of Bc: a rate of `rate × (1 + Be/Bc)`.
    pub peak: bool,
    /// Bytes of a frame that the rate counts.
    pub accounting: Accounting,
}

impl From<RateSpec> for ShaperSpec {
    /// Shaping to `rate` as L2 counts it, with the default bursts.
    fn from(rate: RateSpec) -> Self {
        Self {
            rate,
            committed_burst_bits: None,
            excess_burst_bits: None,
            peak: false,
            accounting: Accounting::L2,
        }
    }
}

/// A validated shaper: output in any interval t is at most `burst + rate × t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaperParams {
    /// Rate at which credit is earned.
    pub rate: Rate,
    /// Bucket depth; starts full. At least one largest frame.
    pub burst: ByteCount,
    /// Frames of priority classes leave at once and are charged anyway, into debt if necessary (of up to 200 ms at the rate), so that
    /// others wait longer. Otherwise they wait for credit like any frame.
    pub priority_borrows: bool,
}

/// Low-latency queueing, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrioritySpec {
    /// 1 is served first.
    pub level: u8,
    /// The class is policed to this rate, but only while the link is congested.
    pub rate: Option<RateSpec>,
    /// Burst of that policer; default 200 ms at its rate, as IOS.
    pub burst: Option<ByteCount>,
    /// Bytes of a frame that the rate counts.
    pub accounting: Accounting,
}

/// Validated low-latency queueing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityParams {
    /// 1 is served first.
    pub level: u8,
    /// Rate and burst of the conditional policer.
    pub police: Option<(Rate, ByteCount)>,
}
