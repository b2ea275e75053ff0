//! Why a guarantee is rejected, and what would be accepted instead.

use slicewise_units::{Accounting, BitRate, ByteCount, Duration, Rounded};
use std::fmt;

/// Why a guarantee is rejected. As text: one sentence with the numbers, the free rate, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first condition that fails.
    pub problem: Problem,
    /// Offer that would be accepted.
    pub offer: Box<Offer>,
    /// Rate of the link that no other guarantee has.
    pub free: Free,
}

/// Rate of a link that is not reserved, and which bytes of a frame it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Free {
    /// The rate, as the link counts.
    pub rate: BitRate,
    /// Accounting of the link.
    pub link: Accounting,
    /// Accounting of guarantees: rates and bursts of requests and offers.
    pub counts: Accounting,
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
    /// The link promises no delay.
    NoDelays {
        /// The requested objective.
        delay: Duration,
    },
    /// The guaranteed rates together exceed the link's.
    Rate {
        /// The requested rate, of all slices of the request.
        asked: BitRate,
        /// Rate that it takes of the link if all frames are small, as the link counts.
        on_link: BitRate,
        /// The unreserved rate of the link.
        free: Free,
    },
    /// The burst of a request without a delay cannot be sent by the latest deadline of the link, beside the other guarantees.
    Burst {
        /// The requested burst, of all slices of the request.
        asked: ByteCount,
        /// The largest burst with the requested rate; `None` if none holds a largest frame.
        left: Option<ByteCount>,
        /// The latest deadline.
        latest: Duration,
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
            | Problem::NoDelays { .. }
            | Problem::SmallestAboveLargest { .. } => {
                write!(f, "{}", self.problem)
            }
            Problem::Rate { free, .. } => {
                let layers = (free.link != free.counts).then_some(free);
                let instead = self.offer.text(&self.problem, layers);
                write!(f, "{}: {instead}", self.problem)
            }
            _ => {
                let instead = self.offer.text(&self.problem, None);
                write!(
                    f,
                    "{}; {} of the link is free: {instead}",
                    self.problem, self.free
                )
            }
        }
    }
}

impl fmt::Display for Free {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rate.rounded_down(), self.link)
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
            Self::NoDelays { delay } => write!(
                f,
                "a delay of {delay} is asked for, but the link promises rates only, because its gateway meters slices (P4-TINS): \
                 leave the delay out, or use a link whose gateway has `discipline: guaranteed`"
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
                free,
            } => {
                write!(f, "guarantees {} ({})", asked.rounded_up(), free.counts)?;
                if on_link != asked {
                    let on_link = on_link.rounded_up();
                    write!(f, ", in small frames {on_link} ({})", free.link)?;
                }
                write!(f, ", but only {free} of the link is free")
            }
            Self::Burst {
                asked,
                left,
                latest,
            } => {
                write!(
                    f,
                    "guarantees a burst of {}, but until the latest deadline of the link, {}, ",
                    asked.rounded_up(),
                    latest.rounded_up()
                )?;
                match left {
                    Some(left) => write!(f, "it can send only {} of it", left.rounded_down()),
                    None => f.write_str("it can send no further frame"),
                }
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
                "up to {} may queue, but only {} of the buffer is free",
                asked.rounded_up(),
                left.rounded_down()
            ),
        }
    }
}

impl Offer {
    /// Describes the offer for people: rounded so that the numbers named as accepted are. `layers` are named where the
    /// link counts another one than guarantees.
    fn text(&self, problem: &Problem, layers: Option<Free>) -> String {
        // A longer delay needs less of the link but more of the buffer.
        let at_least = match problem {
            Problem::Buffer { .. } => "",
            _ => "at least ",
        };
        let counted = layers.map_or_else(String::new, |layers| format!(" ({})", layers.counts));
        let texts = [
            self.rate
                .map(|rate| format!("a rate of at most {}{counted}", rate.rounded_down())),
            self.burst
                .map(|burst| format!("a burst of at most {}", burst.rounded_down())),
            self.delay
                .map(|delay| format!("a delay of {at_least}{}", delay.rounded_up())),
            self.count.map(|count| format!("{count} such slices")),
            self.smallest_frame
                .map(|frame| format!("a smallest frame of at least {}", frame.rounded_up())),
            layers
                .map(|layers| format!("`counts: {}` for all guarantees of the link", layers.link)),
            matches!(problem, Problem::Burst { .. })
                .then(|| "a longer `longest` among the `delays` of the link".to_owned()),
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        match texts.split_last() {
            None => {
                "no smaller rate, smaller burst or longer delay alone would be accepted".to_owned()
            }
            Some((last, [])) => format!("write {last}"),
            Some((last, others)) => format!("write {}, or {last}", others.join(", ")),
        }
    }
}
