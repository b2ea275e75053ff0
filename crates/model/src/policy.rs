//! Policies: classes in order, what is done with each, and how they share the link.

use crate::{
    ClassMap, PolicerParams, PolicerSpec, QueueLimitParams, QueueLimitSpec, Rate, WredParams,
    WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// The name of the class that takes what no other does; it always exists.
pub const CLASS_DEFAULT: &str = "class-default";

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
    /// So many bytes.
    Size(ByteCount),
    /// What the rate beside it passes in this time: the only form that a rate in percent can
    /// have in IOS. At least 1500 B.
    Time(Duration),
}

/// The least that a burst given as a time comes to: one full packet, as IOS.
const BURST_TIME_MIN: ByteCount = ByteCount::new(1500);

impl BurstSpec {
    /// The burst in bytes beside `rate`.
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

/// Token-bucket shaping as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaperSpec {
    /// Average rate, before `peak` is applied.
    pub rate: RateSpec,
    /// Committed burst Bc in bits; default 4 ms at the rate.
    pub committed_burst_bits: Option<u64>,
    /// Excess burst Be in bits; default equal to Bc where `peak`, else 0.
    pub excess_burst_bits: Option<u64>,
    /// Send Bc + Be every Tc instead of Bc: a rate of `rate × (1 + Be/Bc)`.
    pub peak: bool,
    /// What the rate counts.
    pub accounting: Accounting,
}

/// A validated shaper: output in any interval t is at most `burst + rate × t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaperParams {
    /// Rate at which credit is earned.
    pub rate: Rate,
    /// Most credit that can be saved; starts full. At least one largest frame.
    pub burst: ByteCount,
    /// Frames of priority classes leave at once and are charged all the same, into debt if
    /// need be: others then wait longer. Otherwise they wait for credit like any frame.
    pub priority_borrows: bool,
}

/// A place in the low-latency queue, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrioritySpec {
    /// 1 is served first.
    pub level: u8,
    /// The class is policed to this rate, only while the link is congested.
    pub rate: Option<RateSpec>,
    /// Burst of that policer; default 200 ms at its rate, as IOS.
    pub burst: Option<ByteCount>,
    /// What the rate counts.
    pub accounting: Accounting,
}

/// A validated place in the low-latency queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityParams {
    /// 1 is served first.
    pub level: u8,
    /// Rate and burst of the conditional policer.
    pub police: Option<(Rate, ByteCount)>,
}

/// How classes that have no priority share what is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Guaranteed minimums first, then the excess by weight (deficit round robin).
    #[default]
    MinimumShare,
    /// Deficit round robin by weight alone; minimums are not allowed.
    DeficitRoundRobin,
    /// One queue for all of them, in order of arrival.
    Fifo,
}

/// One class of a policy, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSpec {
    /// Which frames; `None` only for [`CLASS_DEFAULT`].
    pub matches: Option<ClassMap>,
    /// The name of the class; `matches.name` where that is set.
    pub name: String,
    /// Meter and act at ingress.
    pub police: Option<PolicerSpec>,
    /// Set the DSCP of every packet of the class.
    pub set_dscp: Option<u8>,
    /// Low-latency queue.
    pub priority: Option<PrioritySpec>,
    /// Guaranteed minimum.
    pub minimum: Option<RateSpec>,
    /// Share of the excess relative to the other classes; default 1.
    pub weight: Option<u32>,
    /// Token-bucket shaping.
    pub shape: Option<ShaperSpec>,
    /// Queue limit.
    pub queue_limit: Option<QueueLimitSpec>,
    /// Random early detection.
    pub wred: Option<WredSpec>,
    /// The class is itself divided.
    pub child: Option<Box<PolicySpec>>,
}

impl ClassSpec {
    /// A class with nothing configured: one queue, best effort.
    #[must_use]
    pub fn new(matches: ClassMap) -> Self {
        Self {
            name: matches.name.clone(),
            matches: Some(matches),
            ..Self::class_default()
        }
    }

    /// The implicit class for everything else.
    #[must_use]
    pub fn class_default() -> Self {
        Self {
            matches: None,
            name: CLASS_DEFAULT.to_owned(),
            police: None,
            set_dscp: None,
            priority: None,
            minimum: None,
            weight: None,
            shape: None,
            queue_limit: None,
            wred: None,
            child: None,
        }
    }
}

/// A policy as written: classes in order of match. Class-default is added where absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySpec {
    /// The policy's name.
    pub name: String,
    /// Classes; a frame belongs to the first that matches.
    pub classes: Vec<ClassSpec>,
    /// How classes without priority share.
    pub discipline: Discipline,
}

/// One validated class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassParams {
    /// The class's name.
    pub name: String,
    /// Which frames; `None` for class-default, which takes the rest.
    pub matches: Option<ClassMap>,
    /// Meter and act at ingress.
    pub police: Option<PolicerParams>,
    /// Set the DSCP of every packet of the class.
    pub set_dscp: Option<u8>,
    /// Low-latency queue.
    pub priority: Option<PriorityParams>,
    /// Guaranteed minimum and the burst it is kept for.
    pub minimum: Option<(Rate, ByteCount)>,
    /// Share of the excess, at least 1.
    pub weight: u32,
    /// Token-bucket shaping.
    pub shape: Option<ShaperParams>,
    /// Queue limit.
    pub queue_limit: QueueLimitParams,
    /// Random early detection.
    pub wred: Option<WredParams>,
    /// The class is itself divided; then it has no queue of its own.
    pub child: Option<Box<PolicyParams>>,
}

/// A validated policy for a link of known rate. The last class is class-default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyParams {
    /// The policy's name.
    pub name: String,
    /// Classes; a frame belongs to the first that matches. Never empty.
    pub classes: Vec<ClassParams>,
    /// How classes without priority share.
    pub discipline: Discipline,
}
