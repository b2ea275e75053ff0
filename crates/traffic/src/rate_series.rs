//! Rates of a link that change during a run: steps, or a trace in the format of Mahimahi (R. Netravali et al., "Mahimahi: Accurate
//! Record-and-Replay for HTTP", USENIX ATC 2015).

use sha2::{Digest, Sha256};
use slicewise_units::{BitRate, Duration, Instant};

/// Bits that an opportunity of a trace carries: a packet of 1500 B.
const OPPORTUNITY_BITS: u64 = 1_500 * 8;
/// Latest time of a trace, milliseconds: a day, the longest run.
const MAX_MILLIS: u64 = 86_400_000;
/// Milliseconds of a second.
const MILLIS_PER_SECOND: u64 = 1_000;

/// A rate, and when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStep {
    /// When, from the beginning of the run, or of the repetition.
    pub at: Duration,
    /// The rate until the next step; it may be zero.
    pub rate: BitRate,
}

/// A rate that changes at steps; the last rate stays, or all is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateSeries {
    steps: Vec<RateStep>,
    /// After which time it begins again; `None` if the last rate stays.
    period: Option<Duration>,
    sha256: [u8; 32],
}

/// Why steps or a trace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateSeriesError {
    /// There is none.
    #[error(
        "there is no rate: write at least one step, for example `{{at: 0 s, rate: 20 Mbit/s}}`"
    )]
    NoStep,
    /// The first one is late.
    #[error("the first step is at {0}: the first must be at 0 s, where the run begins")]
    LateStart(Duration),
    /// A step is not after the one before it.
    #[error(
        "the step at {later} follows one at {earlier}: write steps in order of time, each at a time of its own"
    )]
    OutOfOrder {
        /// Time of the one before.
        earlier: Duration,
        /// Its time.
        later: Duration,
    },
    /// Nothing passes from some time on.
    #[error(
        "the last step has a rate of zero: nothing would pass from {0} on; end with a rate above zero"
    )]
    EndsAtZero(Duration),
    /// A line of a trace cannot be read.
    #[error(
        "line {line} is `{text}`: a trace has one whole number of milliseconds a line, at most {MAX_MILLIS}, when 1500 B may pass"
    )]
    NotATime {
        /// Line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// A time of a trace is before the one above it.
    #[error(
        "line {line} is {millis} ms, and the line before it {before} ms: times of a trace do not decrease"
    )]
    Decreasing {
        /// Line, from 1.
        line: usize,
        /// Its time.
        millis: u64,
        /// Time of the line before.
        before: u64,
    },
    /// A trace has no time after 0 ms.
    #[error("the trace has no time after 0 ms: its last line is the time after which it repeats")]
    NoPeriod,
}

impl RateSeries {
    /// A series of steps, of which the last rate stays.
    ///
    /// # Errors
    /// Where they do not begin at 0 s, are not in order, or end with a rate of zero.
    pub fn of_steps(steps: Vec<RateStep>) -> Result<Self, RateSeriesError> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err(RateSeriesError::NoStep);
        };
        if first.at > Duration::ZERO {
            return Err(RateSeriesError::LateStart(first.at));
        }
        if last.rate == BitRate::ZERO {
            return Err(RateSeriesError::EndsAtZero(last.at));
        }
        let mut pairs = steps.iter().zip(steps.iter().skip(1));
        if let Some((earlier, later)) = pairs.find(|(earlier, later)| later.at <= earlier.at) {
            return Err(RateSeriesError::OutOfOrder {
                earlier: earlier.at,
                later: later.at,
            });
        }
        Ok(Self::new(steps, None))
    }

    /// A trace: each line is a time in milliseconds by which 1500 B more may have passed; it repeats after the last.
    /// Opportunities of a millisecond are a rate during it, so that they end when the trace says.
    ///
    /// # Errors
    /// Where a line is no such time, or times decrease.
    pub fn of_mahimahi(text: &str) -> Result<Self, RateSeriesError> {
        let mut steps: Vec<RateStep> = Vec::new();
        let (mut before, mut has_period) = (0, false);
        for (line, written) in (1..).zip(text.lines()) {
            let written = written.trim();
            if written.is_empty() {
                continue;
            }
            let millis = written.parse().ok().filter(|millis| *millis <= MAX_MILLIS);
            let millis: u64 = millis.ok_or_else(|| RateSeriesError::NotATime {
                line,
                text: written.chars().take(20).collect(),
            })?;
            if millis.max(1) < before {
                return Err(RateSeriesError::Decreasing {
                    line,
                    millis,
                    before,
                });
            }
            // A time of 0 ms counts with the first millisecond.
            add_opportunity(&mut steps, before, millis.max(1));
            before = millis.max(1);
            has_period |= millis > 0;
        }
        if !has_period {
            return Err(RateSeriesError::NoPeriod);
        }
        Ok(Self::new(steps, Some(Duration::from_millis(before))))
    }

    fn new(steps: Vec<RateStep>, period: Option<Duration>) -> Self {
        let mut hash = Sha256::new();
        for RateStep { at, rate } in &steps {
            hash.update(at.nanos().to_le_bytes());
            hash.update(rate.bits_per_second().to_le_bytes());
        }
        hash.update(period.map_or(0, Duration::nanos).to_le_bytes());
        Self {
            steps,
            period,
            sha256: hash.finalize().into(),
        }
    }

    /// SHA-256 of steps and period: equal for equal series.
    #[must_use]
    pub const fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    /// The steps, at least one; the first is at 0 s.
    #[must_use]
    pub fn steps(&self) -> &[RateStep] {
        &self.steps
    }

    /// After which time it begins again; `None` if the last rate stays.
    #[must_use]
    pub const fn period(&self) -> Option<Duration> {
        self.period
    }

    /// The mean rate of the first `duration`, rounded down.
    #[must_use]
    pub fn mean(&self, duration: Duration) -> BitRate {
        let nanos = u128::from(duration.nanos().max(1));
        let whole = self.period.map_or((0, nanos), |period| {
            let period = u128::from(period.nanos().max(1));
            (nanos / period, nanos % period)
        });
        let of_period = self
            .period
            .map_or(0, |period| self.nanobits(period.nanos().into()));
        let sum = whole.0 * of_period + self.nanobits(whole.1);
        BitRate::new(u64::try_from(sum / nanos).unwrap_or(u64::MAX))
    }

    /// The lowest and the highest rate.
    #[must_use]
    pub fn range(&self) -> (BitRate, BitRate) {
        let rates = || self.steps.iter().map(|step| step.rate);
        let (lowest, highest) = (rates().min(), rates().max());
        (
            lowest.unwrap_or(BitRate::ZERO),
            highest.unwrap_or(BitRate::ZERO),
        )
    }

    /// When step `index` ends in the repetition that began at `began`; `None` if its rate stays.
    #[must_use]
    pub fn ends_at(&self, index: usize, began: Instant) -> Option<Instant> {
        let next = self.steps.get(index + 1).map(|step| step.at);
        next.or(self.period).map(|at| began.saturating_add(at))
    }

    /// The integral of the rate over the first `nanos` of one repetition, bit/s times nanoseconds.
    fn nanobits(&self, nanos: u128) -> u128 {
        let ends = self
            .steps
            .iter()
            .skip(1)
            .map(|step| u128::from(step.at.nanos()));
        let ends = ends.chain([u128::MAX]);
        let parts = self.steps.iter().zip(ends).map(|(step, end)| {
            let lasts = end.min(nanos).saturating_sub(step.at.nanos().into());
            u128::from(step.rate.bits_per_second()) * lasts
        });
        parts.sum()
    }
}

/// 1500 B more may pass in the millisecond that ends at `millis`; those before end at `before` or earlier.
fn add_opportunity(steps: &mut Vec<RateStep>, before: u64, millis: u64) {
    let rate = OPPORTUNITY_BITS * MILLIS_PER_SECOND;
    if millis == before
        && let Some(last) = steps.last_mut()
    {
        last.rate = BitRate::new(last.rate.bits_per_second().saturating_add(rate));
        return;
    }
    let at = Duration::from_millis(millis - 1);
    let silent_from = Duration::from_millis(before);
    if silent_from < at {
        steps.push(RateStep {
            at: silent_from,
            rate: BitRate::ZERO,
        });
    }
    steps.push(RateStep {
        at,
        rate: BitRate::new(rate),
    });
}

#[cfg(test)]
mod tests;
