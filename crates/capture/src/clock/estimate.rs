//! Verdict on two clocks, and an estimate of their difference.

use super::floor::{DelayFloor, Line};

/// Comparison of the two clocks by the packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockReport {
    /// Packets that, by the clocks, arrived before they were sent; both directions.
    pub negative_delays: u64,
    /// Packets compared; both directions.
    pub packets: u64,
    /// Smallest forward delay by the clocks, ns; `None` where no forward packet was compared.
    pub smallest_delay_ns: Option<i64>,
    /// Verdict on the clocks: delays are valid as measured if they agree.
    pub verdict: ClockVerdict,
    /// Estimated offset between the clocks, where one can be estimated.
    pub estimate: Option<ClockEstimate>,
}

/// Agreement of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockVerdict {
    /// No packet was compared.
    Unknown,
    /// They may agree: no delay is negative by as much as the resolution of timestamps. They may still differ by less than the smallest delay.
    Agree,
    /// They do not: packets arrived before they were sent.
    Disagree {
        /// The largest negative delay, ns: the clocks differ by more than this.
        by_more_than_ns: u64,
    },
}

/// An estimate of the clock of the receiving point minus that of the sending point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockEstimate {
    /// Time of the estimate, by the clock of the sending point, ns.
    pub at_ns: u64,
    /// The offset at that time, ns.
    pub offset_ns: i64,
    /// Its drift, parts in 10⁹.
    pub drift_ppb: f64,
    /// How it was estimated.
    pub method: ClockMethod,
    /// Largest error of the offset if drift is constant, ns; `None` where no bound is known.
    pub offset_uncertainty_ns: Option<u64>,
    /// Half the difference between the drifts of the two directions, parts in 10⁹; `None` with one.
    pub drift_uncertainty_ppb: Option<f64>,
}

/// How an offset was estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMethod {
    /// Half the difference between the smallest delays of the two directions, as in NTP (RFC 5905,
    /// section 8), each estimated as a floor by Moon, Skelly & Towsley (1999).
    BothDirections,
    /// The floor of the forward direction alone. Drift is found; the offset is not, only its largest
    /// possible value.
    ForwardOnly,
    /// The floor of the reverse direction alone: the offset is its smallest possible value.
    ReverseOnly,
}

impl ClockMethod {
    /// Assumption under which the offset is right.
    #[must_use]
    pub const fn assumption(self) -> &'static str {
        match self {
            Self::BothDirections => "the smallest delay is the same in both directions",
            Self::ForwardOnly => {
                "the smallest delay is zero (delays are relative to the smallest, not one-way \
                 delays)"
            }
            Self::ReverseOnly => {
                "the smallest delay of the reverse direction is zero (forward delays include it)"
            }
        }
    }
}

impl ClockReport {
    /// Judge the clocks by the delays of forward and reverse packets.
    #[must_use]
    pub fn new(forward: &DelayFloor, reverse: &DelayFloor) -> Self {
        let smallest_delay_ns = forward.smallest_delay_ns();
        let early = [forward.early_by_ns(), reverse.early_by_ns()];
        let verdict = match early.into_iter().flatten().max() {
            Some(by_more_than_ns) => ClockVerdict::Disagree { by_more_than_ns },
            None if forward.packets() + reverse.packets() == 0 => ClockVerdict::Unknown,
            None => ClockVerdict::Agree,
        };
        Self {
            negative_delays: forward.negative_delays() + reverse.negative_delays(),
            packets: forward.packets() + reverse.packets(),
            smallest_delay_ns,
            verdict,
            estimate: ClockEstimate::new(forward, reverse),
        }
    }
}

impl ClockEstimate {
    fn new(forward: &DelayFloor, reverse: &DelayFloor) -> Option<Self> {
        match (forward.line(), reverse.line()) {
            (Some(forth), Some(back)) => {
                let at_ns = forward.first_ns()?.min(reverse.first_ns()?);
                Some(Self::of_both(at_ns, &forth, &back))
            }
            (Some(forth), None) => Some(Self {
                at_ns: time_of(forward.first_ns()?),
                offset_ns: rounded(forth.at(forward.first_ns()?)),
                drift_ppb: forth.slope * 1e9,
                method: ClockMethod::ForwardOnly,
                offset_uncertainty_ns: None,
                drift_uncertainty_ppb: None,
            }),
            (None, Some(back)) => Some(Self {
                at_ns: time_of(reverse.first_ns()?),
                offset_ns: rounded(-back.at(reverse.first_ns()?)),
                drift_ppb: back.slope * -1e9,
                method: ClockMethod::ReverseOnly,
                offset_uncertainty_ns: None,
                drift_uncertainty_ppb: None,
            }),
            (None, None) => None,
        }
    }

    /// The forward floor is offset + smallest delay, the reverse floor smallest delay − offset: their
    /// difference is twice the offset, their sum the smallest round trip.
    fn of_both(at_ns: i64, forth: &Line, back: &Line) -> Self {
        let (ahead, behind) = (forth.at(at_ns), back.at(at_ns));
        Self {
            at_ns: time_of(at_ns),
            offset_ns: rounded((ahead - behind) / 2.0),
            drift_ppb: (forth.slope - back.slope) / 2.0 * 1e9,
            method: ClockMethod::BothDirections,
            offset_uncertainty_ns: Some(rounded((ahead + behind) / 2.0).max(0).unsigned_abs()),
            drift_uncertainty_ppb: Some((forth.slope + back.slope).abs() / 2.0 * 1e9),
        }
    }

    /// Converts a time of the receiving point to the clock of the sending point, ns; at least 0.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "less than 1 ns in 10⁵ s of 100 ppm"
    )]
    pub fn correct(&self, received_ns: u64) -> u64 {
        let received = i64::try_from(received_ns).unwrap_or(i64::MAX);
        let at = i64::try_from(self.at_ns).unwrap_or(i64::MAX);
        let elapsed = received.saturating_sub(self.offset_ns).saturating_sub(at);
        let drift = self.drift_ppb * 1e-9;
        let drifted = rounded(elapsed as f64 * (drift / (1.0 + drift)));
        time_of(at.saturating_add(elapsed).saturating_sub(drifted))
    }
}

fn time_of(time_ns: i64) -> u64 {
    u64::try_from(time_ns).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}
