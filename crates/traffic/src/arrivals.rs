//! The most that sources can send in any interval: arrival curves, as network calculus has them.
//!
//! The curve of a source is the smaller of at most two lines: packets cannot follow each other
//! closer than some spacing, and cannot be ahead of their pace by more than a jitter. What a server
//! of constant rate has waiting at most is the largest distance between the sum of the curves and
//! its own line (J.-Y. Le Boudec, P. Thiran, *Network Calculus*, Springer 2001, section 1.4). Traffic that was
//! delayed by between 0 and J has the curve that it had, J further (ibid., section 1.5).

use crate::{HostTiming, PatternParams, Periods, SourceParams};
use slicewise_units::{Accounting, BitRate, ByteCount, FrameLengths, NANOS_PER_SECOND};

/// Nanobits in a byte.
const NANOBITS_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

/// Of a curve: in any w ns, both ends included, at most so many nanobits beyond one largest packet as
/// `(w + jitter) × num / den`.
#[derive(Debug, Clone, Copy)]
struct Line {
    jitter: u64,
    num: u128,
    den: u128,
}

/// The most that a source sends in any interval.
#[derive(Debug, Clone, Copy)]
pub struct ArrivalCurve {
    /// Nanobits of its largest packet.
    largest: u128,
    pace: Option<Line>,
    spacing: Option<Line>,
    /// The longest interval at which the spacing is what limits, ns.
    crossing: u64,
    /// By how much packets may have been delayed more than others, ns.
    variation: u64,
}

/// Why a source has no arrival curve, to follow its name.
pub type Boundless = &'static str;

impl ArrivalCurve {
    /// The curve of a source, from what its pattern may do at worst, in the bytes that are counted.
    pub fn of(
        source: &SourceParams,
        hosts: &HostTiming,
        counting: Counting,
    ) -> Result<Self, Boundless> {
        let sizes = Extremes::of(source, counting)?;
        let rate = u128::from(source.rate.bits_per_second());
        // Pace rounds each departure down to a whole nanosecond.
        let pace = |jitter: u64| Line {
            jitter: jitter.saturating_add(1),
            num: rate * sizes.steepest.0,
            den: sizes.steepest.1,
        };
        let curve = match source.pattern {
            // Its clock may be slower than the rate says, never faster.
            PatternParams::Cbr => Self {
                largest: sizes.largest,
                pace: Some(pace(0)),
                spacing: None,
                crossing: 0,
                variation: 0,
            },
            PatternParams::Iperf3 => {
                // A packet owed waits for the next tick of its own machine, which comes up to the
                // slack late; those owed with it follow a send cost apart, and are less late than
                // the first as long as the cost is below their interval.
                let timer = hosts.timer_of(source.machine);
                let cost = hosts.send_cost.nanos();
                let late = timer.nanos().saturating_add(hosts.timer_slack.nanos());
                let pace = pace(late.max(cost));
                let spacing = (cost > 0).then_some(Line {
                    jitter: 0,
                    num: sizes.largest,
                    den: u128::from(cost),
                });
                let keeps_pace = u128::from(cost) * rate < sizes.shortest;
                Self {
                    largest: sizes.largest,
                    pace: keeps_pace.then_some(pace),
                    spacing,
                    crossing: match spacing {
                        Some(spacing) if keeps_pace => {
                            crossing(&pace, &spacing).ok_or("is too slow")?
                        }
                        _ => 0,
                    },
                    variation: 0,
                }
            }
            PatternParams::Poisson => {
                return Err("is Poisson, and may send any number of packets at once");
            }
            PatternParams::Replay { .. } => {
                return Err("replays a recording, of which the largest burst is not known");
            }
        };
        let makes_up_for_a_start = |pause: u128| {
            let paced = curve.pace.is_none() || pause * rate >= sizes.longest;
            paced && curve.spacing.is_none_or(|line| pause >= line.den)
        };
        match source.on_off {
            Some(on_off) if on_off.periods == Periods::Exponential => {
                Err("pauses at random, also for less than the time between two packets")
            }
            // Each time it begins again it owes nothing. A pause of a packet's interval makes up
            // for the packet that may leave at once then.
            Some(on_off) if !makes_up_for_a_start(u128::from(on_off.off.nanos())) => {
                Err("pauses for less than the time between two packets")
            }
            _ => Ok(curve),
        }
    }

    /// The curve of what a token bucket lets through.
    #[must_use]
    pub fn of_bucket(rate: BitRate, burst: ByteCount) -> Self {
        Self {
            largest: u128::from(burst.bytes()) * NANOBITS_PER_BYTE,
            pace: Some(Line {
                jitter: 0,
                num: u128::from(rate.bits_per_second()),
                den: 1,
            }),
            spacing: None,
            crossing: 0,
            variation: 0,
        }
    }

    /// The curve after a delay that varies by at most `nanos` from packet to packet.
    #[must_use]
    pub const fn delayed(self, nanos: u64) -> Self {
        Self {
            variation: self.variation.saturating_add(nanos),
            ..self
        }
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        self.pace.into_iter().chain(self.spacing)
    }

    /// Returns the most that packets come to in `window` ns, nanobits, rounded up; `None` where that is too much to
    /// tell.
    fn amount(&self, window: u64) -> Option<u128> {
        let mut least = None::<u128>;
        for line in self.lines() {
            let time = u128::from(window) + u128::from(self.variation) + u128::from(line.jitter);
            let more = time.checked_mul(line.num)?.div_ceil(line.den);
            let amount = self.largest.checked_add(more)?;
            least = Some(least.map_or(amount, |least| least.min(amount)));
        }
        least
    }

    /// Rate in the long run, bit/s, rounded up.
    fn rate(&self) -> Option<u128> {
        let rates = self.lines().map(|line| line.num.div_ceil(line.den));
        rates.min()
    }
}

/// How a server counts frames.
#[derive(Debug, Clone, Copy)]
pub struct Counting {
    /// The layer.
    pub accounting: Accounting,
    /// Smaller frames count as this; zero if each counts as what it is.
    pub smallest_frame: ByteCount,
}

impl From<Accounting> for Counting {
    fn from(accounting: Accounting) -> Self {
        Self {
            accounting,
            smallest_frame: ByteCount::ZERO,
        }
    }
}

/// Extremes of the sizes of a source's packets. Each lasts as long as the source's rate takes for the bytes that the
/// rate counts of it, which may be others than those that a server counts.
struct Extremes {
    /// Nanobits that a server counts of the largest packet.
    largest: u128,
    /// Bytes that a server counts and the rate counts, of the packets that come to most at the rate.
    steepest: (u128, u128),
    /// Nanobits that the rate counts of the packet it counts least of.
    shortest: u128,
    /// The same of the packet it counts most of.
    longest: u128,
}

impl Extremes {
    fn of(source: &SourceParams, counting: Counting) -> Result<Self, Boundless> {
        if source.rate == BitRate::ZERO {
            return Err("has no rate");
        }
        let mut extremes = Self {
            largest: 0,
            steepest: (0, 1),
            shortest: u128::MAX,
            longest: 0,
        };
        for sized in source.weighted_sizes() {
            let frame = FrameLengths {
                l2_bytes: sized.size.l2_bytes,
                l3_offset: source.headers.l3_offset(),
            };
            let counted_frame = counting.accounting.count(frame);
            let bytes = u128::from(counted_frame.max(counting.smallest_frame).bytes());
            let counted = u128::from(sized.size.counted_bytes);
            if counted == 0 {
                return Err("has packets without a byte that its rate counts");
            }
            extremes.largest = extremes.largest.max(bytes * NANOBITS_PER_BYTE);
            if bytes * extremes.steepest.1 > extremes.steepest.0 * counted {
                extremes.steepest = (bytes, counted);
            }
            extremes.shortest = extremes.shortest.min(counted * NANOBITS_PER_BYTE);
            extremes.longest = extremes.longest.max(counted * NANOBITS_PER_BYTE);
        }
        Ok(extremes)
    }
}

/// Where the line of the spacing meets that of the pace, which rises more slowly.
fn crossing(pace: &Line, spacing: &Line) -> Option<u64> {
    let slope = pace.num.checked_mul(spacing.den)?;
    let slower = spacing.num.checked_mul(pace.den)?.checked_sub(slope)?;
    let product = u128::from(pace.jitter).checked_mul(slope)?;
    u64::try_from(product.checked_div(slower)?).ok()
}

/// Most work that a server has ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// So many nanobits ahead of its own line at most.
    AtMost(u128),
    /// In the long run so much more than it serves, bit/s.
    Grows(u128),
}

/// The most by which sources are ever ahead of a server of `rate`: in a first-in first-out queue what
/// may wait, and of a token bucket the burst they need. `None` where the numbers are too large to tell.
pub fn backlog(sources: &[ArrivalCurve], rate: BitRate) -> Option<Backlog> {
    let served = u128::from(rate.bits_per_second());
    let mut offered = 0u128;
    for curve in sources {
        offered = offered.checked_add(curve.rate()?)?;
    }
    if offered > served {
        return Some(Backlog::Grows(offered));
    }
    // The distance is concave: over whole nanoseconds it is largest at one beside a crossing.
    let crossings = sources.iter();
    let crossings = crossings.map(|curve| curve.crossing.saturating_sub(curve.variation));
    let mut most = 0u128;
    for window in crossings
        .flat_map(|at| [at, at.saturating_add(1)])
        .chain([0])
    {
        let mut sum = 0u128;
        for curve in sources {
            sum = sum.checked_add(curve.amount(window)?)?;
        }
        most = most.max(sum.saturating_sub(served * u128::from(window)));
    }
    Some(Backlog::AtMost(most))
}

/// Most that sources send in `window` ns, both ends included, nanobits; `None` where that is too much to tell.
pub fn amount(sources: &[ArrivalCurve], window: u64) -> Option<u128> {
    let amounts = sources.iter().map(|curve| curve.amount(window));
    amounts
        .reduce(|sum, amount| sum?.checked_add(amount?))
        .unwrap_or(Some(0))
}

/// Whole bytes, rounded up.
pub fn bytes_up(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits.div_ceil(NANOBITS_PER_BYTE)).unwrap_or(u64::MAX))
}
