//! Indicators of influence and comparisons, their values in a run, and its spans.

pub(super) use crate::application_summary::TIMES;
use crate::description::ComparedDelay;
use crate::observations::{RunObservation, SliceObservation};
use crate::quantity::Quantity;
use crate::record::Figures;

/// Indicators of packets, in the order of the report.
pub(super) const fn of_packets(delay: ComparedDelay, throughput: Quantity) -> [Quantity; 4] {
    let (mean, p99) = match delay {
        ComparedDelay::Queueing => (Quantity::QueueingDelayMean, Quantity::QueueingDelayP99),
        ComparedDelay::OneWay => (Quantity::DelayMean, Quantity::DelayP99),
    };
    [throughput, Quantity::LossRatio, mean, p99]
}

/// Indicator of a slice in one run; `None` if the run has none. `smallest_ns` is the slice's delay without
/// queueing.
pub(super) fn value(
    indicator: Quantity,
    run: &RunObservation,
    slice: usize,
    smallest_ns: u64,
) -> Option<f64> {
    let slice = run.slices.get(slice)?;
    let queueing = |delay: Quantity| {
        let delay = delay.over(&slice.steady)?;
        Some((delay - smallest_ns as f64).max(0.0))
    };
    match indicator {
        Quantity::Throughput => Some(slice.served_bits_per_second),
        Quantity::ReceivedShare => {
            let offered = slice.steady.offered_bits_per_second;
            (offered > 0.0).then(|| slice.served_bits_per_second / offered)
        }
        Quantity::QueueingDelayMean => queueing(Quantity::DelayMean),
        Quantity::QueueingDelayP99 => queueing(Quantity::DelayP99),
        Quantity::Goodput => Some(slice.applications?.goodput_bits_per_second),
        Quantity::GoodputWithinShare => {
            Some(slice.applications?.goodput_within_share_bits_per_second)
        }
        _ => match TIMES.iter().position(|time| *time == indicator) {
            Some(place) => slice.applications?.times_ns[place],
            None => indicator.over(&slice.steady),
        },
    }
}

/// Span of a run that figures cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// After the transient.
    Steady,
    /// The whole run, as what applications got.
    Whole,
}

impl Span {
    pub(super) const fn of(self, slice: &SliceObservation) -> &Figures {
        match self {
            Self::Steady => &slice.steady,
            Self::Whole => &slice.whole,
        }
    }
}

/// Returns true if a slice sends anything in a span of a run.
pub(super) fn sends(run: &RunObservation, slice: usize, span: Span) -> bool {
    (run.slices.get(slice)).is_some_and(|slice| span.of(slice).sent_frames > 0)
}
