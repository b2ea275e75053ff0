//! The scalars of many runs: the input of summaries, verdicts and published figures.
//!
//! A record contains time series and distributions, some 100 kB; some 3 kB per run of two slices are kept here, so
//! that thousands of runs fit. Runs may be added in any order: results depend only on policy, scenario
//! and repetition.

use crate::application::{ApplicationRecord, ApplicationSeries};
use crate::application_summary::SliceApplications;
use crate::availability;
use crate::backend::BackendKind;
use crate::description::{SliceDescription, StudyDescription};
use crate::flow::FlowRecord;
use crate::growth::DelayGrowth;
use crate::loss_episodes::LossEpisodes;
use crate::mser;
pub use crate::observation::{RunObservation, SliceObservation};
use crate::opportunity;
use crate::plot::{Distributed, PlotX};
use crate::projection::Projection;
use crate::quantity::Quantity;
use crate::record::{IatFigures, OTHER_INPUTS, RunKey, RunRecord, SCHEMA_VERSION, SliceRecord};
use crate::tail;
use crate::testbed::TestbedRecord;
use serde::{Deserialize, Serialize};
use slicewise_units::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a record is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Written by another schema version.
    #[error(
        "the record has schema version {found}, this program reads version {SCHEMA_VERSION}: run the study again"
    )]
    SchemaVersion {
        /// Version of the record.
        found: u32,
    },
    /// Of a run with other inputs than the study's.
    #[error("{OTHER_INPUTS}")]
    OtherInputs,
    /// A policy, scenario or slice that the study does not have.
    #[error("record names the {what} `{name}`, which the study does not have")]
    Unknown {
        /// "policy", "scenario" or "slices".
        what: &'static str,
        /// As the record names it.
        name: String,
    },
    /// The same run twice.
    #[error(
        "duplicate record: repetition {repetition} of policy `{policy}`, scenario `{scenario}`"
    )]
    Duplicate {
        /// Policy.
        policy: String,
        /// Scenario.
        scenario: String,
        /// Repetition.
        repetition: u32,
    },
    /// Impossible values.
    #[error(
        "record of repetition {repetition} of policy `{policy}`, scenario `{scenario}` is damaged: {problem}"
    )]
    Damaged {
        /// Policy.
        policy: String,
        /// Scenario.
        scenario: String,
        /// Repetition.
        repetition: u32,
        /// Description of the problem.
        problem: &'static str,
    },
}

/// How the runs at hand represent all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// A sample of all runs.
    Sample,
    /// One run, and all others are copies of it: nothing in them is random.
    Copies,
    /// All there is: one capture, of which everything is known.
    Census,
}

impl SampleKind {
    /// Runs of a cell that say something of their own.
    pub(crate) const fn distinct(self) -> usize {
        match self {
            Self::Copies => 1,
            Self::Sample | Self::Census => usize::MAX,
        }
    }

    /// Of what is held against something else: two captures are no more than a pair.
    pub(crate) fn of_pairs(self, other: Self) -> Self {
        match (self, other) {
            (Self::Copies, Self::Copies) => Self::Copies,
            _ => Self::Sample,
        }
    }
}

/// The scalars of all runs of a study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observations {
    /// By policy and scenario (their index in the study), then by repetition.
    cells: BTreeMap<(usize, usize), BTreeMap<u32, RunObservation>>,
}

impl Observations {
    /// True where a run of the policy was added, by its place in the study.
    #[must_use]
    pub fn has_runs_of_policy(&self, policy: usize) -> bool {
        self.cells.keys().any(|(of, _)| *of == policy)
    }

    /// Keep the scalars of `record`, a run of `study`.
    ///
    /// # Errors
    /// If the record does not belong to this study, is a duplicate, or is damaged; nothing is kept then.
    pub fn add(&mut self, study: &StudyDescription, record: &RunRecord) -> Result<(), RecordError> {
        if record.schema_version != SCHEMA_VERSION {
            return Err(RecordError::SchemaVersion {
                found: record.schema_version,
            });
        }
        let key = &record.key;
        let unknown = |what, name: &str| RecordError::Unknown {
            what,
            name: name.to_owned(),
        };
        let policy = study.policies.iter().position(|p| p.name == key.policy);
        let policy = policy.ok_or_else(|| unknown("policy", &key.policy))?;
        let study = &*study.under(policy);
        let scenario = study.scenarios.iter().position(|s| s.name == key.scenario);
        let scenario = scenario.ok_or_else(|| unknown("scenario", &key.scenario))?;
        if key.inputs != study.inputs_of(&key.policy, &key.scenario) {
            return Err(RecordError::OtherInputs);
        }
        let names = record.slices.iter().map(|s| s.slice.as_str());
        if !names
            .clone()
            .eq(study.slices.iter().map(|s| s.name.as_str()))
        {
            return Err(unknown("slices", &names.collect::<Vec<_>>().join(", ")));
        }
        check(record)?;

        let compares_iat = compares_iat(study, key);
        let cycle_ns = study.scenarios[scenario].cycle_ns;
        let cycle = Duration::from_nanos(cycle_ns);
        let observation = RunObservation {
            repetition: key.repetition,
            seed: key.seed,
            transient: record.transient,
            slices: (record.slices.iter().zip(&study.slices))
                .map(|(slice, description)| {
                    observe(study, record, slice, description, cycle, compares_iat)
                })
                .collect(),
            applications: without_series(record),
            pooled_applications: pooled_applications(record),
            queues: record.queues.clone(),
            aggregate: record.aggregate,
            opportunity: opportunity::of_run(study, record, cycle_ns),
            has_no_delays: record
                .capture
                .as_ref()
                .is_some_and(|capture| capture.clock.leaves_no_delays()),
            idle_delay_p99_ns: (record.testbed.as_ref()).and_then(TestbedRecord::noise_ns),
        };
        let cell = self.cells.entry((policy, scenario)).or_default();
        if cell.contains_key(&key.repetition) {
            return Err(RecordError::Duplicate {
                policy: key.policy.clone(),
                scenario: key.scenario.clone(),
                repetition: key.repetition,
            });
        }
        cell.insert(key.repetition, observation);
        Ok(())
    }

    /// Number of runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.values().map(BTreeMap::len).sum()
    }

    /// True if there is no run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The runs of a cell, by repetition; `policy` and `scenario` are indices in the study.
    pub fn cell(&self, policy: usize, scenario: usize) -> impl Iterator<Item = &RunObservation> {
        self.cells
            .get(&(policy, scenario))
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// Returns true if the runs of a cell are copies of one: with nothing random in it, another run would be the same.
    fn is_deterministic(&self, policy: usize, scenario: usize) -> bool {
        let mut runs = self.cell(policy, scenario);
        let Some(mut copy) = runs.next().cloned() else {
            return false;
        };
        let mut others = runs.peekable();
        others.peek().is_some()
            && others.all(|run| {
                (copy.repetition, copy.seed) = (run.repetition, run.seed);
                copy == *run
            })
    }

    /// How the runs of a cell of this study represent all runs.
    #[must_use]
    pub fn sample(&self, study: &StudyDescription, policy: usize, scenario: usize) -> SampleKind {
        if study.is_without_chance && self.is_deterministic(policy, scenario) {
            SampleKind::Copies
        } else if study.is_of(BackendKind::Captured) && self.cell(policy, scenario).count() == 1 {
            SampleKind::Census
        } else {
            SampleKind::Sample
        }
    }

    /// The runs of a cell, by repetition; one of those that are copies of one.
    pub(crate) fn distinct(
        &self,
        sample: SampleKind,
        policy: usize,
        scenario: usize,
    ) -> impl Iterator<Item = &RunObservation> {
        self.cell(policy, scenario).take(sample.distinct())
    }

    /// One run of a cell.
    #[must_use]
    pub fn run(&self, policy: usize, scenario: usize, repetition: u32) -> Option<&RunObservation> {
        self.cells.get(&(policy, scenario))?.get(&repetition)
    }

    /// The smallest one-way delay of a slice in any run of a policy, ns: its delay without queueing. 0
    /// if nothing arrived.
    #[must_use]
    pub fn smallest_delay_ns(&self, policy: usize, slice: usize) -> u64 {
        let runs = self.cells.iter().filter(|((p, _), _)| *p == policy);
        runs.flat_map(|(_, runs)| runs.values())
            .filter_map(|run| Some(&run.slices.get(slice)?.whole.delay))
            .filter(|delay| delay.samples > 0)
            .map(|delay| delay.min_ns)
            .min()
            .unwrap_or(0)
    }

    /// One value per run of a cell, where the run has it.
    pub fn values(
        &self,
        policy: usize,
        scenario: usize,
        value: impl Fn(&RunObservation) -> Option<f64>,
    ) -> Vec<f64> {
        self.cell(policy, scenario).filter_map(value).collect()
    }
}

/// Scalars of a slice of a run under a load with this cycle.
fn observe(
    study: &StudyDescription,
    record: &RunRecord,
    slice: &SliceRecord,
    description: &SliceDescription,
    cycle: Duration,
    compares_iat: bool,
) -> SliceObservation {
    let objective = description.objective;
    let own = sources(record, &slice.slice);
    let together = ApplicationRecord::pooled(&own);
    let is_tcp = |flow: &FlowRecord| flow.slice == slice.slice && flow.flow.protocol == TCP;
    let keeps_cdf = compares_iat || draws_iat(study, &slice.slice);
    let iat = |of: &IatFigures| IatFigures {
        cdf: match keeps_cdf {
            true => of.cdf.clone(),
            false => Vec::new(),
        },
        ..*of
    };
    SliceObservation {
        steady: slice.steady,
        whole: slice.whole,
        served_bits_per_second: served(slice, record.steady_from(), slice.steady.span_ns),
        delay_of_sent: slice.delay_of_sent,
        late_frames: (slice.series.late_frames)
            .get(record.steady_from()..)
            .filter(|late| !late.is_empty())
            .map(|late| late.iter().copied().map(u64::from).sum()),
        projected: match study.is_of(BackendKind::Captured) {
            true => projected(study, record, slice),
            false => [None; 2],
        },
        delay_growth: DelayGrowth::of(record, slice),
        is_unsettled: is_unsettled(record, slice, cycle),
        reacts: slice.withheld_frames > 0 || record.flows.iter().any(is_tcp),
        is_held_back: slice.withheld_frames > 0,
        // What applications got is of the whole run.
        applications: SliceApplications::of(
            &own,
            served(slice, 0, slice.whole.span_ns),
            description.share_bits_per_second as f64,
        ),
        completion_time_ns: (objective.and_then(|objective| objective.completion_time))
            .and_then(|limit| Some(limit.at.of(together.as_ref()?.time_of_begun()?))),
        request_latency_ns: (objective.and_then(|objective| objective.request_latency))
            .and_then(|limit| Some(limit.at.of(together.as_ref()?.latency_of_due()?))),
        intervals: objective
            .and_then(|objective| Some((objective, objective.availability?.length_ns)))
            .map(|(objective, length_ns)| {
                let margin = study.margins.throughput_relative;
                availability::of_slice((&objective, length_ns), margin, record, slice)
            })
            .filter(|intervals| intervals.all > 0),
        loss_episodes: LossEpisodes::of(&slice.series, record.bin_ns),
        distributed: distributed(study, record, slice),
        iat: iat(&slice.iat_sent),
        received_iat: slice.iat_received.as_ref().map(iat),
        tails: tail::of_slice(slice, record.bin_ns),
        scheduler: slice.scheduler,
    }
}

/// Returns true if a slice never settles in a run that is long enough to tell.
fn is_unsettled(record: &RunRecord, slice: &SliceRecord, cycle: Duration) -> bool {
    let (bytes, bin) = (
        &slice.series.received_bytes,
        Duration::from_nanos(record.bin_ns),
    );
    !record.transient.steady_state_reached
        && mser::is_long_enough(bytes.len(), bin, cycle)
        && !mser::find_transient(bytes, bin, cycle).steady_state_reached
}

/// Projects a long run to the time after it: the packets lost, and the packets lost or late.
fn projected(
    study: &StudyDescription,
    record: &RunRecord,
    slice: &SliceRecord,
) -> [Option<Projection>; 2] {
    let series = &slice.series;
    let at = |series: &[u32], bin: usize| u64::from(series.get(bin).copied().unwrap_or(0));
    [false, true].map(|with_late| {
        let beyond = |bin| {
            let late = if with_late {
                at(&series.late_frames, bin)
            } else {
                0
            };
            at(&series.lost_frames, bin) + late
        };
        let bins = record.steady_from()..series.sent_frames.len();
        let bins: Vec<_> = bins
            .map(|bin| (beyond(bin), at(&series.sent_frames, bin)))
            .collect();
        Projection::of(&bins, record.bin_ns, study.margins.confidence)
    })
}

/// Results of all sources of a slice together, of slices with several.
fn pooled_applications(record: &RunRecord) -> Vec<ApplicationRecord> {
    let slices = record.slices.iter();
    let pooled =
        slices.filter_map(|slice| ApplicationRecord::pooled(&sources(record, &slice.slice)));
    let several = pooled.filter(|of| matches!(of, Cow::Owned(_)));
    several.map(Cow::into_owned).collect()
}

/// The sources of a slice that have an application.
fn sources<'a>(record: &'a RunRecord, slice: &str) -> Vec<&'a ApplicationRecord> {
    let all = record.applications.iter();
    all.filter(|source| source.slice == slice).collect()
}

fn without_series(record: &RunRecord) -> Vec<ApplicationRecord> {
    let without = |source: &ApplicationRecord| ApplicationRecord {
        series: ApplicationSeries::default(),
        times: Vec::new(),
        unfinished_times: Vec::new(),
        source: source.source.clone(),
        slice: source.slice.clone(),
        failures: source.failures.clone(),
        ..*source
    };
    record.applications.iter().map(without).collect()
}

/// Rate served from a bin on, over a span, bit/s.
fn served(slice: &SliceRecord, from: usize, span_ns: u64) -> f64 {
    let series = &slice.series.served_bytes;
    let bytes: u64 = series[from.min(series.len())..].iter().sum();
    match span_ns {
        0 => 0.0,
        span_ns => bytes as f64 * 8e9 / span_ns as f64,
    }
}

/// True if a published figure compares the inter-arrival times of this cell's repetitions.
fn compares_iat(study: &StudyDescription, key: &RunKey) -> bool {
    let names = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    study.published.iter().any(|figure| {
        figure.metric.quantity == Quantity::IatKolmogorovSmirnov
            && names(&figure.policies, &key.policy)
            && names(&figure.scenarios, &key.scenario)
    })
}

/// True if a declared figure draws the inter-arrival times of a slice.
fn draws_iat(study: &StudyDescription, slice: &str) -> bool {
    let mut plots = study.plots.iter();
    plots.any(|plot| matches!(&plot.x, PlotX::Distribution(of) if of.of == Distributed::Iat && of.slice == slice))
}

/// Values of a slice of a run whose distribution declared figures draw, with the figure's place in the study.
fn distributed(
    study: &StudyDescription,
    record: &RunRecord,
    slice: &SliceRecord,
) -> Vec<(usize, Vec<f64>)> {
    let plots = study.plots.iter().enumerate();
    let values = plots.filter_map(|(place, plot)| match &plot.x {
        PlotX::Distribution(of) if of.slice == slice.slice => {
            let values = of.values(&slice.series, record.bin_ns);
            (!values.is_empty()).then_some((place, values))
        }
        _ => None,
    });
    values.collect()
}

/// Reject values that make arithmetic meaningless: a record comes from a file, which may be damaged.
fn check(record: &RunRecord) -> Result<(), RecordError> {
    let damaged = |problem| {
        Err(RecordError::Damaged {
            policy: record.key.policy.clone(),
            scenario: record.key.scenario.clone(),
            repetition: record.key.repetition,
            problem,
        })
    };
    if record.bin_ns == 0 || record.duration_ns == 0 {
        return damaged("the run or its intervals have no length");
    }
    let transient = &record.transient;
    if transient.end_ns > record.duration_ns {
        return damaged("the transient ends after the run");
    }
    let bins = record.duration_ns / record.bin_ns;
    let lengths_differ = record.slices.iter().any(|slice| {
        slice.series.sent_bytes.len() as u64 != bins
            || slice.series.received_bytes.len() as u64 != bins
            || slice.series.served_bytes.len() as u64 != bins
            || slice.series.lost_bytes.len() as u64 != bins
            || !matches!(slice.series.late_frames.len() as u64, late if late == bins || late == 0)
    });
    let are_shorter = |source: &ApplicationRecord| {
        let series = &source.series;
        let lengths = [
            series.goodput_bytes.len(),
            series.retransmitted_segments.len(),
            series.rtt_mean_ns.len(),
            series.first_window_bytes.len(),
            series.first_rtt_ns.len(),
        ];
        lengths
            .iter()
            .any(|&length| length != 0 && length as u64 != bins)
    };
    let counts = (record.slices.iter())
        .flat_map(|slice| [&slice.steady, &slice.whole])
        .chain([&record.aggregate])
        .flat_map(|of| [of.sent_frames, of.received_frames, of.lost_frames]);
    // Sums over runs, and shares of them in whole numbers, stay far inside an integer.
    if counts
        .chain(record.slices.iter().map(|slice| slice.withheld_frames))
        .any(|count| count > MOST_FRAMES)
    {
        return damaged("a number of frames is beyond what any run can have");
    }
    if lengths_differ || record.applications.iter().any(are_shorter) {
        return damaged("a series does not have one value per interval of the run");
    }
    let slices = record
        .slices
        .iter()
        .flat_map(|slice| [&slice.steady, &slice.whole]);
    let figures = slices.chain([&record.aggregate]).flat_map(|figures| {
        [
            figures.offered_bits_per_second,
            figures.throughput_bits_per_second,
            figures.loss_ratio,
            figures.delay.mean_ns,
            figures.variation.pdv_mean_ns,
            figures.variation.ipdv_mean_ns,
        ]
    });
    let iat = record
        .slices
        .iter()
        .flat_map(|s| [Some(&s.iat_sent), s.iat_received.as_ref()])
        .flatten()
        .flat_map(|iat| [iat.mean_ns, iat.variance_ns2]);
    let levels = [
        transient.throughput_before_bits_per_second,
        transient.throughput_after_bits_per_second,
    ];
    let of_applications = record.applications.iter().flat_map(|source| {
        Quantity::of_applications().filter_map(move |quantity| quantity.of(source))
    });
    if figures
        .chain(iat)
        .chain(levels)
        .chain(of_applications)
        .any(|value| !value.is_finite() || value < 0.0)
    {
        return damaged("a figure is negative or not a number");
    }
    Ok(())
}

/// IP protocol number.
const TCP: u8 = 6;

/// More than any run can have: those of a day at 400 Gbit/s.
const MOST_FRAMES: u64 = 1 << 46;
