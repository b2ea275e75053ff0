//! Why a guarantee is refused, and what would be accepted instead.

use slicewise_units::{BitRate, ByteCount, Duration, Rounded};
use std::fmt;

/// Why a guarantee cannot be given. As text: one sentence with the numbers, and what would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first condition that fails.
    pub problem: Problem,
    /// What would be accepted.
    pub offer: Offer,
}

/// The condition of the admission test that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A rate of zero guarantees nothing.
    ZeroRate,
    /// The burst does not hold the largest frame, which could then never be sent in time.
    BurstBelowFrame {
        /// The burst asked for.
        burst: ByteCount,
        /// The largest frame there can be.
        largest_frame: ByteCount,
    },
    /// The objective is shorter than the shortest delay class.
    DelayBelowShortest {
        /// The objective asked for.
        delay: Duration,
        /// The shortest class.
        shortest: Duration,
    },
    /// The guaranteed rates together exceed the link's.
    Rate {
        /// The rate asked for, of all slices of the request.
        asked: BitRate,
        /// What the link has left.
        left: BitRate,
    },
    /// What may have to be sent within some delay is more than the link can send in it.
    Delay {
        /// The delay: that of the request's class, or of a longer one that would be harmed.
        within: Duration,
        /// What may have to be sent within it, one frame that is under way already included, as
        /// the link counts it.
        demand: ByteCount,
        /// What the link sends in it.
        supply: ByteCount,
    },
    /// What may wait of all slices together exceeds the buffer.
    Buffer {
        /// What this request may have waiting: its bursts, and its rate for its delay.
        asked: ByteCount,
        /// What is left of the buffer.
        left: ByteCount,
    },
}

/// What would be accepted if one number of the request were changed and the others were not;
/// `None` where no value of that number would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    /// The largest rate below that asked for.
    pub rate: Option<BitRate>,
    /// The largest burst below that asked for.
    pub burst: Option<ByteCount>,
    /// The smallest delay.
    pub delay: Option<Duration>,
    /// Where several equal slices are asked for: how many of them.
    pub count: Option<u64>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            // What to do is in these texts already.
            Problem::ZeroRate | Problem::BurstBelowFrame { .. } => write!(f, "{}", self.problem),
            _ => write!(f, "{}: {}", self.problem, self.offer.text(&self.problem)),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRate => f.write_str("a rate of zero guarantees nothing: at least 1 bit/s"),
            Self::BurstBelowFrame {
                burst,
                largest_frame,
            } => write!(
                f,
                "a burst of {burst} does not hold the largest frame: at least {largest_frame}"
            ),
            Self::DelayBelowShortest { delay, shortest } => write!(
                f,
                "a delay of {delay} is shorter than the shortest delay class, of {shortest}"
            ),
            Self::Rate { asked, left } => write!(
                f,
                "guarantees {}, more than the {} that the link has left",
                asked.rounded_up(),
                left.rounded_down()
            ),
            Self::Delay {
                within,
                demand,
                supply,
            } => write!(
                f,
                "up to {} might have to be sent within {}, in which the link sends {}",
                demand.rounded_up(),
                within.rounded_up(),
                supply.rounded_down()
            ),
            Self::Buffer { asked, left } => write!(
                f,
                "up to {} might wait, more than the {} that the buffer has left",
                asked.rounded_up(),
                left.rounded_down()
            ),
        }
    }
}

impl Offer {
    /// For people: rounded so that what is said to be accepted is.
    fn text(&self, problem: &Problem) -> String {
        // A longer delay takes less of the link but more of the buffer.
        let at_least = if matches!(problem, Problem::Buffer { .. }) {
            ""
        } else {
            "at least "
        };
        let texts = [
            self.rate
                .map(|rate| format!("a rate of at most {}", rate.rounded_down())),
            self.burst
                .map(|burst| format!("a burst of at most {}", burst.rounded_down())),
            self.delay
                .map(|delay| format!("a delay of {at_least}{}", delay.rounded_up())),
            self.count.map(|count| format!("{count} such slices")),
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        match texts.split_last() {
            None => "no smaller rate, smaller burst or longer delay alone would do".to_owned(),
            Some((last, [])) => format!("{last} would be accepted"),
            Some((last, others)) => {
                format!("{}, or {last}, would be accepted", others.join(", "))
            }
        }
    }
}
