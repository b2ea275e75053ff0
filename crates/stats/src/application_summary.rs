//! Figures of applications that are compared and summarised: of one source, or of all applications of a slice.

use crate::application::{
    ApplicationRecord, FailureCount, FlowFigures, RequestFigures, VideoFigures,
};
use crate::estimate::Estimate;
use crate::record::DelayFigures;
use crate::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure of applications. Of several sources together it is the sum of rates, the largest of percentiles, and the
/// mean of everything else by how many samples each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationQuantity {
    /// Rate of bytes that reached the application in order.
    Goodput,
    /// Segments with data that had been sent before / segments with data.
    RetransmittedRatio,
    /// Mean round-trip time.
    RttMean,
    /// Mean congestion window of a connection.
    WindowMean,
    /// Jain's index of the goodput of connections.
    Fairness,
    /// Requests due a second.
    RequestsOffered,
    /// Responses a second.
    RequestsAchieved,
    /// Mean latency of requests, from when they were due.
    RequestLatencyMean,
    /// Its median.
    RequestLatencyP50,
    /// Its 99th percentile.
    RequestLatencyP99,
    /// Its 99.9th percentile.
    RequestLatencyP999,
    /// Mean completion time of flows.
    CompletionTimeMean,
    /// Its median.
    CompletionTimeP50,
    /// Its 99th percentile.
    CompletionTimeP99,
    /// Mean place of a segment's quality in the ladder, from 0.
    QualityMean,
    /// Mean bit rate of a segment.
    BitRateMean,
    /// Changes of quality, a client and minute.
    SwitchesPerMinute,
    /// Mean time from asking for the first segment to playing it.
    StartUpMean,
    /// Time in which playing was stopped / time since it began.
    StalledRatio,
}

/// What a figure of applications counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationUnit {
    /// bit/s.
    Rate,
    /// ns.
    Time,
    /// A fraction of a whole.
    Ratio,
    /// Bytes.
    Bytes,
    /// A number without a unit.
    Number,
}

/// How a figure of several sources comes of those of each.
enum Together {
    Sum,
    Largest,
    /// By these weights.
    Mean(f64),
}

impl ApplicationQuantity {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 19] = [
        Self::Goodput,
        Self::RetransmittedRatio,
        Self::RttMean,
        Self::WindowMean,
        Self::Fairness,
        Self::RequestsOffered,
        Self::RequestsAchieved,
        Self::RequestLatencyMean,
        Self::RequestLatencyP50,
        Self::RequestLatencyP99,
        Self::RequestLatencyP999,
        Self::CompletionTimeMean,
        Self::CompletionTimeP50,
        Self::CompletionTimeP99,
        Self::QualityMean,
        Self::BitRateMean,
        Self::SwitchesPerMinute,
        Self::StartUpMean,
        Self::StalledRatio,
    ];

    /// Its name in tables of data, which ends with its unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput_bits_per_second",
            Self::RetransmittedRatio => "retransmitted_ratio",
            Self::RttMean => "rtt_mean_ns",
            Self::WindowMean => "window_mean_bytes",
            Self::Fairness => "fairness",
            Self::RequestsOffered => "requests_offered_per_second",
            Self::RequestsAchieved => "requests_achieved_per_second",
            Self::RequestLatencyMean => "request_latency_mean_ns",
            Self::RequestLatencyP50 => "request_latency_p50_ns",
            Self::RequestLatencyP99 => "request_latency_p99_ns",
            Self::RequestLatencyP999 => "request_latency_p999_ns",
            Self::CompletionTimeMean => "completion_time_mean_ns",
            Self::CompletionTimeP50 => "completion_time_p50_ns",
            Self::CompletionTimeP99 => "completion_time_p99_ns",
            Self::QualityMean => "quality_mean",
            Self::BitRateMean => "bit_rate_mean_bits_per_second",
            Self::SwitchesPerMinute => "switches_per_minute",
            Self::StartUpMean => "start_up_mean_ns",
            Self::StalledRatio => "stalled_ratio",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> ApplicationUnit {
        match self {
            Self::Goodput | Self::BitRateMean => ApplicationUnit::Rate,
            Self::RetransmittedRatio | Self::StalledRatio => ApplicationUnit::Ratio,
            Self::WindowMean => ApplicationUnit::Bytes,
            Self::RttMean
            | Self::RequestLatencyMean
            | Self::RequestLatencyP50
            | Self::RequestLatencyP99
            | Self::RequestLatencyP999
            | Self::CompletionTimeMean
            | Self::CompletionTimeP50
            | Self::CompletionTimeP99
            | Self::StartUpMean => ApplicationUnit::Time,
            Self::Fairness
            | Self::RequestsOffered
            | Self::RequestsAchieved
            | Self::QualityMean
            | Self::SwitchesPerMinute => ApplicationUnit::Number,
        }
    }

    /// A value of it in words.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self.unit() {
            ApplicationUnit::Rate => words::rate(value),
            ApplicationUnit::Time => words::time(value),
            ApplicationUnit::Ratio => words::percent(value),
            ApplicationUnit::Bytes => format!("{} kB", words::digits(value / 1e3, 3)),
            ApplicationUnit::Number => words::digits(value, 4),
        }
    }

    /// Its value over these sources of one run; `None` where none of them has it.
    #[must_use]
    pub fn of<'a>(self, records: impl IntoIterator<Item = &'a ApplicationRecord>) -> Option<f64> {
        let (mut sum, mut weights, mut found) = (0.0, 0.0, false);
        for record in records {
            let Some((value, together)) = self.of_source(record) else {
                continue;
            };
            match together {
                Together::Sum => sum += value,
                Together::Largest => sum = f64::max(sum, value),
                Together::Mean(weight) => {
                    sum += value * weight;
                    weights += weight;
                }
            }
            found = true;
        }
        found.then(|| if weights > 0.0 { sum / weights } else { sum })
    }

    /// Its value of one source, and how it is put together with that of others.
    fn of_source(self, record: &ApplicationRecord) -> Option<(f64, Together)> {
        let transport = &record.transport;
        let by = |value: f64, samples: u64| {
            (samples > 0).then_some((value, Together::Mean(samples as f64)))
        };
        match self {
            Self::Goodput => Some((transport.goodput_bits_per_second, Together::Sum)),
            Self::RetransmittedRatio => {
                let again = transport.retransmitted_segments as f64;
                by(again / transport.segments as f64, transport.segments)
            }
            Self::RttMean => by(transport.rtt_mean_ns, transport.rtt_samples),
            Self::WindowMean => by(transport.window_mean_bytes, transport.window_samples),
            Self::Fairness => by(transport.fairness?, transport.connections),
            Self::QualityMean
            | Self::BitRateMean
            | Self::SwitchesPerMinute
            | Self::StartUpMean
            | Self::StalledRatio => self.of_video(record.video.as_ref()?),
            Self::CompletionTimeMean | Self::CompletionTimeP50 | Self::CompletionTimeP99 => {
                self.of_flows(record.flows.as_ref()?)
            }
            _ => self.of_requests(record.requests.as_ref()?),
        }
    }

    fn of_requests(self, requests: &RequestFigures) -> Option<(f64, Together)> {
        let latency = &requests.latency;
        let largest = |ns: u64| (latency.samples > 0).then_some((ns as f64, Together::Largest));
        match self {
            Self::RequestsOffered => Some((requests.offered_per_second, Together::Sum)),
            Self::RequestsAchieved => Some((requests.achieved_per_second, Together::Sum)),
            Self::RequestLatencyP50 => largest(latency.p50_ns),
            Self::RequestLatencyP99 => largest(latency.p99_ns),
            Self::RequestLatencyP999 => largest(latency.p999_ns),
            _ => (latency.samples > 0)
                .then_some((latency.mean_ns, Together::Mean(latency.samples as f64))),
        }
    }

    fn of_flows(self, flows: &FlowFigures) -> Option<(f64, Together)> {
        let time = &flows.completion_time;
        let value = match self {
            Self::CompletionTimeP50 => (time.p50_ns as f64, Together::Largest),
            Self::CompletionTimeP99 => (time.p99_ns as f64, Together::Largest),
            _ => (time.mean_ns, Together::Mean(time.samples as f64)),
        };
        (time.samples > 0).then_some(value)
    }

    fn of_video(self, video: &VideoFigures) -> Option<(f64, Together)> {
        let value = match self {
            Self::BitRateMean => video.bit_rate_mean,
            Self::SwitchesPerMinute => video.switches_per_minute,
            Self::StartUpMean => video.start_up_mean_ns,
            Self::StalledRatio => video.stalled_ratio,
            _ => video.quality_mean,
        };
        // A client may play what arrived before the span.
        Some((value?, Together::Mean(video.segments.max(1) as f64)))
    }
}

/// What the applications of a slice got in a run, as verdicts compare it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SliceApplications {
    /// Rate of bytes that reached applications in order, bit/s.
    pub goodput_bits_per_second: f64,
    /// The part of it that lies within the slice's share: of a slice that is served more than its share, as
    /// much less as it is served more.
    pub goodput_within_share_bits_per_second: f64,
    /// Mean completion time of flows, ns.
    pub completion_time_mean_ns: Option<f64>,
    /// 99th percentile of it, ns.
    pub completion_time_p99_ns: Option<f64>,
    /// Mean latency of requests, ns.
    pub request_latency_mean_ns: Option<f64>,
    /// 99th percentile of it, ns.
    pub request_latency_p99_ns: Option<f64>,
    /// One of them sends as much as its transport takes, for as long as it lasts.
    pub wants_all: bool,
    /// The goodput that they ask for, bit/s: requests what they would get if each were answered, transfers of limited rate
    /// that. `None` where it is not known, or no request was answered.
    pub goodput_asked_bits_per_second: Option<f64>,
    /// None wants all, and one is of those that ask until they have what they want, and it is not known how much that is.
    pub may_have_enough: bool,
}

impl SliceApplications {
    /// Those of one slice, which is served at a rate and has a share; `None` where there are none.
    #[must_use]
    pub fn of(records: &[&ApplicationRecord], served: f64, share: f64) -> Option<Self> {
        let figure = |quantity: ApplicationQuantity| quantity.of(records.iter().copied());
        let goodput = figure(ApplicationQuantity::Goodput)?;
        let within = if served > share { share / served } else { 1.0 };
        Some(Self {
            goodput_bits_per_second: goodput,
            goodput_within_share_bits_per_second: goodput * within,
            completion_time_mean_ns: figure(ApplicationQuantity::CompletionTimeMean),
            completion_time_p99_ns: figure(ApplicationQuantity::CompletionTimeP99),
            request_latency_mean_ns: figure(ApplicationQuantity::RequestLatencyMean),
            request_latency_p99_ns: figure(ApplicationQuantity::RequestLatencyP99),
            wants_all: records.iter().any(|record| record.wants_all()),
            goodput_asked_bits_per_second: ApplicationRecord::goodput_asked(records),
            may_have_enough: records.iter().all(|record| !record.wants_all())
                && records.iter().any(|record| record.requests.is_none()),
        })
    }
}

impl ApplicationRecord {
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSummary {
    /// Name of the source; `None` for all those of the slice, where there are several.
    pub source: Option<String>,
    /// Name of its slice.
    pub slice: String,
    /// The figures that it has.
    pub figures: Vec<ApplicationEstimate>,
    /// Connections that ended before their work was done, in all runs, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureCount>,
}

/// An estimate over repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationEstimate {
    /// What is estimated.
    pub quantity: ApplicationQuantity,
    /// Its estimate.
    pub estimate: Estimate,
}

impl ApplicationSummary {
    /// The estimate of a figure; `None` where no run has it.
    #[must_use]
    pub fn of(&self, quantity: ApplicationQuantity) -> Option<&Estimate> {
        let mut figures = self.figures.iter();
        let found = figures.find(|figure| figure.quantity == quantity);
        found.map(|figure| &figure.estimate)
    }
}

/// What the applications of a cell come to: each source, in the order of the first run, then slices with
/// several of them.
pub(crate) fn summarise(runs: &[&[ApplicationRecord]], confidence: f64) -> Vec<ApplicationSummary> {
    let mut subjects: Vec<(Option<&str>, &str)> = Vec::new();
    for record in runs.iter().copied().flatten() {
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
        let figures = ApplicationQuantity::ALL.into_iter().filter_map(|quantity| {
            let of_run = |run: &&[ApplicationRecord]| quantity.of(run.iter().filter(is_its));
            let values: Vec<f64> = runs.iter().filter_map(of_run).collect();
            let estimate = Estimate::of(&values, confidence)?;
            Some(ApplicationEstimate { quantity, estimate })
        });
        ApplicationSummary {
            source: source.map(str::to_owned),
            slice: slice.to_owned(),
            figures: figures.collect(),
            failures: failures(runs.iter().copied().flatten().filter(is_its)),
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
