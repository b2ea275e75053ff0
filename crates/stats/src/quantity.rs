//! Quantities: everything that is measured of a run, each described once.
//!
//! Estimates, published figures, predictions, tables, charts and the page's script iterate over this table. A new
//! quantity is an entry here, its counting in a record, and its documentation.

use crate::application::ApplicationRecord;
use crate::estimate::Estimate;
use crate::observation::{RunObservation, SliceObservation};
use crate::record::Figures;
use crate::words;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use slicewise_units::L1_OVERHEAD_BYTES;
use std::fmt;

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    Rate,
    /// ns.
    Time,
    /// ns².
    TimeSquared,
    /// Fraction of a whole.
    Ratio,
    /// Statistic between 0 and 1 that is no fraction.
    Statistic,
    /// Bytes.
    Bytes,
    /// Events a second, by this name.
    PerSecond(&'static str),
    /// Count or index, by this name.
    Number(&'static str),
}

impl Unit {
    /// Name in the table of published figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "bit/s",
            Self::Time => "ns",
            Self::TimeSquared => "ns2",
            Self::Ratio | Self::Statistic => "ratio",
            Self::Bytes => "bytes",
            Self::PerSecond(name) | Self::Number(name) => name,
        }
    }

    /// A value in words; numbers without a unit have at most this many digits.
    #[must_use]
    pub fn text(self, value: f64, digits: i32) -> String {
        match self {
            Self::Rate => words::rate(value),
            Self::Time => words::time(value),
            Self::TimeSquared => format!("{} ms²", words::digits(value / 1e12, 5)),
            Self::Ratio => words::percent(value),
            Self::Statistic => words::digits(value, 3),
            Self::Bytes => format!("{} kB", words::digits(value / 1e3, 3)),
            Self::PerSecond(_) | Self::Number(_) => words::digits(value, digits),
        }
    }
}

/// Source of a quantity's values; a function returns `None` where there is no sample.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// Figures over a span: of a slice or of all slices together, after the transient or over the whole run.
    Span(fn(&Figures) -> Option<f64>),
    /// The same, for published figures alone.
    Published(fn(&Figures) -> Option<f64>),
    /// A slice, over the whole run.
    Slice(fn(&SliceObservation) -> Option<f64>),
    /// An application, or all of a slice together, over the whole run.
    Applications(fn(&ApplicationRecord) -> Option<f64>),
    /// All slices together.
    Run(fn(&RunObservation) -> Option<f64>),
    /// A queue of the device.
    Queue,
    /// Two repetitions.
    Repetitions,
    /// A slice beside a reference: only verdicts use it.
    Reference,
}

/// Columns of the table, in the order of the entries below.
struct Entry {
    name: &'static str,
    whole: &'static str,
    column: &'static str,
    unit: Unit,
    words: &'static str,
    of: Of,
}

macro_rules! quantities {
    (@suffix Rate) => { "_bits_per_second" };
    (@suffix Time) => { "_ns" };
    (@suffix Bytes) => { "_bytes" };
    (@suffix PerSecond) => { "_per_second" };
    (@suffix $other:ident) => { "" };
    ($($id:ident $name:literal, $unit:ident $(($of_unit:literal))?, $words:literal, $of:expr;)*) => {
        /// A quantity, measured in every run that has samples of it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Quantity {
            $(#[doc = $words] #[serde(rename = $name)] $id,)*
        }

        impl Quantity {
            /// All of them, in output order.
            pub const ALL: &'static [Self] = &[$(Self::$id),*];

            const fn entry(self) -> Entry {
                match self {
                    $(Self::$id => Entry {
                        name: $name,
                        whole: concat!($name, "_whole"),
                        column: concat!($name, quantities!(@suffix $unit)),
                        unit: Unit::$unit $(($of_unit))?,
                        words: $words,
                        of: $of,
                    },)*
                }
            }
        }
    };
}

quantities! {
    Offered "offered", Rate, "rate sent", Of::Span(|f| Some(f.offered_bits_per_second));
    Throughput "throughput", Rate, "throughput", Of::Span(|f| Some(f.throughput_bits_per_second));
    LossRatio "loss_ratio", Ratio, "loss ratio", Of::Span(|f| known(f.sent_frames, f.loss_ratio));
    DelayMean "delay_mean", Time, "mean delay", Of::Span(|f| known(f.delay.samples, f.delay.mean_ns));
    DelayP50 "delay_p50", Time, "median delay", Of::Span(|f| time(f.delay.samples, f.delay.p50_ns));
    DelayP90 "delay_p90", Time, "90th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p90_ns));
    DelayP95 "delay_p95", Time, "95th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p95_ns));
    DelayP99 "delay_p99", Time, "99th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p99_ns));
    DelayP999 "delay_p999", Time, "99.9th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p999_ns));
    DelayP9999 "delay_p9999", Time, "99.99th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p9999_ns));
    DelayP99999 "delay_p99999", Time, "99.999th percentile of delay", Of::Span(|f| time(f.delay.samples, f.delay.p99999_ns));
    DelayMax "delay_max", Time, "largest delay", Of::Span(|f| time(f.delay.samples, f.delay.max_ns));
    PdvMean "pdv_mean", Time, "PDV: mean delay above the smallest", Of::Span(|f| known(f.delay.samples, f.variation.pdv_mean_ns));
    PdvP50 "pdv_p50", Time, "PDV: median", Of::Span(|f| time(f.delay.samples, f.variation.pdv_p50_ns));
    PdvP95 "pdv_p95", Time, "PDV: 95th percentile", Of::Span(|f| time(f.delay.samples, f.variation.pdv_p95_ns));
    PdvP99 "pdv_p99", Time, "PDV: 99th percentile", Of::Span(|f| time(f.delay.samples, f.variation.pdv_p99_ns));
    PdvP999 "pdv_p999", Time, "PDV: 99.9th percentile", Of::Span(|f| time(f.delay.samples, f.variation.pdv_p999_ns));
    PdvMax "pdv_max", Time, "PDV: largest of a run", Of::Span(|f| time(f.delay.samples, f.variation.pdv_max_ns));
    IpdvMean "ipdv_mean", Time, "IPDV: mean absolute difference between consecutive packets",
        Of::Span(|f| known(f.variation.ipdv_samples, f.variation.ipdv_mean_ns));
    IpdvP95 "ipdv_p95", Time, "IPDV: 95th percentile", Of::Span(|f| time(f.variation.ipdv_samples, f.variation.ipdv_p95_ns));
    IpdvP99 "ipdv_p99", Time, "IPDV: 99th percentile", Of::Span(|f| time(f.variation.ipdv_samples, f.variation.ipdv_p99_ns));
    IpdvP999 "ipdv_p999", Time, "IPDV: 99.9th percentile", Of::Span(|f| time(f.variation.ipdv_samples, f.variation.ipdv_p999_ns));
    IpdvMax "ipdv_max", Time, "IPDV: largest of a run", Of::Span(|f| time(f.variation.ipdv_samples, f.variation.ipdv_max_ns));
    LossBurstFrames "loss_burst_frames", Number("frames"), "frames lost in a burst",
        Of::Span(|f| known(f.loss_bursts, f.loss_burst_frames as f64 / f.loss_bursts as f64));

    ThroughputL1 "throughput_l1", Rate, "throughput counted on layer 1", Of::Published(throughput_l1);
    DelayMin "delay_min", Time, "smallest delay", Of::Slice(|s| time(s.whole.delay.samples, s.whole.delay.min_ns));
    LossEpisodeLength "loss_episode_length", Time, "length of a loss episode", Of::Slice(|s| s.loss_episodes.mean_length_ns());
    LossEpisodeFrames "loss_episode_frames", Number("frames"), "frames lost in an episode", Of::Slice(|s| s.loss_episodes.mean_lost_frames());
    LossEpisodeRatio "loss_episode_ratio", Ratio, "loss in episodes", Of::Slice(|s| s.loss_episodes.loss_ratio());
    IatSamples "iat_samples", Number("intervals"), "number of inter-arrival times", Of::Slice(|s| Some(s.iat.samples as f64));
    IatMean "iat_mean", Time, "mean inter-arrival time", Of::Slice(|s| known(s.iat.samples, s.iat.mean_ns));
    IatVariance "iat_variance", TimeSquared, "variance of the inter-arrival time",
        Of::Slice(|s| (s.iat.samples > 1).then_some(s.iat.variance_ns2));
    ReceivedIatSamples "received_iat_samples", Number("intervals"), "number of inter-arrival times as received",
        Of::Slice(|s| Some(s.received_iat.as_ref()?.samples as f64));
    ReceivedIatMean "received_iat_mean", Time, "mean inter-arrival time as received",
        Of::Slice(|s| s.received_iat.as_ref().and_then(|iat| known(iat.samples, iat.mean_ns)));
    ReceivedIatVariance "received_iat_variance", TimeSquared, "variance of the inter-arrival time as received",
        Of::Slice(|s| s.received_iat.as_ref().filter(|iat| iat.samples > 1).map(|iat| iat.variance_ns2));
    IatKolmogorovSmirnov "iat_kolmogorov_smirnov", Statistic, "Kolmogorov–Smirnov statistic of inter-arrival times", Of::Repetitions;
    QueueLength "queue_length", Number("frames"), "mean queue length", Of::Queue;
    TransientEnd "transient_end", Time, "end of the transient",
        Of::Run(|r| r.transient.steady_state_reached.then_some(r.transient.end_ns as f64));
    TransientThroughput "transient_throughput", Rate, "rate before the transient ends",
        Of::Run(|r| known(r.transient.end_ns, r.transient.throughput_before_bits_per_second));
    AggregateThroughput "aggregate_throughput", Rate, "rate of all slices",
        Of::Run(|r| Some(r.transient.throughput_after_bits_per_second));
    AggregateThroughputWhole "aggregate_throughput_whole", Rate, "rate of all slices, transient included",
        Of::Run(|r| Some(r.slices.iter().map(|s| s.whole.throughput_bits_per_second).sum()));

    ReceivedShare "received_share", Ratio, "received share of the rate sent", Of::Reference;
    QueueingDelayMean "queueing_delay_mean", Time, "mean queueing delay", Of::Reference;
    QueueingDelayP99 "queueing_delay_p99", Time, "99th percentile of queueing delay", Of::Reference;
    GoodputWithinShare "goodput_within_share", Rate, "goodput within the share", Of::Reference;

    Goodput "goodput", Rate, "goodput", Of::Applications(|a| Some(a.transport.goodput_bits_per_second));
    RetransmittedRatio "retransmitted_ratio", Ratio, "retransmitted segments", Of::Applications(|a| {
        known(a.transport.segments, a.transport.retransmitted_segments as f64 / a.transport.segments as f64)
    });
    Timeouts "timeouts", Number("time-outs"), "retransmission time-outs", Of::Applications(|a| Some(a.transport.timeouts as f64));
    RttMean "rtt_mean", Time, "mean round-trip time", Of::Applications(|a| known(a.transport.rtt_samples, a.transport.rtt_mean_ns));
    WindowMean "window_mean", Bytes, "mean congestion window", Of::Applications(|a| {
        known(a.transport.window_samples, a.transport.window_mean_bytes)
    });
    Fairness "fairness", Number("index"), "Jain's index of goodput", Of::Applications(|a| a.transport.fairness);
    RequestsOffered "requests_offered", PerSecond("requests/s"), "requests due a second",
        Of::Applications(|a| Some(a.requests?.offered_per_second));
    RequestsAchieved "requests_achieved", PerSecond("responses/s"), "responses a second",
        Of::Applications(|a| Some(a.requests?.achieved_per_second));
    RequestLatencyMean "request_latency_mean", Time, "mean request latency",
        Of::Applications(|a| known(a.requests?.latency.samples, a.requests?.latency.mean_ns));
    RequestLatencyP50 "request_latency_p50", Time, "median request latency",
        Of::Applications(|a| time(a.requests?.latency.samples, a.requests?.latency.p50_ns));
    RequestLatencyP90 "request_latency_p90", Time, "90th percentile of request latency",
        Of::Applications(|a| time(a.requests?.latency.samples, a.requests?.latency.p90_ns));
    RequestLatencyP99 "request_latency_p99", Time, "99th percentile of request latency",
        Of::Applications(|a| time(a.requests?.latency.samples, a.requests?.latency.p99_ns));
    RequestLatencyP999 "request_latency_p999", Time, "99.9th percentile of request latency",
        Of::Applications(|a| time(a.requests?.latency.samples, a.requests?.latency.p999_ns));
    CompletionTimeMean "completion_time_mean", Time, "mean completion time",
        Of::Applications(|a| known(a.flows?.completion_time.samples, a.flows?.completion_time.mean_ns));
    CompletionTimeP50 "completion_time_p50", Time, "median completion time",
        Of::Applications(|a| time(a.flows?.completion_time.samples, a.flows?.completion_time.p50_ns));
    CompletionTimeP90 "completion_time_p90", Time, "90th percentile of completion time",
        Of::Applications(|a| time(a.flows?.completion_time.samples, a.flows?.completion_time.p90_ns));
    CompletionTimeP99 "completion_time_p99", Time, "99th percentile of completion time",
        Of::Applications(|a| time(a.flows?.completion_time.samples, a.flows?.completion_time.p99_ns));
    QualityMean "quality_mean", Number("quality"), "mean quality of video", Of::Applications(|a| a.video?.quality_mean);
    BitRateMean "bit_rate_mean", Rate, "mean bit rate of video", Of::Applications(|a| a.video?.bit_rate_mean);
    SwitchesPerMinute "switches_per_minute", Number("switches/min"), "changes of quality a minute",
        Of::Applications(|a| a.video?.switches_per_minute);
    StartUpMean "start_up_mean", Time, "mean time until video plays", Of::Applications(|a| a.video?.start_up_mean_ns);
    StalledRatio "stalled_ratio", Ratio, "time in which video is stopped", Of::Applications(|a| a.video?.stalled_ratio);
}

/// Frames below the shortest of Ethernet count as they are.
fn throughput_l1(f: &Figures) -> Option<f64> {
    let overhead =
        L1_OVERHEAD_BYTES as f64 * f.received_frames as f64 / f.received_bytes.max(1) as f64;
    Some(f.throughput_bits_per_second * (1.0 + overhead))
}

fn known(samples: u64, value: f64) -> Option<f64> {
    (samples > 0).then_some(value)
}

fn time(samples: u64, ns: u64) -> Option<f64> {
    known(samples, ns as f64)
}

impl Quantity {
    /// Name in study files and on the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Name in tables of data, which ends with the unit.
    #[must_use]
    pub const fn column(self) -> &'static str {
        self.entry().column
    }

    /// Unit.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.entry().unit
    }

    /// Name in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.entry().words
    }

    /// Returns true if more of it is better: rates and the received share.
    #[must_use]
    pub const fn is_better_if_more(self) -> bool {
        matches!(self.unit(), Unit::Rate) || matches!(self, Self::ReceivedShare)
    }

    /// Quantities of figures over a span, in output order.
    pub fn of_spans() -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|quantity| matches!(quantity.entry().of, Of::Span(_)))
    }

    /// Quantities of applications, in output order.
    pub fn of_applications() -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|quantity| matches!(quantity.entry().of, Of::Applications(_)))
    }

    /// Returns true if it is measured of each slice instead of a whole run or a queue.
    #[must_use]
    pub const fn is_of_a_slice(self) -> bool {
        !matches!(self.entry().of, Of::Run(_) | Of::Queue)
    }

    /// Value over a span; `None` without samples, or if it is no quantity of a span.
    #[must_use]
    pub fn over(self, figures: &Figures) -> Option<f64> {
        match self.entry().of {
            Of::Span(of) => of(figures),
            _ => None,
        }
    }

    /// Value of an application in one run; `None` without samples, or if it is no quantity of applications.
    #[must_use]
    pub fn of(self, application: &ApplicationRecord) -> Option<f64> {
        match self.entry().of {
            Of::Applications(of) => of(application),
            _ => None,
        }
    }
}

impl fmt::Display for Quantity {
    /// Writes its name in verdicts: "p99 delay".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words().replace("99th percentile of", "p99"))
    }
}

/// A quantity that a publication states: over the whole run instead of after the transient, if `whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The quantity.
    pub quantity: Quantity,
    /// Over the whole run; of a quantity over a span alone.
    pub whole: bool,
}

impl From<Quantity> for Metric {
    fn from(quantity: Quantity) -> Self {
        Self {
            quantity,
            whole: false,
        }
    }
}

impl Metric {
    /// All of them, in output order.
    pub fn all() -> impl Iterator<Item = Self> {
        let whole = |quantity| Self {
            quantity,
            whole: true,
        };
        let all = Quantity::ALL.iter().copied();
        let is_over_a_span =
            |quantity: &Quantity| matches!(quantity.entry().of, Of::Span(_) | Of::Published(_));
        let over_spans = all.clone().filter(is_over_a_span);
        let stated = all.filter(|quantity| !matches!(quantity.entry().of, Of::Reference));
        stated.map(Self::from).chain(over_spans.map(whole))
    }

    /// Metric with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|metric| metric.name() == name)
    }

    /// Name in study files: "delay_mean", "delay_mean_whole".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.whole {
            true => self.quantity.entry().whole,
            false => self.quantity.name(),
        }
    }

    /// Name in words.
    #[must_use]
    pub fn words(self) -> String {
        match self.whole {
            true => format!("{}, transient included", self.quantity.words()),
            false => self.quantity.words().to_owned(),
        }
    }

    /// Value in one run: of a slice and the sources of its applications, of a queue, or of all slices together.
    pub(crate) fn of(self, run: &RunObservation, subject: Subject<'_>) -> Option<f64> {
        let slice = match subject.slice {
            Some((index, _)) => Some(run.slices.get(index)?),
            None => None,
        };
        match self.quantity.entry().of {
            Of::Span(of) | Of::Published(of) if self.whole => of(&slice?.whole),
            Of::Span(of) | Of::Published(of) => {
                of(slice.map_or(&run.aggregate, |slice| &slice.steady))
            }
            Of::Slice(of) => of(slice?),
            Of::Applications(_) => {
                let (_, name) = subject.slice?;
                self.quantity.of(run.applications_of(name)?)
            }
            Of::Run(of) => of(run),
            Of::Queue => {
                let mut queues = run.queues.iter();
                let queue = queues.find(|queue| Some(queue.queue.as_str()) == subject.queue)?;
                Some(queue.mean_frames)
            }
            Of::Repetitions | Of::Reference => None,
        }
    }
}

/// Estimates over repetitions of the quantities that some run has, in output order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimates(Vec<(Quantity, Estimate)>);

impl Estimates {
    /// Estimates each quantity from its values, one of a run; quantities without values are left out.
    pub(crate) fn new(
        quantities: impl Iterator<Item = Quantity>,
        values: impl Fn(Quantity) -> Vec<f64>,
        confidence: f64,
    ) -> Self {
        let estimate = |quantity| Some((quantity, Estimate::of(&values(quantity), confidence)?));
        Self(quantities.filter_map(estimate).collect())
    }

    /// Estimate of a quantity; `None` if no run has it.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<&Estimate> {
        self.iter()
            .find(|(of, _)| *of == quantity)
            .map(|(_, estimate)| estimate)
    }

    /// Quantities with their estimates.
    pub fn iter(&self) -> impl Iterator<Item = (Quantity, &Estimate)> {
        self.0
            .iter()
            .map(|(quantity, estimate)| (*quantity, estimate))
    }
}

/// Subject of a value: a slice by place and name, or a queue by name; all slices together with neither.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub slice: Option<(usize, &'a str)>,
    pub queue: Option<&'a str>,
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| de::Error::custom(format!("unknown metric `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_metrics_have_a_name_in_common_and_each_is_found_by_it() {
        for metric in Metric::all() {
            assert_eq!(Metric::named(metric.name()), Some(metric));
        }
        assert_eq!(Metric::named("delay"), None);
    }
}
