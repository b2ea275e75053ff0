//! Description of a study for a report and the verdicts, besides its records.
//!
//! Written once into the results folder (`study.json`), so that verdicts and report can be regenerated
//! from the folder alone.

use crate::backend::{self, BackendInfo, BackendKind};
use crate::objective::Objective;
use crate::plot::PlotDescription;
use crate::quantity::Metric;
use serde::{Deserialize, Serialize};
use slicewise_units::{ATM_CELL_BYTES, ATM_PAYLOAD_BYTES};
use std::collections::BTreeMap;

/// Description of a study for verdicts and report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyDescription {
    /// Name: also the results folder's.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people; may be empty.
    pub description: String,
    /// Where the published figures come from; may be empty.
    pub source: String,
    /// Digest of the study's text and of every file it names.
    pub digest: String,
    /// Only the quick profile of the study was run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_quick: bool,
    /// Name of the study's file, without its folder: for the command that runs it again.
    pub file_name: String,
    /// The seed that the seeds of all runs are derived from.
    pub seed: u64,
    /// Version of the program that ran it.
    pub program_version: String,
    /// Back end that executed the runs: the id of one of [`backend::BACK_ENDS`].
    #[serde(default = "simulator")]
    pub backend: String,
    /// Device that was tested, one line: "Cisco ISR 4221 (model), licence 35 Mbit/s, ports 1 Gbit/s".
    pub dut: String,
    /// Assumptions of the device model that the published study does not state, for people.
    pub assumptions: Vec<String>,
    /// Repetitions of each policy × scenario.
    pub repetitions: u32,
    /// How long traffic is offered in a run, ns.
    pub duration_ns: u64,
    /// Nothing that happens by chance now and then can happen in it: runs that are alike stay alike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_without_chance: bool,
    /// Capacity that the slices share.
    pub capacity: Capacity,
    /// Slices in order.
    pub slices: Vec<SliceDescription>,
    /// Policies in order.
    pub policies: Vec<PolicyDescription>,
    /// Scenarios in order.
    pub scenarios: Vec<ScenarioDescription>,
    /// By policy, then by scenario: digest of what their runs depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Vec<String>>,
    /// Phases between the changes of its timeline, in order of time; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseDescription>,
    /// Margins and confidence of the verdicts.
    pub margins: Margins,
    /// Published figures to compare ours with.
    pub published: Vec<PublishedFigure>,
    /// Name of the case of its file; `None` where the file holds one study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Where it stands on each axis of a sweep, in their order; empty if it is no point of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<Coordinate>,
    /// Figures that the file declares and that draw this study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<PlotDescription>,
}

/// Place of a point on an axis of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinate {
    /// Name of the axis.
    pub axis: String,
    /// Value as it is written in the file.
    pub text: String,
    /// Its number; `None` for a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// Unit of the number; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

impl StudyDescription {
    /// Returns true if a device on this machine was tested, not the study's own.
    #[must_use]
    pub fn is_on_testbed(&self) -> bool {
        self.is_of(BackendKind::Testbed)
    }

    /// Returns the back end that executed the runs; `None` for one that this version does not know.
    #[must_use]
    pub fn backend_info(&self) -> Option<BackendInfo> {
        backend::named(&self.backend)
    }

    /// The place of a policy in the study.
    #[must_use]
    pub fn policy_place(&self, name: &str) -> Option<usize> {
        self.policies.iter().position(|p| p.name == name)
    }

    /// The place of a scenario in the study.
    #[must_use]
    pub fn scenario_place(&self, name: &str) -> Option<usize> {
        self.scenarios.iter().position(|s| s.name == name)
    }

    /// The place of a slice in the study.
    #[must_use]
    pub fn slice_place(&self, name: &str) -> Option<usize> {
        self.slices.iter().position(|s| s.name == name)
    }

    /// Digest of what runs of a policy under a scenario depend on; empty where it is not known.
    #[must_use]
    pub fn inputs_of(&self, policy: &str, scenario: &str) -> &str {
        let inputs = self.policy_place(policy).and_then(|place| {
            let of_policy = self.inputs.get(place)?;
            of_policy.get(self.scenario_place(scenario)?)
        });
        inputs.map_or("", String::as_str)
    }

    /// Returns true if the runs came about in this way.
    #[must_use]
    pub fn is_of(&self, kind: BackendKind) -> bool {
        self.backend_info().is_some_and(|info| info.kind == kind)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn simulator() -> String {
    backend::SIMULATOR.id.to_owned()
}

/// The rate that slices share, in the device's own accounting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Rate, bit/s.
    pub bits_per_second: u64,
    /// Bytes that a frame occupies in addition to its L2 bytes without FCS: 24 if the rate counts L1, and what a link adds,
    /// else 0 (a rate counted at L3 carries more at L2, by a header per frame). Shares are of L2 bytes, so where this
    /// is more than 0, shares that add up to the rate do not fit in it.
    pub frame_overhead_bytes: u32,
    /// The sum fills ATM cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_atm_cells: bool,
    /// The rate changes during a run, and this is its mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub varies: bool,
}

impl Capacity {
    /// Bytes of it that frames occupy which have so many L2 bytes together; in cells as frames of mean length do.
    #[must_use]
    pub fn occupied(&self, l2_bytes: f64, frames: f64) -> f64 {
        let bytes = l2_bytes + f64::from(self.frame_overhead_bytes) * frames;
        if !self.in_atm_cells || frames <= 0.0 {
            return bytes;
        }
        let cells = (bytes / frames / f64::from(ATM_PAYLOAD_BYTES)).ceil();
        frames * cells * f64::from(ATM_CELL_BYTES)
    }

    /// Frames occupy more of it than their L2 bytes.
    #[must_use]
    pub const fn has_overhead(&self) -> bool {
        self.frame_overhead_bytes > 0 || self.in_atm_cells
    }
}

/// The guarantee of a slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceDescription {
    /// Name.
    pub name: String,
    /// Its share: guaranteed for a guaranteed slice, its fair share for a best-effort one;
    /// bit/s of L2 frames without FCS.
    pub share_bits_per_second: u64,
    /// True for a slice whose isolation is judged; false for best effort.
    pub guaranteed: bool,
    /// Its objectives; `None` if the study states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
}

/// A policy, and what limits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDescription {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The configuration as text (IOS, YAML), for the report.
    pub configuration: String,
    /// How many slices it supports on this device.
    pub scalability: Scalability,
    /// Proved delay bounds by slice; empty if the policy proves none. They apply to packets within the
    /// slice's guarantee.
    #[serde(default)]
    pub delay_bounds: BTreeMap<String, DelayBound>,
    /// Slices with a guarantee from which no bound follows.
    #[serde(default)]
    pub unbounded: Vec<Unbounded>,
    /// How long a round of its round robin takes if every class takes its turn, ns: its own latency, which is no influence of others. 0
    /// without one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round_ns: u64,
    /// Other policies of its configuration that packets pass, and that verdicts leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Published verdicts, if any.
    pub published_verdict: Option<PublishedVerdict>,
    /// Assumptions that its verdict rests on, each with what it would be otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests_on: Vec<String>,
    /// In a study as it is judged ([`StudyDescription::by_phase`]): the phase in which the policy is judged.
    #[serde(skip)]
    pub phase: Option<Box<PhaseDescription>>,
}

/// A proved upper bound of the one-way delay of every packet of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayBound {
    /// The part of the scheduler, ns: from the moment a frame is eligible, which one within the
    /// guarantee is when it is queued, to the moment its last bit has left the port. On a path of several devices that of all
    /// schedulers together.
    pub scheduler_ns: u64,
    /// Upper bound of the other components of the measured one-way delay, ns: waiting behind other
    /// sources' frames in the sending adapter and for tokens that frames of other hosts or classes have used, transmission on the link to the device, propagation
    /// on all links, processing in the devices, transmission on the link behind the last one where that is
    /// not the port itself, and the wait of the receiving adapter before it stamps the frame.
    pub outside_ns: u64,
}

/// A slice with a guarantee from which no bound of one-way delay follows in one scenario: it may send
/// more than its guarantee, or the path to the scheduler has no bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unbounded {
    /// Slice.
    pub slice: String,
    /// Scenario.
    pub scenario: String,
    /// The reason.
    pub why: String,
    /// If only the path to the scheduler has no bound: the scheduler's part, ns. See
    /// [`DelayBound::scheduler_ns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_ns: Option<u64>,
}

impl DelayBound {
    /// The bound of one-way delay as it is measured, ns.
    #[must_use]
    pub const fn end_to_end_ns(self) -> u64 {
        self.scheduler_ns.saturating_add(self.outside_ns)
    }
}

/// How many slices a mechanism can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceLimit {
    /// A hard limit.
    Slices(u64),
    /// No practical limit, according to `source`.
    NoPracticalLimit,
    /// Neither a limit nor its absence is documented.
    NotStated,
}

impl SliceLimit {
    /// The number, where there is one.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Slices(slices) => Some(slices),
            Self::NoPracticalLimit | Self::NotStated => None,
        }
    }
}

/// The hard limit of a mechanism on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scalability {
    /// Most slices that can be distinguished.
    pub slices: SliceLimit,
    /// Limiting resource: "2 priority levels (256 classes)".
    pub limited_by: String,
    /// Where the limit is stated.
    pub source: String,
}

/// Verdicts in the publication's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedVerdict {
    /// Performance isolation: true where the publication says yes.
    pub isolation: bool,
    /// Resource reallocation: true where the publication says yes.
    pub reallocation: bool,
    /// Scalability, in the publication's words.
    pub scalability: String,
    /// A remark of the publication: "latency".
    pub remark: String,
}

/// A scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioDescription {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// No slice exceeds its share: the reference of isolation.
    pub reference: bool,
    /// The longest on/off cycle of its sources, ns; 0 where the load is constant.
    pub cycle_ns: u64,
    /// Its place on the axis of charts, "30000 requests/s"; empty if it states none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub x: String,
}

/// Splits a place of a scenario into its number and its unit; `None` where it does not begin with a finite number.
#[must_use]
pub fn number_and_unit(place: &str) -> Option<(f64, &str)> {
    let (number, unit) = place.split_once(' ').unwrap_or((place, ""));
    let number: f64 = number.parse().ok()?;
    number.is_finite().then(|| (number, unit.trim()))
}

/// Which delay is compared with that of the reference scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedDelay {
    /// One-way delay less the smallest of the slice in any run of the policy: propagation,
    /// transmission and fixed processing are not part of it.
    #[default]
    Queueing,
    /// One-way delay as measured.
    OneWay,
}

/// Tolerated worsening, and confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Confidence of one-sided decisions and of two-sided intervals: 0.95.
    pub confidence: f64,
    /// Relative loss of throughput tolerated: 0.01.
    pub throughput_relative: f64,
    /// Absolute increase of the loss ratio tolerated: 0.001.
    pub loss_absolute: f64,
    /// Relative increase of mean and p99 delay tolerated: 0.25.
    pub delay_relative: f64,
    /// The delay that is compared.
    pub delay_of: ComparedDelay,
    /// Increase of delay that is always tolerated, ns: the resolution of the method and, unless the
    /// study declares otherwise, the transmission time of one largest frame at the shared rate, which is
    /// unavoidable without preemption.
    pub delay_resolution_ns: u64,
    /// Share of runs that may be beyond a limit: 0.09. "Holds" says that no more are, which takes 34 runs without one beyond it. "Broken"
    /// says that more are, and of a larger share still that more than 0.09 are.
    pub rare_runs: f64,
    /// Reallocated fraction from which reallocation holds: 0.95.
    pub reallocation_holds: f64,
    /// Reallocated fraction up to which it is broken: 0.05.
    pub reallocation_broken: f64,
}

impl Default for Margins {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            throughput_relative: 0.01,
            loss_absolute: 0.001,
            delay_relative: 0.25,
            delay_of: ComparedDelay::Queueing,
            delay_resolution_ns: 0,
            rare_runs: 0.09,
            reallocation_holds: 0.95,
            reallocation_broken: 0.05,
        }
    }
}

/// A published figure, and the corresponding figure of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Claim of the publication, briefly.
    pub claim: String,
    /// Where it states it.
    pub source: String,
    /// The quantity.
    pub metric: Metric,
    /// Policies it applies to; empty for all.
    pub policies: Vec<String>,
    /// Scenarios it applies to; empty for all.
    pub scenarios: Vec<String>,
    /// Phase it applies to; `None` for every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Slice it applies to; `None` for quantities of a whole run.
    pub slice: Option<String>,
    /// Queue of the device, where the quantity is one of a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The figure is a relative change against another cell: ours / that − 1.
    pub relative_to: Option<Cell>,
    /// Relation of the figure to the model.
    #[serde(default, skip_serializing_if = "Basis::is_predicted")]
    pub basis: Basis,
    /// The published value: every number in the metric's unit.
    pub expected: Expected,
    /// Reason for the tolerance, or for a bound that the publication states in words; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tolerance_from: String,
    /// A known difference, and its physical reason; empty if none is expected.
    pub explanation: String,
}

/// Relation of a published figure to the model that is compared with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Nothing in the study was chosen to meet the figure. Only these figures count.
    #[default]
    Predicted,
    /// A constant of the study was derived from the figure.
    Calibrated,
    /// The figure follows from the configuration or the arithmetic of the study, whatever the model does.
    Entailed,
}

impl Basis {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_predicted(&self) -> bool {
        *self == Self::Predicted
    }
}

impl PublishedFigure {
    /// Tolerance, relative to the value, above which agreement is only in the order of magnitude.
    const WIDE_TOLERANCE: f64 = 0.2;

    /// Returns true if agreement says no more than the order of magnitude: the tolerance is wider than 20 %.
    #[must_use]
    pub fn is_order_of_magnitude(&self) -> bool {
        matches!(self.expected, Expected::About { value, tolerance }
            if value != 0.0 && tolerance > Self::WIDE_TOLERANCE)
    }

    /// Returns true if `other` states the same value of the same quantity, whatever is written about it.
    #[must_use]
    pub fn is_same_claim(&self, other: &Self) -> bool {
        let stated = |figure: &Self| Self {
            basis: Basis::default(),
            tolerance_from: String::new(),
            explanation: String::new(),
            ..figure.clone()
        };
        stated(self) == stated(other)
    }
}

/// A policy, a scenario, or both; `None` means that of the figure's own cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Policy to compare with.
    pub policy: Option<String>,
    /// Scenario to compare with.
    pub scenario: Option<String>,
}

/// Value of a figure in a publication.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expected {
    /// About this value; `tolerance` is what "about" is taken to mean, relative to the value, or
    /// absolute where the value is 0.
    About {
        /// The value.
        value: f64,
        /// Deviation that still agrees.
        tolerance: f64,
    },
    /// Between two values.
    Between {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// At least.
    AtLeast {
        /// The value.
        value: f64,
    },
    /// At most.
    AtMost {
        /// The value.
        value: f64,
    },
}

/// A phase of a study, and what is promised in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseDescription {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// When it begins, ns from the start of a run: the moment of the change, 0 for the first phase.
    pub begins_ns: u64,
    /// From when it is measured, ns: the change and its settling time.
    pub measured_from_ns: u64,
    /// When it ends, ns.
    pub ends_ns: u64,
    /// Changes at its beginning, a sentence each; empty for the first phase.
    pub changes: Vec<String>,
    /// The slices, in the order of the study.
    pub slices: Vec<SliceDescription>,
    /// Proved bounds of each policy, in the order of the study.
    pub policies: Vec<PhasePolicy>,
    /// The longest on/off cycle of each scenario's sources, ns, in the order of the study; 0 where the load is
    /// constant.
    pub cycles_ns: Vec<u64>,
}

/// A policy in a phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhasePolicy {
    /// The configuration as text.
    pub configuration: String,
    /// How many slices it can hold, where that is not the same in all phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalability: Option<Scalability>,
    /// Proved delay bounds by slice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delay_bounds: BTreeMap<String, DelayBound>,
    /// Slices with a guarantee from which no bound follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<Unbounded>,
}
