//! Evidence that an objective which is met in all repetitions may lack: packets, or an end of growing delay.

use super::SampleKind;
use super::objective_test::{ObjectiveIndicator, ObjectiveTest};
use super::runs::MAX_REPETITIONS;
use crate::application::ApplicationRecord;
use crate::description::{Margins, SliceDescription};
use crate::growth::DelayGrowth;
use crate::observations::{RunObservation, SliceObservation};
use crate::pooled::{self, PooledShare, packets_needed};
use crate::projection::Projection;
use crate::record::DelayFigures;

impl ObjectiveTest {
    /// Share of packets that may be lost or late, or of intervals that may not conform; `None` where the objective is not of that.
    #[must_use]
    pub fn allowed_share(&self) -> Option<f64> {
        let allowed = match self.indicator {
            ObjectiveIndicator::LossRatio => self.limit,
            ObjectiveIndicator::Delay(at) => at.share_beyond(),
            ObjectiveIndicator::Availability { .. } => 1.0 - self.limit,
            ObjectiveIndicator::DelayVariation(at)
            | ObjectiveIndicator::CompletionTime(at)
            | ObjectiveIndicator::RequestLatency(at) => at.share_beyond(),
            ObjectiveIndicator::Throughput | ObjectiveIndicator::Goodput => return None,
        };
        (allowed > 0.0).then_some(allowed)
    }

    /// Returns true if the packets of all repetitions are too few, or too many of them lost or late, to show that no
    /// more than allowed are.
    #[must_use]
    pub fn lacks_packets(&self) -> bool {
        let Some(allowed) = self.allowed_share() else {
            return false;
        };
        let needed = packets_needed(allowed, self.runs.confidence);
        match (self.packets, self.values) {
            (Some(packets), _) => packets.upper > allowed,
            (None, Some(values)) => needed.is_none_or(|needed| values < needed),
            (None, None) => false,
        }
    }

    /// Returns true if a run has so few packets that one of them lost or late is too many, and all runs together have
    /// no more than allowed: runs beyond the limit then say how short they are.
    pub(super) fn is_beyond_by_being_short(&self) -> bool {
        let shares = self.allowed_share().zip(self.packets);
        shares.is_some_and(|(allowed, packets)| {
            let allowed_in_all = allowed * packets.of as f64;
            allowed_in_all < f64::from(self.runs.runs) && packets.beyond as f64 <= allowed_in_all
        })
    }

    /// Returns true if it cannot be shown to be met, whatever the runs at hand say: for want of packets, or of an end
    /// of growing delay.
    pub(super) fn is_short(&self) -> bool {
        // Of a capture it is known what every packet had.
        self.runs.sample != SampleKind::Census
            && (self.lacks_packets() || self.growing_per_second.is_some())
    }

    /// Runs that would send enough packets if the share of those lost or late stays what it is.
    pub(super) fn runs_with_packets(&self) -> Option<u32> {
        let allowed = self.allowed_share()?;
        let (of, beyond) = match self.packets {
            Some(packets) => (packets.of as f64, packets.beyond as f64),
            None => (self.values? as f64, 0.0),
        };
        let a_run = of / f64::from(self.runs.runs.max(1));
        // Copies of a run show no more than one.
        let can_be_shown = beyond < allowed * of && self.runs.sample == SampleKind::Sample;
        // With as many events as there are, it takes as many packets more for each.
        let runs = pooled::runs_needed(allowed, a_run / (1.0 + beyond), self.runs.confidence)?;
        (can_be_shown && runs <= MAX_REPETITIONS).then_some(runs)
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

/// Flows, requests or packets received of which only percentiles are known, in all runs.
pub(super) fn values(
    indicator: ObjectiveIndicator,
    runs: &[&RunObservation],
    slice: usize,
    name: &str,
) -> Option<u64> {
    let of_applications = |of: fn(&ApplicationRecord) -> Option<&DelayFigures>| {
        let applications = runs.iter().flat_map(|run| &run.applications);
        let own = applications.filter(|source| source.slice == name);
        own.filter_map(of).map(|times| times.samples).sum()
    };
    match indicator {
        ObjectiveIndicator::DelayVariation(_) => {
            let slices = runs.iter().filter_map(|run| run.slices.get(slice));
            Some(slices.map(|slice| slice.steady.delay.samples).sum())
        }
        ObjectiveIndicator::CompletionTime(_) => {
            Some(of_applications(ApplicationRecord::time_of_begun))
        }
        ObjectiveIndicator::RequestLatency(_) => {
            Some(of_applications(ApplicationRecord::latency_of_due))
        }
        _ => None,
    }
}

/// The limit that growing delay is held against, ns: its own; for any other objective that of the slice's delay, or 100 times the
/// resolution, a tenth of which is a queue of ten frames.
pub(super) fn limit_of_growth(
    indicator: ObjectiveIndicator,
    limit: f64,
    slice: &SliceDescription,
    margins: &Margins,
) -> f64 {
    match slice.objective.and_then(|objective| objective.delay) {
        _ if indicator.is_delay() => limit,
        Some(delay) => delay.limit_ns as f64,
        None => 100.0 * margins.delay_resolution_ns.max(10_000) as f64,
    }
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
    sample: SampleKind,
) -> Option<Projection> {
    let [of_lost, of_late] = runs
        .next()
        .filter(|_| sample == SampleKind::Census)?
        .projected;
    match indicator {
        ObjectiveIndicator::LossRatio => of_lost,
        ObjectiveIndicator::Delay(_) => of_late,
        _ => None,
    }
}
