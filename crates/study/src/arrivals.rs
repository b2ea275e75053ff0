//! The most that sources can send in any interval: arrival curves, as network calculus has them.
//!
//! The curve of a source is the smaller of at most two lines: packets cannot follow each other
//! closer than some spacing, and cannot be ahead of their pace by more than a jitter. What a server
//! of constant rate has waiting at most is the largest distance between the sum of the curves and
//! its own line (J.-Y. Le Boudec, P. Thiran, *Network Calculus*, Springer 2001, section 1.4).

use crate::params::{HostParams, PatternParams, SourceParams};
use slicewise_units::{BitRate, ByteCount, NANOS_PER_SECOND};

/// Nanobits in a byte.
const NANOBITS_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

/// In any w ns, both ends included, at most `1 + (w + jitter) × num / den` packets.
#[derive(Debug, Clone, Copy)]
struct Line {
    jitter: u64,
    num: u128,
    den: u128,
}

/// The most packets of a source in any interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalCurve {
    pace: Option<Line>,
    spacing: Option<Line>,
    /// The longest interval at which the spacing is what limits, ns.
    crossing: u64,
}

/// Why a source has no arrival curve, to follow its name.
pub(crate) type Boundless = &'static str;

impl ArrivalCurve {
    /// The curve of a source, from what its pattern may do at worst.
    pub(crate) fn of(source: &SourceParams, hosts: &HostParams) -> Result<Self, Boundless> {
        // A packet lasts `den / num` ns, exactly; Pace rounds each departure down to whole ones.
        let den = u128::from(source.counted_bytes) * NANOBITS_PER_BYTE;
        let num = u128::from(source.rate.bits_per_second());
        if num == 0 || den == 0 {
            return Err("has no rate");
        }
        let pace = |jitter: u64| Line {
            jitter: jitter.saturating_add(1),
            num,
            den,
        };
        let curve = match source.pattern {
            // Its clock may be slower than the rate says, never faster.
            PatternParams::Cbr => Self {
                pace: Some(pace(0)),
                spacing: None,
                crossing: 0,
            },
            PatternParams::Iperf3 => {
                // A packet owed waits for the next tick of its own machine, which comes up to the
                // slack late; those owed with it follow a send cost apart, and are less late than
                // the first as long as the cost is below their interval.
                let timer = hosts.timer_of(source.machine);
                let cost = hosts.send_cost.nanos();
                let late = timer.nanos().saturating_add(hosts.timer_slack.nanos());
                let late = late.max(cost);
                let pace = pace(late);
                let spacing = (cost > 0).then_some(Line {
                    jitter: 0,
                    num: 1,
                    den: u128::from(cost),
                });
                let keeps_pace = u128::from(cost) * num < den;
                Self {
                    pace: keeps_pace.then_some(pace),
                    spacing,
                    crossing: match spacing {
                        Some(_) if keeps_pace => crossing(&pace, cost).ok_or("is too slow")?,
                        _ => 0,
                    },
                }
            }
            PatternParams::Poisson => {
                return Err("is Poisson, and may send any number of packets at once");
            }
            PatternParams::Replay { .. } => {
                return Err("replays a recording, of which the largest burst is not known");
            }
        };
        match source.on_off {
            // Each time it begins again it owes nothing. A pause of a packet's interval makes up
            // for the packet that may leave at once then.
            Some(on_off) if !curve.makes_up_for_a_start(on_off.off.nanos()) => {
                Err("pauses for less than the time between two packets")
            }
            _ => Ok(curve),
        }
    }

    fn makes_up_for_a_start(&self, pause: u64) -> bool {
        self.lines()
            .all(|line| u128::from(pause) * line.num >= line.den)
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        self.pace.into_iter().chain(self.spacing)
    }

    /// What packets of `bytes` come to in `window` ns at most, nanobits, rounded up; `None` where
    /// that is too much to tell.
    fn amount(&self, bytes: u64, window: u64) -> Option<u128> {
        let packet = u128::from(bytes) * NANOBITS_PER_BYTE;
        let mut least = None::<u128>;
        for line in self.lines() {
            let time = u128::from(window) + u128::from(line.jitter);
            let more = packet
                .checked_mul(time)?
                .checked_mul(line.num)?
                .div_ceil(line.den);
            let amount = packet.checked_add(more)?;
            least = Some(least.map_or(amount, |least| least.min(amount)));
        }
        least
    }

    /// Rate in the long run of packets of `bytes`, bit/s, rounded up.
    fn rate(&self, bytes: u64) -> Option<u128> {
        let per_packet = u128::from(bytes) * NANOBITS_PER_BYTE;
        self.lines()
            .filter_map(|line| {
                let product = per_packet.checked_mul(line.num)?;
                Some(product.div_ceil(line.den))
            })
            .min()
    }
}

/// Where the line of the spacing `cost` meets that of the pace, which rises more slowly.
fn crossing(pace: &Line, cost: u64) -> Option<u64> {
    let cost = u128::from(cost);
    let slower = pace.den.checked_sub(cost * pace.num)?;
    let product = (u128::from(pace.jitter) * cost).checked_mul(pace.num)?;
    u64::try_from(product.checked_div(slower)?).ok()
}

/// What a server has to do at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// So many nanobits ahead of its own line at most.
    AtMost(u128),
    /// In the long run so much more than it serves, bit/s.
    Grows(u128),
}

/// The most by which sources, each with the bytes one of its packets counts as, are ever ahead of
/// a server of `rate`: in a first-in first-out queue what may wait, and of a token bucket the burst
/// they need. `None` where the numbers are too large to tell.
pub(crate) fn backlog(sources: &[(ArrivalCurve, u64)], rate: BitRate) -> Option<Backlog> {
    let served = u128::from(rate.bits_per_second());
    let mut offered = 0u128;
    for (curve, bytes) in sources {
        offered = offered.checked_add(curve.rate(*bytes)?)?;
    }
    if offered > served {
        return Some(Backlog::Grows(offered));
    }
    // The distance is concave: over whole nanoseconds it is largest at one beside a crossing.
    let crossings = sources.iter().map(|(curve, _)| curve.crossing);
    let mut most = 0u128;
    for window in crossings
        .flat_map(|at| [at, at.saturating_add(1)])
        .chain([0])
    {
        let mut sum = 0u128;
        for (curve, bytes) in sources {
            sum = sum.checked_add(curve.amount(*bytes, window)?)?;
        }
        most = most.max(sum.saturating_sub(served * u128::from(window)));
    }
    Some(Backlog::AtMost(most))
}

/// Whole bytes, rounded up.
pub(crate) fn bytes_up(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits.div_ceil(NANOBITS_PER_BYTE)).unwrap_or(u64::MAX))
}
