//! What influence and comparisons compare, and its value in a run.

use super::Indicator;
use crate::description::ComparedDelay;
use crate::observations::RunObservation;

impl Indicator {
    /// What is compared, in the order of the report.
    pub(super) const fn compared(delay: ComparedDelay, throughput: Self) -> [Self; 4] {
        let (mean, p99) = match delay {
            ComparedDelay::Queueing => (Self::QueueingDelayMean, Self::QueueingDelayP99),
            ComparedDelay::OneWay => (Self::DelayMean, Self::DelayP99),
        };
        [throughput, Self::LossRatio, mean, p99]
    }

    /// What is compared of applications, in the order of the report: the goodput that is given, and times.
    pub(super) const fn of_applications(goodput: Self) -> [Self; 5] {
        [
            goodput,
            Self::CompletionTimeMean,
            Self::CompletionTimeP99,
            Self::RequestLatencyMean,
            Self::RequestLatencyP99,
        ]
    }

    /// The indicator of a slice in one run; `None` where the run has none. `smallest_ns` is the
    /// slice's delay without queueing.
    pub(super) fn of(self, run: &RunObservation, slice: usize, smallest_ns: u64) -> Option<f64> {
        let slice = run.slices.get(slice)?;
        let figures = &slice.steady;
        let delay = &figures.delay;
        let of_delay = |value: f64| (delay.samples > 0).then_some(value);
        let smallest = smallest_ns as f64;
        match self {
            Self::Throughput => Some(slice.served_bits_per_second),
            Self::ReceivedShare => {
                let offered = figures.offered_bits_per_second;
                (offered > 0.0).then(|| slice.served_bits_per_second / offered)
            }
            Self::LossRatio => (figures.sent_frames > 0).then_some(figures.loss_ratio),
            Self::DelayMean => of_delay(delay.mean_ns),
            Self::DelayP99 => of_delay(delay.p99_ns as f64),
            Self::QueueingDelayMean => of_delay((delay.mean_ns - smallest).max(0.0)),
            Self::QueueingDelayP99 => of_delay(delay.p99_ns.saturating_sub(smallest_ns) as f64),
            Self::Goodput => slice.applications.map(|of| of.goodput_bits_per_second),
            Self::GoodputWithinShare => {
                let applications = slice.applications;
                applications.map(|of| of.goodput_within_share_bits_per_second)
            }
            Self::CompletionTimeMean => slice.applications?.completion_time_mean_ns,
            Self::CompletionTimeP99 => slice.applications?.completion_time_p99_ns,
            Self::RequestLatencyMean => slice.applications?.request_latency_mean_ns,
            Self::RequestLatencyP99 => slice.applications?.request_latency_p99_ns,
        }
    }
}
