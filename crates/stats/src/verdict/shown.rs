//! What an objective that is met in all repetitions may lack to be shown to be met: packets, or an end of growing delay.

use super::Basis;
use super::objectives::{ObjectiveIndicator, ObjectiveTest};
use super::runs::MAX_REPETITIONS;
use crate::growth::DelayGrowth;
use crate::observations::SliceObservation;
use crate::pooled::{PooledShare, packets_needed};
use crate::projection::Projection;

impl ObjectiveTest {
    /// Share of packets that may be lost or late, or of intervals that may not conform; `None` where the objective is not of that.
    #[must_use]
    pub fn allowed_share(&self) -> Option<f64> {
        let allowed = match self.indicator {
            ObjectiveIndicator::LossRatio => self.limit,
            ObjectiveIndicator::Delay(at) => at.share_beyond(),
            ObjectiveIndicator::Availability { .. } => 1.0 - self.limit,
            _ => return None,
        };
        (allowed > 0.0).then_some(allowed)
    }

    /// Whether the packets of all repetitions are too few, or too many of them lost or late, to show that no more than allowed are.
    #[must_use]
    pub fn lacks_packets(&self) -> bool {
        let allowed = self.allowed_share().zip(self.packets);
        allowed.is_some_and(|(allowed, packets)| packets.upper > allowed)
    }

    /// Whether it cannot be shown to be met, whatever the runs at hand say: for want of packets, or of an end of growing delay.
    pub(super) fn is_short(&self) -> bool {
        // Of a capture it is known what every packet had.
        self.runs.basis != Basis::Census
            && (self.lacks_packets() || self.growing_per_second.is_some())
    }

    /// Runs that would send enough packets if the share of those lost or late stays what it is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most `MAX_REPETITIONS`"
    )]
    pub(super) fn runs_with_packets(&self) -> Option<u32> {
        let (allowed, packets) = self.allowed_share().zip(self.packets)?;
        let needed = packets_needed(allowed, self.runs.confidence)?;
        let is_within = (packets.beyond as f64) < allowed * packets.of as f64;
        let times = (needed as f64 / packets.of as f64).max(1.0) * (1.0 + packets.beyond as f64);
        let repetitions = (f64::from(self.runs.runs) * times).ceil();
        // Copies of a run show no more than one.
        let is_enough = is_within && self.runs.basis == Basis::Sample;
        (is_enough && repetitions <= f64::from(MAX_REPETITIONS)).then_some(repetitions as u32)
    }
}

/// Packets of a slice in all repetitions, and those of them lost or late; or its intervals, and those that do not conform.
pub(super) fn packets<'o>(
    indicator: ObjectiveIndicator,
    runs: impl Iterator<Item = &'o SliceObservation>,
    confidence: f64,
) -> Option<PooledShare> {
    let counts: Option<Vec<(u64, u64)>> = runs
        .map(|run| {
            let (lost, sent) = (run.steady.lost_frames, run.steady.sent_frames);
            match indicator {
                ObjectiveIndicator::LossRatio => Some((lost, sent)),
                ObjectiveIndicator::Delay(_) => Some((lost + run.late_frames?, sent)),
                ObjectiveIndicator::Availability { .. } => {
                    let intervals = run.intervals?;
                    let failed = intervals.all - intervals.conforming;
                    Some((failed.into(), intervals.all.into()))
                }
                _ => None,
            }
        })
        .collect();
    PooledShare::new(&counts?, confidence)
}

/// ns of delay in a second, if that of a slice is shown to grow by more than a tenth of `limit_ns` from one half of its runs to the other.
pub(super) fn growing<'o>(
    limit_ns: f64,
    runs: impl Iterator<Item = &'o SliceObservation>,
    confidence: f64,
) -> Option<f64> {
    let growth: Vec<DelayGrowth> = runs.filter_map(|run| run.delay_growth).collect();
    let growth = DelayGrowth::shown(&growth, confidence)?;
    (growth.ns > limit_ns / 10.0).then(|| growth.per_second())
}

/// Of one capture: what it says of the time after it.
pub(super) fn projection<'o>(
    indicator: ObjectiveIndicator,
    mut runs: impl Iterator<Item = &'o SliceObservation>,
    basis: Basis,
) -> Option<Projection> {
    let [of_lost, of_late] = runs.next().filter(|_| basis == Basis::Census)?.projected;
    match indicator {
        ObjectiveIndicator::LossRatio => of_lost,
        ObjectiveIndicator::Delay(_) => of_late,
        _ => None,
    }
}
