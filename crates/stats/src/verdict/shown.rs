//! What an objective that is met in all repetitions may lack to be shown to be met: packets, or an end of growing delay.

use super::objectives::{ObjectiveIndicator, ObjectiveTest};
use crate::growth::DelayGrowth;
use crate::observations::SliceObservation;
use crate::pooled::{PooledShare, packets_needed};
use crate::power::MAX_REPETITIONS;

impl ObjectiveTest {
    /// Share of packets that may be lost or late; `None` where the objective is not of that.
    #[must_use]
    pub fn allowed_share(&self) -> Option<f64> {
        let allowed = match self.indicator {
            ObjectiveIndicator::LossRatio => self.limit,
            ObjectiveIndicator::Delay(at) => at.share_beyond(),
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

    /// Repetitions that would send enough packets if the share of those lost or late stays what it is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most `MAX_REPETITIONS`"
    )]
    pub(super) fn repetitions_with_packets(&self, confidence: f64) -> Option<u32> {
        let (allowed, packets) = self.allowed_share().zip(self.packets)?;
        let needed = packets_needed(allowed, confidence)?;
        let is_within = (packets.beyond as f64) < allowed * packets.of as f64;
        let times = (needed as f64 / packets.of as f64).max(1.0) * (1.0 + packets.beyond as f64);
        let repetitions = (f64::from(self.repetitions) * times).ceil();
        (is_within && repetitions <= f64::from(MAX_REPETITIONS)).then_some(repetitions as u32)
    }
}

/// Packets of a slice in all repetitions, and those of them lost or late.
pub(super) fn packets<'o>(
    indicator: ObjectiveIndicator,
    runs: impl Iterator<Item = &'o SliceObservation>,
    confidence: f64,
) -> Option<PooledShare> {
    let counts: Option<Vec<(u64, u64)>> = runs
        .map(|run| {
            let lost = run.steady.lost_frames;
            let beyond = match indicator {
                ObjectiveIndicator::LossRatio => lost,
                ObjectiveIndicator::Delay(_) => lost + run.late_frames?,
                _ => return None,
            };
            Some((beyond, run.steady.sent_frames))
        })
        .collect();
    PooledShare::new(&counts?, confidence)
}

/// ns of delay in a second, if that of a slice grows by more than a tenth of its limit from one half of a run to the other.
pub(super) fn growing<'o>(
    indicator: ObjectiveIndicator,
    limit: f64,
    runs: impl Iterator<Item = &'o SliceObservation>,
) -> Option<f64> {
    let growth: Vec<DelayGrowth> = runs.filter_map(|run| run.delay_growth).collect();
    let growth = DelayGrowth::mean(&growth)?;
    (indicator.is_delay() && growth.ns > limit / 10.0).then(|| growth.per_second())
}
