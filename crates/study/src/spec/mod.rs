//! A study as it is written: every setting is text with its place, nothing is checked yet.
//!
//! Settings are optional here even where a study needs them, because a file that extends another
//! gives only what differs; what is missing in the end is reported when the study is checked.
//! The comments of the fields are the descriptions of the JSON Schema.

mod containers;
mod gateway;
mod impairments;
mod measured;
mod objective;
mod payload;
mod plan;
mod policy;
mod population;
mod scalar;
mod traffic;
mod words;

pub(crate) use containers::{List, Named, OneOrMany, Short};
pub(crate) use gateway::GatewayFileSpec;
pub(crate) use impairments::{BurstLossSpec, DelayVariationSpec, ImpairmentSpec, ImpairmentsSpec};
pub(crate) use measured::{
    CapturesSpec, MeasuredScenarioSpec, MeasuredSliceSpec, MeasuredStudySpec,
};
pub(crate) use objective::ObjectiveSpec;
pub(crate) use payload::{Payload, PayloadSpec, SizeWeights};
pub(crate) use plan::{PlanFileSpec, PlanLinkSpec, PlanSliceSpec};
pub(crate) use policy::{
    ChildSpec, ClassFileSpec, FlowQueueFileSpec, GuaranteeFileSpec, GuaranteedFileSpec,
    MaximumFileSpec, PoliceSpec, PolicyFileSpec, PriorityFileSpec, ScalabilitySpec, ShapeSpec,
    VerdictSpec, WredFileSpec,
};
pub(crate) use population::PopulationSpec;
pub(crate) use scalar::{
    Amount, Name, NumberRange, PartsPerMillion, Percent, RangeBound, Repetitions, Scalar, Share,
    Text, number,
};
pub(crate) use traffic::{HeadersSpec, MatchSpec, OnOffSpec, ScenarioSpec, SliceSpec, SourceSpec};
pub(crate) use words::{
    Counted, Dscp, Figure, LicencePriority, ModelName, PacketIoName, PatternName,
    PopulationPattern, Protocol,
};

use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_stats::description::{ComparedDelay, Metric};
use slicewise_units::{BitRate, ByteCount, Duration, Layer};

/// A study: policies compared under scenarios on one device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slicewise study", transform = crate::schema::require_unless_extending)]
pub(crate) struct StudySpec {
    /// Another study file that this one builds on. Settings are merged key by key; a value or a
    /// list replaces the one of the other file.
    #[expect(
        dead_code,
        reason = "resolved before a study is decoded; here for the schema"
    )]
    extends: Option<At<Short<String, ExtendsSpec>>>,
    /// Name of the study, and of the folder its results go to.
    pub(crate) name: Option<Text<Name>>,
    /// One line that says what is studied.
    pub(crate) title: Option<Text<String>>,
    /// A paragraph for the report.
    pub(crate) description: Option<Text<String>>,
    /// The publication that the published figures come from.
    pub(crate) source: Option<Text<String>>,
    /// What is assumed that the publication does not state, by name, each with its reason.
    #[serde(default)]
    pub(crate) assumptions: Named<Text<String>>,
    /// The links between the hosts and the device under test.
    pub(crate) link: Option<At<LinkSpec>>,
    /// The device under test; or `path` and `devices`.
    pub(crate) dut: Option<At<DutSpec>>,
    /// Names of the devices between sender and receiver, in the order in which frames pass them.
    pub(crate) path: Option<At<List<Text<Name>>>>,
    /// The devices of `path`, by name.
    #[serde(default)]
    pub(crate) devices: Named<At<DutSpec>>,
    /// The hosts that send and receive.
    pub(crate) hosts: Option<HostSpec>,
    /// The slices, by name.
    #[serde(default)]
    pub(crate) slices: Named<SliceSpec>,
    /// Traffic sources that every scenario has, by name, unless the scenario says otherwise.
    #[serde(default)]
    pub(crate) sources: Named<SourceSpec>,
    /// Instead of sources: large populations of slices, each named as its slice and its classes.
    #[serde(default)]
    pub(crate) populations: Named<PopulationSpec>,
    /// The policies compared, by name.
    #[serde(default)]
    pub(crate) policies: Named<PolicyFileSpec>,
    /// The scenarios, by name.
    #[serde(default)]
    pub(crate) scenarios: Named<ScenarioSpec>,
    /// How often each policy runs under each scenario.
    pub(crate) repetitions: Option<Text<Repetitions>>,
    /// How long traffic is offered in a run.
    pub(crate) duration: Option<Text<Duration>>,
    /// A quick profile for a first look, used by `--quick`.
    pub(crate) quick: Option<At<QuickSpec>>,
    /// The seed of all randomness: the same seed gives the same results. Default 1.
    pub(crate) seed: Option<Text<u64>>,
    /// How it is measured.
    pub(crate) measure: Option<MeasureSpec>,
    /// How much worsening the verdicts tolerate, and with what confidence.
    pub(crate) margins: Option<MarginsSpec>,
    /// Figures of the publication, to compare with ours.
    #[serde(default)]
    pub(crate) published: List<At<PublishedSpec>>,
}

/// A quick profile: what it leaves out is as in the study.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuickSpec {
    /// Only these scenarios. Default: the reference, and those that isolation and reallocation are judged
    /// in: the heaviest load of best effort while guaranteed slices keep to their shares.
    pub(crate) scenarios: Option<At<OneOrMany<Text<Name>>>>,
    /// How often each policy runs under each of them.
    pub(crate) repetitions: Option<Text<Repetitions>>,
    /// How long traffic is offered in a run: a whole number of bins.
    pub(crate) duration: Option<Text<Duration>>,
}

/// A study file that this one builds on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "resolved before a study is decoded; here for the schema"
)]
pub(crate) struct ExtendsSpec {
    /// The file, relative to this one.
    file: Text<String>,
    /// What not to take from it: keys, with full stops between levels, for example `published` or
    /// `policies.priority`.
    #[serde(default)]
    without: List<Text<String>>,
}

/// The links between the hosts and the device under test.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkSpec {
    /// Rate of each link.
    pub(crate) rate: Option<Text<BitRate>>,
    /// Which bytes of a frame occupy the link: L1 (default) counts preamble, FCS and gap too.
    pub(crate) counts: Option<Text<Layer>>,
    /// Propagation delay of each link. Default 0 s.
    pub(crate) propagation: Option<Text<Duration>>,
    /// Longest IP packet. Default 1500 B.
    pub(crate) mtu: Option<Text<ByteCount>>,
    /// Frames lost and delayed on the links. Default: none.
    pub(crate) impairments: Option<ImpairmentsSpec>,
}

/// The device under test, or a device of a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DutSpec {
    /// Which device: `isr4221` (Cisco ISR 4221, whose licence limits what it forwards), `port` (one
    /// egress port) or `gateway` (a port emulated by software, which hands frames on whole).
    pub(crate) model: Option<Text<ModelName>>,
    /// Rate of the egress port. Default: the link's.
    pub(crate) port_rate: Option<Text<BitRate>>,
    /// Which bytes of a frame occupy the port. Default L1.
    pub(crate) port_counts: Option<Text<Layer>>,
    /// From the last bit received to the earliest departure. Default 0 s.
    pub(crate) processing_delay: Option<Text<Duration>>,
    /// The licence that limits what `isr4221` forwards.
    pub(crate) licence: Option<At<LicenceSpec>>,
    /// Of a device in `devices`: its own policy, under which it is in every run. Default: the policy that is
    /// compared.
    pub(crate) policy: Option<At<PolicyFileSpec>>,
}

/// A licence: a token bucket over everything the device forwards.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LicenceSpec {
    /// The licensed rate.
    pub(crate) rate: Option<Text<BitRate>>,
    /// Maximum credit: a size, or a duration at the licensed rate. The bucket
    /// starts full.
    pub(crate) credit: Option<Text<Amount>>,
    /// Which bytes of a frame are charged. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
    /// What happens to frames of priority classes without credit: `borrows` (they go, into debt) or
    /// `waits` (default).
    pub(crate) priority: Option<Text<LicencePriority>>,
}

/// The hosts that send and receive.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostSpec {
    /// Period of the timer on which an iperf3 source wakes. Default 1 ms, as iperf3.
    pub(crate) timer: Option<Text<Duration>>,
    /// By how much the clock of each source is slower than that of the source before it. Default
    /// 100 ppm, what IEEE 802.3 lets a crystal be off; 0 ppm where all have one clock.
    pub(crate) clock_drift: Option<Text<PartsPerMillion>>,
    /// How late the operating system may wake it. Default 0 s.
    pub(crate) timer_slack: Option<Text<Duration>>,
    /// Least time between two packets that a source sends back to back. Default 0 s.
    pub(crate) send_cost: Option<Text<Duration>>,
    /// How long the receiving interface may wait before it raises an interrupt. Default 0 s.
    pub(crate) interrupt_moderation: Option<Text<Duration>>,
}

/// How it is measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasureSpec {
    /// Width of a bin of the time series. Default 50 ms.
    pub(crate) bin: Option<Text<Duration>>,
}

/// Margins and confidence of the verdicts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarginsSpec {
    /// Confidence of decisions and of intervals. Default 95 %.
    pub(crate) confidence: Option<Text<Percent>>,
    /// Relative loss of throughput tolerated. Default 1 %.
    pub(crate) throughput: Option<Text<Percent>>,
    /// Increase of the loss ratio tolerated, in percent of all packets. Default 0.1 %.
    pub(crate) loss: Option<Text<Percent>>,
    /// Relative increase of delay tolerated, mean and 99th percentile. Default 25 %.
    pub(crate) delay: Option<Text<Percent>>,
    /// Which delay that is: `queueing` (default: the one-way delay minus the smallest of the slice) or
    /// `one_way`.
    pub(crate) delay_of: Option<Text<ComparedDelay>>,
    /// Increase of delay that is always tolerated. Default: the transmission time of the largest frame at the rate
    /// that slices share.
    pub(crate) delay_resolution: Option<Text<Duration>>,
    /// Worsening confined to a smaller share of runs than this is not detected: excluding the
    /// default, 9 %, requires 32 repetitions.
    pub(crate) rare_runs: Option<Text<Percent>>,
    /// Reallocated fraction from which reallocation holds. Default 95 %.
    pub(crate) reallocation_holds: Option<Text<Percent>>,
    /// Reallocated fraction up to which it is broken. Default 5 %.
    pub(crate) reallocation_broken: Option<Text<Percent>>,
}

/// A published figure: which quantity of which runs, and what was published. Exactly one of
/// `about`, `between`, `at_least` and `at_most`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedSpec {
    /// What the publication says, in a few words.
    pub(crate) claim: Text<String>,
    /// Where it says it: section, figure or table.
    pub(crate) source: Text<String>,
    /// The quantity.
    pub(crate) metric: Text<Metric>,
    /// Policies it applies to. Default: all.
    #[serde(default)]
    pub(crate) policies: OneOrMany<Text<Name>>,
    /// Scenarios it applies to. Default: all.
    #[serde(default)]
    pub(crate) scenarios: OneOrMany<Text<Name>>,
    /// Slice it applies to; required for quantities of a slice.
    pub(crate) slice: Option<Text<Name>>,
    /// The figure is a change relative to another policy, scenario, or both: ours / theirs − 1.
    pub(crate) relative_to: Option<At<CellSpec>>,
    /// The value.
    pub(crate) about: Option<Text<Figure>>,
    /// Tolerance of agreement, in percent of the value (absolute if the value is 0).
    pub(crate) within: Option<Text<Figure>>,
    /// The lower and the upper end.
    pub(crate) between: Option<At<List<Text<Figure>>>>,
    /// The least value.
    pub(crate) at_least: Option<Text<Figure>>,
    /// The largest value.
    pub(crate) at_most: Option<Text<Figure>>,
    /// A known difference and its physical reason.
    pub(crate) explanation: Option<Text<String>>,
}

/// What a relative figure is relative to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellSpec {
    /// The policy, where it is another one.
    pub(crate) policy: Option<Text<Name>>,
    /// The scenario, where it is another one.
    pub(crate) scenario: Option<Text<Name>>,
}
