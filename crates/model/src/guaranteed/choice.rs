//! The delay that a guarantee gets: the one that it states, or else its default where that fits, or the smallest that does.
//!
//! A guarantee that states a delay is refused where this does not fit. One that states none is never refused for its delay: with a
//! longer delay every condition but that of the buffer holds more easily, so that only its rate, the buffer, or a burst that
//! cannot be sent by the [latest deadline](DelayRange::latest) can be the reason.

use super::offer::boundary;
use super::sums::nanobits;
use super::{Admission, DelayRange, GuaranteeParams, Problem, Refusal};
use slicewise_units::{BitRate, ByteCount, Duration, Rounded};
use std::fmt;

/// A requested guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeRequest {
    /// Committed rate (CIR).
    pub rate: BitRate,
    /// Committed burst (CBS).
    pub burst: ByteCount,
    /// Largest delay D + δ of frames within both; `None` for the [default](Self::default_delay) where it fits, else the smallest
    /// delay that does.
    pub delay: Option<Duration>,
    /// The smallest frame: smaller ones are charged as this, so that less of the link has to be reserved where that counts
    /// more bytes per frame. Zero if any frame may be sent.
    pub smallest_frame: ByteCount,
}

impl GuaranteeRequest {
    /// The delay that it states, at most the longest; without one, the [default](Self::default_delay). `None` if the objective is
    /// below the shortest, or no delay is promised.
    #[must_use]
    pub fn wanted_delay(&self, delays: DelayRange) -> Option<Duration> {
        match self.delay {
            Some(objective) => {
                let is_possible = objective >= delays.shortest() && !delays.is_none();
                is_possible.then_some(objective.min(delays.longest()))
            }
            None => Some(self.default_delay(delays)),
        }
    }

    /// The delay of a guarantee that states none, where it fits: the longest [step](DelayRange::steps) within the time that its rate
    /// takes to send its burst, at least the shortest.
    #[must_use]
    pub fn default_delay(&self, delays: DelayRange) -> Duration {
        let rate = u128::from(self.rate.bits_per_second()).max(1);
        let nanos = u64::try_from(nanobits(self.burst) / rate).unwrap_or(u64::MAX);
        let step = delays.step_within(Duration::from_nanos(nanos));
        step.unwrap_or(delays.shortest())
    }

    /// The guarantee if it is given this delay.
    #[must_use]
    pub const fn with_delay(&self, delay: Duration) -> GuaranteeParams {
        GuaranteeParams {
            rate: self.rate,
            burst: self.burst,
            delay,
            smallest_frame: self.smallest_frame,
        }
    }

    /// Why it has the delay that it was given.
    #[must_use]
    pub fn delay_reason(&self, given: Duration, delays: DelayRange) -> DelayReason {
        let default = self.default_delay(delays);
        match self.delay {
            Some(_) => DelayReason::Stated,
            None if given == default => DelayReason::Default,
            None => DelayReason::Chosen { default },
        }
    }
}

/// Why a guarantee has its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayReason {
    /// It states a delay.
    Stated,
    /// It states none, and has its default.
    Default,
    /// It states none, and has another one than its present default: the smallest that fitted when it was admitted, or the one that it
    /// had before a change.
    Chosen {
        /// Its default.
        default: Duration,
    },
}

impl fmt::Display for DelayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stated => f.write_str("as stated"),
            Self::Default => f.write_str("none is stated: the default"),
            Self::Chosen { default } => write!(
                f,
                "none is stated: the smallest that fits, instead of the default of {}",
                default.rounded_up()
            ),
        }
    }
}

/// The delay that `count` equal slices get on all of `links`, which have the same classes. `kept` is the delay that they had before.
///
/// # Errors
/// The first condition that fails, and what would be accepted on that link.
pub(super) fn choose(
    links: &[Admission],
    request: &GuaranteeRequest,
    count: u64,
    kept: Option<Duration>,
) -> Result<Duration, Refusal> {
    chosen(links, request, count, kept)
        .map_err(|(link, problem)| link.refusal(problem, request, count))
}

/// As [`choose`]; the link and the condition that fails on it.
fn chosen<'a>(
    links: &'a [Admission],
    request: &GuaranteeRequest,
    count: u64,
    kept: Option<Duration>,
) -> Result<Duration, (&'a Admission, Problem)> {
    let fits = |link: &Admission, delay| {
        let load = link.load(&request.with_delay(delay), count);
        link.try_load(&load)
    };
    let mut given = Duration::ZERO;
    for link in links {
        let wanted = link
            .check(request)
            .and_then(|()| link.wanted(request))
            .map_err(|problem| (link, problem))?;
        given = given.max(wanted);
    }
    if request.delay.is_none() {
        let kept = kept.filter(|&kept| links.iter().all(|link| link.available(kept) == kept));
        let mut preferred = kept.into_iter().chain([given]);
        let preferred = preferred.find(|&delay| links.iter().all(|link| fits(link, delay).is_ok()));
        if let Some(delay) = preferred {
            return Ok(delay);
        }
        given = Duration::ZERO;
        for link in links {
            let smallest = link.smallest(request, count);
            given = given.max(smallest.map_err(|problem| (link, problem))?);
        }
    }
    for link in links {
        fits(link, given).map_err(|problem| (link, problem))?;
    }
    Ok(given)
}

impl Admission {
    /// The delay that `count` such slices get here, or the condition that fails.
    pub(super) fn try_class(
        &self,
        request: &GuaranteeRequest,
        count: u64,
    ) -> Result<Duration, Problem> {
        chosen(std::slice::from_ref(self), request, count, None).map_err(|(_, problem)| problem)
    }

    /// The stated delay, or the default.
    fn wanted(&self, request: &GuaranteeRequest) -> Result<Duration, Problem> {
        let delay = request.delay.unwrap_or_default();
        self.delay_of(request).ok_or(match self.params.delays {
            DelayRange::NONE => Problem::NoDelays { delay },
            delays => Problem::DelayBelowShortest {
                delay,
                shortest: delays.shortest(),
            },
        })
    }

    /// The smallest delay of a request that states none, the buffer aside.
    fn smallest(&self, request: &GuaranteeRequest, count: u64) -> Result<Duration, Problem> {
        let latest = self.params.delays.latest();
        if let Some(delay) = self.smallest_within(request, count, latest) {
            return Ok(delay);
        }
        let tested = self.try_deadlines(&self.load(&request.with_delay(latest), count));
        Err(match tested {
            Err(problem @ Problem::Rate { .. }) => problem,
            _ => Problem::Burst {
                asked: ByteCount::new(request.burst.bytes().saturating_mul(count)),
                left: self.burst_in(latest, request, count, request.burst),
                latest,
            },
        })
    }

    /// The smallest delay up to `most` with which all conditions but that of the buffer hold.
    pub(super) fn smallest_within(
        &self,
        request: &GuaranteeRequest,
        count: u64,
        most: Duration,
    ) -> Option<Duration> {
        let meets = |nanos| {
            let delay = self.available(Duration::from_nanos(nanos));
            let load = self.load(&request.with_delay(delay), count);
            self.try_deadlines(&load).is_ok()
        };
        let shortest = self.params.delays.shortest();
        if meets(shortest.nanos()) {
            return Some(shortest);
        }
        meets(most.nanos())
            .then(|| Duration::from_nanos(boundary(most.nanos(), shortest.nanos(), meets)))
    }
}
