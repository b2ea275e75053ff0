//! Figures of applications that are compared and summarised: of one source, or of all applications of a slice.

pub use crate::application::SliceApplications;
use crate::application::{ApplicationRecord, FailureCount};
use crate::observation::RunObservation;
use crate::quantity::{Estimates, Quantity};
use crate::record::DelayFigures;
use std::collections::BTreeMap;

/// Times of applications that verdicts compare, in the order of the report.
pub(crate) const TIMES: [Quantity; 4] = [
    Quantity::CompletionTimeMean,
    Quantity::CompletionTimeP99,
    Quantity::RequestLatencyMean,
    Quantity::RequestLatencyP99,
];

impl SliceApplications {
    /// Returns the results of one slice, which is served at a rate and has a share; `None` where there are none.
    #[must_use]
    pub fn of(records: &[&ApplicationRecord], served: f64, share: f64) -> Option<Self> {
        let together = ApplicationRecord::pooled(records)?;
        let figure = |quantity: Quantity| quantity.of(&together);
        let goodput = figure(Quantity::Goodput)?;
        let within = if served > share { share / served } else { 1.0 };
        Some(Self {
            goodput_bits_per_second: goodput,
            goodput_within_share_bits_per_second: goodput * within,
            times_ns: TIMES.map(figure),
            wants_all: records.iter().any(|record| record.wants_all()),
            goodput_asked_bits_per_second: ApplicationRecord::goodput_asked(records),
            may_have_enough: records.iter().all(|record| !record.wants_all())
                && records.iter().any(|record| record.requests.is_none()),
        })
    }
}

impl ApplicationRecord {
    /// Returns how many requests were answered, or flows completed, and of how many that were due, or had begun; `None` of
    /// none.
    #[must_use]
    pub fn finished(&self) -> Option<(u64, u64)> {
        let (finished, all) = match (&self.requests, &self.flows) {
            (Some(of), _) => {
                let answered = of.latency.samples;
                (answered, answered.saturating_add(of.unanswered))
            }
            (None, Some(of)) => {
                let completed = of.completion_time.samples;
                (completed, completed.max(of.time_of_begun.samples))
            }
            (None, None) => return None,
        };
        (all > 0).then_some((finished, all))
    }

    /// Times of all requests that were due.
    pub(crate) fn latency_of_due(&self) -> Option<&DelayFigures> {
        Some(&self.requests.as_ref()?.latency_of_due).filter(|times| times.samples > 0)
    }

    /// Times of all flows that had begun.
    pub(crate) fn time_of_begun(&self) -> Option<&DelayFigures> {
        Some(&self.flows.as_ref()?.time_of_begun).filter(|times| times.samples > 0)
    }

    /// True of bulk transfers without an end, though their rate may be limited.
    #[must_use]
    pub const fn wants_all(&self) -> bool {
        self.requests.is_none() && self.flows.is_none() && self.video.is_none()
    }

    /// As [`SliceApplications::goodput_asked_bits_per_second`]. Each source by itself: responses of one may be larger than
    /// those of another.
    pub(crate) fn goodput_asked(records: &[&Self]) -> Option<f64> {
        let asked = |record: &&Self| match &record.requests {
            Some(requests) => {
                let answered = requests.achieved_per_second / requests.offered_per_second;
                let goodput = record.transport.goodput_bits_per_second;
                (answered > 0.0).then(|| goodput / answered)
            }
            None => Some(record.limit_bits_per_second? as f64),
        };
        records.iter().map(asked).sum()
    }
}

/// The application of one source in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationSummary {
    /// Name of the source; `None` for all those of the slice, where there are several.
    pub source: Option<String>,
    /// Name of its slice.
    pub slice: String,
    /// Estimates of the quantities that it has.
    pub estimates: Estimates,
    /// Connections that ended before their work was done, in all runs, by reason.
    pub failures: Vec<FailureCount>,
}

/// Summarises the applications of a cell: each source, in the order of the first run, then slices with several of them.
pub(crate) fn summarise(runs: &[&RunObservation], confidence: f64) -> Vec<ApplicationSummary> {
    let sources = || runs.iter().flat_map(|run| &run.applications);
    let mut subjects: Vec<(Option<&str>, &str)> = Vec::new();
    for record in sources() {
        let subject = (Some(record.source.as_str()), record.slice.as_str());
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let mut several: Vec<&str> = Vec::new();
    for (_, slice) in &subjects {
        let of_slice = subjects.iter().filter(|(_, other)| other == slice);
        if of_slice.count() > 1 && !several.contains(slice) {
            several.push(slice);
        }
    }
    subjects.extend(several.into_iter().map(|slice| (None, slice)));
    let summary = |(source, slice): (Option<&str>, &str)| {
        let is_its = |record: &&ApplicationRecord| {
            record.slice == slice && source.is_none_or(|source| record.source == source)
        };
        let values = |quantity: Quantity| {
            let of_run = |run: &&RunObservation| match source {
                Some(_) => quantity.of(run.applications.iter().find(is_its)?),
                None => quantity.of(run.applications_of(slice)?),
            };
            runs.iter().filter_map(of_run).collect()
        };
        ApplicationSummary {
            source: source.map(str::to_owned),
            slice: slice.to_owned(),
            estimates: Estimates::new(Quantity::of_applications(), values, confidence),
            failures: failures(sources().filter(is_its)),
        }
    };
    subjects.into_iter().map(summary).collect()
}

/// Failures of several records, by reason.
fn failures<'a>(records: impl Iterator<Item = &'a ApplicationRecord>) -> Vec<FailureCount> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for failure in records.flat_map(|record| &record.failures) {
        let sum = sums.entry(&failure.reason).or_default();
        *sum = sum.saturating_add(failure.connections);
    }
    let count = |(reason, connections): (&str, u64)| FailureCount {
        reason: reason.to_owned(),
        connections,
    };
    sums.into_iter().map(count).collect()
}
