//! Results as they are written down: the schema every back end produces and every report reads.
//!
//! Units are last in names. Times are nanoseconds, rates bit/s of L2 frames without FCS, sizes bytes.
//! A record contains only what follows from (study, policy, scenario, repetition, seed): facts about the
//! host are kept separately, so that the same run gives the same bytes anywhere.

use crate::application::ApplicationRecord;
use crate::figures::is_zero;
pub use crate::figures::{CdfPoint, DelayFigures, Figures, IatFigures, Series, VariationFigures};
use crate::flow::{CaptureRecord, FlowRecord, HopRecord};
use crate::objective::Percentile;
use crate::queues::{ElephantRecord, QueueRecord};
use crate::testbed::TestbedRecord;
use serde::{Deserialize, Serialize};

/// Version of this schema; a reader rejects unknown versions.
pub const SCHEMA_VERSION: u32 = 5;

/// Fault of a record whose [`RunKey::inputs`] differ from those of the study.
pub const OTHER_INPUTS: &str = "its run had other inputs than the study describes";

/// Identifies the run of a record, which is a pure function of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunKey {
    /// Policy name.
    pub policy: String,
    /// Scenario name.
    pub scenario: String,
    /// Repetition, from 0.
    pub repetition: u32,
    /// The seed of all random numbers of this run.
    pub seed: u64,
    /// Digest of what the run depends on, besides its repetition: runs of other inputs are other runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inputs: String,
}

/// One run: what every slice sent and received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which run.
    pub key: RunKey,
    /// How long traffic was offered, ns.
    pub duration_ns: u64,
    /// Width of a bin of the series, ns.
    pub bin_ns: u64,
    /// The warm-up found in this run.
    pub transient: Transient,
    /// One record per slice, in the order of the study.
    pub slices: Vec<SliceRecord>,
    /// Results of the sources with an application over the whole run, in the order of the scenario: the transients of
    /// two runs that are compared may differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationRecord>,
    /// All slices together, after the transient.
    pub aggregate: Figures,
    /// Frames dropped by reason, over the whole run, by the device's own counters.
    pub drops: Vec<DropCount>,
    /// Frames that links lost because they are impaired, over the whole run; none of them is among `drops`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_losses: Vec<LinkLoss>,
    /// Where the study asks for them: lengths of the devices' queues, over the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueRecord>,
    /// Of classes that move elephants: their flows, over the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elephants: Vec<ElephantRecord>,
    /// In a study with a timeline: its phases, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// In a study of populations: service of the slices behind each slice record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationRecord>,
    /// For a run measured from captures: how it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureRecord>,
    /// For a run measured from captures: its flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// For a run measured from captures at more than two points: the hops between them, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopRecord>,
    /// For a run on real packets on the testbed: how it went.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "live")]
    pub testbed: Option<TestbedRecord>,
}

impl RunRecord {
    /// The first bin after the transient.
    #[must_use]
    pub fn steady_from(&self) -> usize {
        usize::try_from(self.transient.end_ns / self.bin_ns.max(1)).unwrap_or(usize::MAX)
    }
}

/// Service per slice of many equal slices measured together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopulationRecord {
    /// The slice of the study they are measured as.
    pub slice: String,
    /// How many slices.
    pub slices: u32,
    /// They were always backlogged, so that their service can be compared with weights.
    pub backlogged: bool,
    /// Smallest number of bytes sent per unit of weight over all slices, while traffic was offered.
    pub least_bytes_per_weight: u64,
    /// The largest.
    pub most_bytes_per_weight: u64,
    /// Bytes per turn of a slice of weight 1.
    pub turn_bytes: u64,
    /// Bytes of scheduler state per slice.
    pub state_bytes: u64,
}

/// Frames dropped for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropCount {
    /// The class that dropped the frames.
    pub class: String,
    /// The reason, as named by the data plane.
    pub reason: String,
    /// Frames.
    pub frames: u64,
}

/// Frames of a slice that an impaired link lost for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLoss {
    /// The link: `ingress`, to the device, or `egress`, from it.
    pub link: String,
    /// The slice.
    pub slice: String,
    /// The reason: `loss` or `bit_error`.
    pub reason: String,
    /// Frames.
    pub frames: u64,
}

/// The initial transient, as the truncation method found it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transient {
    /// End of the transient, ns from the start of the run; 0 where there is none.
    pub end_ns: u64,
    /// False where no steady state was reached within the first half of the run (the method's own
    /// rule): then `steady` figures cover the whole run.
    pub steady_state_reached: bool,
    /// Mean received rate of all slices before `end_ns`, over whole load cycles counted back from
    /// there, bit/s; 0 without transient.
    pub throughput_before_bits_per_second: f64,
    /// The same from `end_ns` on; over the whole run without transient.
    pub throughput_after_bits_per_second: f64,
}

/// Traffic of one slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceRecord {
    /// Slice name.
    pub slice: String,
    /// Over the whole run.
    pub whole: Figures,
    /// After the transient.
    pub steady: Figures,
    /// Of a slice with an objective of delay: the percentile that it names, of the frames sent after the transient.
    /// `None` also where delays are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_of_sent: Option<SentDelay>,
    /// Cumulative distribution of one-way delay after the transient.
    pub delay_cdf: Vec<CdfPoint>,
    /// Of a run that is compared with its prediction: the median delay from several moments on, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_from: Vec<DelayFrom>,
    /// Inter-arrival times as sent by the slice's first source.
    pub iat_sent: IatFigures,
    /// The same packets as received, those that arrive after the end of the run included; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat_received: Option<IatFigures>,
    /// Time series over the whole run.
    pub series: Series,
    /// Frames received in a simulated run, the transient included, that a queue had marked instead of dropping
    /// them (ECN, RFC 3168).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_frames: u64,
    /// Frames that were due in a simulated run and that paused hosts (IEEE 802.3x, 802.1Qbb) did not send. They are not among those
    /// sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withheld_frames: u64,
    /// Of a simulated run in which frames of the slice left the device: their time in its scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerFigures>,
}

/// A percentile of one-way delay over frames sent: the delay of a frame that never arrives is infinite (RFC 7679).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentDelay {
    /// Which percentile.
    pub at: Percentile,
    /// Its value, ns; `None` where it is infinite: too many frames were lost.
    pub ns: Option<u64>,
}

/// Time that frames spend in the device's scheduler, until their last bit has left the port; of all frames of a
/// run, the transient included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerFigures {
    /// Largest time from the moment a frame was queued, ns.
    pub delay_max_ns: u64,
    /// Largest time from the moment a frame was eligible, ns: by a token bucket with rate and burst of its class's
    /// guarantee, charged with every frame of the class in the order of arrival. A frame within the guarantee is
    /// eligible on arrival. `None` where a frame of the slice has no such moment: its class has no guarantee, or
    /// frames of it may overtake each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_eligible_max_ns: Option<u64>,
}

/// Figures of one phase of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRecord {
    /// Name of the phase.
    pub phase: String,
    /// From when it is measured, ns from the start of the run.
    pub measured_from_ns: u64,
    /// When it ends, ns.
    pub ends_ns: u64,
    /// One record per slice, in the order of the study.
    pub slices: Vec<PhaseSliceRecord>,
    /// Results of the sources with an application, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationRecord>,
    /// All slices together.
    pub aggregate: Figures,
    /// Frames dropped by reason, its settling time included, by the device's own counters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<DropCount>,
    /// Where the study asks for them: lengths of the devices' queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueRecord>,
    /// The change that it began with; `None` for the first phase, and where nothing in the device was changed or
    /// the back end does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeRecord>,
}

/// Traffic of one slice in one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSliceRecord {
    /// Figures from `measured_from_ns` to the end of the phase.
    pub figures: Figures,
    /// As [`SliceRecord::delay_of_sent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_of_sent: Option<SentDelay>,
    /// Cumulative distribution of one-way delay.
    pub delay_cdf: Vec<CdfPoint>,
    /// Frames received in the phase, its settling time included, after one that their flow sent later (RFC 4737).
    pub reordered_frames: u64,
}

/// Effect of a change of policies on the frames that waited in the device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRecord {
    /// Frames that waited in the device's queues.
    pub waiting_frames: u64,
    /// Waiting frames that the change dropped.
    pub lost_frames: u64,
    /// Why the device refused the change and goes on with what was in force; `None` where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl ChangeRecord {
    /// Of one change of two devices.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            waiting_frames: self.waiting_frames.saturating_add(other.waiting_frames),
            lost_frames: self.lost_frames.saturating_add(other.lost_frames),
            refused: self.refused.or(other.refused),
        }
    }
}

/// The median delay of frames sent from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayFrom {
    /// The moment, from the start of the run, ns.
    pub from_ns: u64,
    /// Median one-way delay of frames sent since then and received, ns; `None` where there is none.
    pub p50_ns: Option<u64>,
}
