//! Why a guarantee is rejected, and what would be accepted instead.

use slicewise_units::{BitRate, ByteCount, Duration, Rounded};
use std::fmt;

/// Why a guarantee is rejected. As text: one sentence with the numbers, and accepted alternatives.
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
        /// The requested burst.
        burst: ByteCount,
        /// The largest possible frame.
        largest_frame: ByteCount,
    },
    /// No frame is as large as the smallest.
    SmallestAboveLargest {
        /// The stated smallest frame.
        smallest_frame: ByteCount,
        /// The largest possible frame.
        largest_frame: ByteCount,
    },
    /// The objective is shorter than the shortest delay of the link.
    DelayBelowShortest {
        /// The requested objective.
        delay: Duration,
        /// The shortest delay.
        shortest: Duration,
    },
    /// The guaranteed rates together exceed the link's.
    Rate {
        /// The requested rate, of all slices of the request.
        asked: BitRate,
        /// Rate that it takes of the link if all frames are small, as the link counts.
        on_link: BitRate,
        /// The unreserved rate of the link, as it counts.
        left: BitRate,
    },
    /// The demand within some delay exceeds what the link can send in it.
    Delay {
        /// The delay: that of the request, or a longer one of other slices whose bound would be violated.
        within: Duration,
        /// The demand within it, including one frame already being transmitted, as the link counts it.
        demand: ByteCount,
        /// Bytes that the link sends until the deadline.
        supply: ByteCount,
    },
    /// The largest backlog of all slices exceeds the buffer.
    Buffer {
        /// Backlog of this request: its bursts, plus its rate times its delay.
        asked: ByteCount,
        /// The unreserved buffer.
        left: ByteCount,
    },
}

/// Accepted alternatives that change only one number of the request; `None` if no value of that number
/// would be accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    /// The largest accepted rate.
    pub rate: Option<BitRate>,
    /// The largest accepted burst.
    pub burst: Option<ByteCount>,
    /// The smallest accepted delay.
    pub delay: Option<Duration>,
    /// If several equal slices are requested: how many are accepted.
    pub count: Option<u64>,
    /// The smallest accepted [`smallest_frame`](crate::GuaranteeRequest::smallest_frame), where that decides.
    pub smallest_frame: Option<ByteCount>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            // These texts already say what to do.
            Problem::ZeroRate
            | Problem::BurstBelowFrame { .. }
            | Problem::SmallestAboveLargest { .. } => {
                write!(f, "{}", self.problem)
            }
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
                "a burst of {burst} is smaller than the largest frame: at least {largest_frame} \
                 is needed"
            ),
            Self::DelayBelowShortest { delay, shortest } => write!(
                f,
                "a delay of {delay} is shorter than {shortest}, the shortest of the link"
            ),
            Self::SmallestAboveLargest {
                smallest_frame,
                largest_frame,
            } => write!(
                f,
                "a smallest frame of {smallest_frame} is larger than the largest frame, of {largest_frame}"
            ),
            Self::Rate {
                asked,
                on_link,
                left,
            } => {
                write!(f, "guarantees {}", asked.rounded_up())?;
                if on_link != asked {
                    write!(
                        f,
                        ", which in small frames takes {} of the link",
                        on_link.rounded_up()
                    )?;
                }
                write!(
                    f,
                    ", but only {} of the link is unreserved",
                    left.rounded_down()
                )
            }
            Self::Delay {
                within,
                demand,
                supply,
            } => write!(
                f,
                "up to {} may be due within {}, in which the link sends only {}",
                demand.rounded_up(),
                within.rounded_up(),
                supply.rounded_down()
            ),
            Self::Buffer { asked, left } => write!(
                f,
                "up to {} may queue, but only {} of the buffer is unreserved",
                asked.rounded_up(),
                left.rounded_down()
            ),
        }
    }
}

impl Offer {
    /// For people: rounded so that what is said to be accepted is.
    fn text(&self, problem: &Problem) -> String {
        // A longer delay needs less of the link but more of the buffer.
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
            self.smallest_frame
                .map(|frame| format!("a smallest frame of at least {}", frame.rounded_up())),
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        match texts.split_last() {
            None => {
                "no smaller rate, smaller burst or longer delay alone would be accepted".to_owned()
            }
            Some((last, [])) => format!("{last} would be accepted"),
            Some((last, others)) => {
                format!("{}, or {last}, would be accepted", others.join(", "))
            }
        }
    }
}
