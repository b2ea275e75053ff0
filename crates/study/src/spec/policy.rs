//! Policies as written.

use super::containers::{List, Named, OneOrMany, Short};
use super::scalar::{Amount, Name, Share, Text};
use super::traffic::MatchSpec;
use super::words::Dscp;
use crate::file::At;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use slicewise_model::{Action, ColourMode, Discipline, QueueLimitSpec, WredKey};
use slicewise_stats::description::SliceLimit;
use slicewise_units::{ByteCount, Duration, Layer};
use std::borrow::Cow;

/// A policy. Exactly one of `ios`, `classes` and `none`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyFileSpec {
    /// One line for people. Default: the name.
    pub(crate) title: Option<Text<String>>,
    /// A file of IOS configuration, relative to the study file; or the configuration itself as a
    /// block of text.
    pub(crate) ios: Option<Text<String>>,
    /// Which policy-map of the configuration, where it has several.
    pub(crate) policy_map: Option<Text<String>>,
    /// Classes in order: a frame belongs to the first that matches. What matches none belongs to
    /// `class-default`, which may be listed to configure it.
    pub(crate) classes: Option<At<List<At<ClassFileSpec>>>>,
    /// How the classes without priority share the remaining capacity: `minimum_share` (default),
    /// `deficit_round_robin`, `fifo`, or `guaranteed` (rates with a delay bound).
    pub(crate) discipline: Option<Text<Discipline>>,
    /// What the classes of a guaranteed policy have in common.
    pub(crate) guaranteed: Option<At<GuaranteedFileSpec>>,
    /// True for no policy at all: one queue for everything.
    pub(crate) none: Option<Text<bool>>,
    /// How many slices it can hold, where that differs from what the device declares.
    pub(crate) scalability: Option<At<ScalabilitySpec>>,
    /// The verdicts of the publication.
    pub(crate) published: Option<At<VerdictSpec>>,
}

/// How many slices a policy can hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScalabilitySpec {
    /// A number of slices, or `unlimited`.
    pub(crate) slices: Text<SliceLimit>,
    /// What limits, in words.
    pub(crate) limited_by: Text<String>,
    /// Where the limit is stated.
    pub(crate) source: Text<String>,
}

/// Verdicts as published.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerdictSpec {
    /// Performance isolation: what the publication says.
    pub(crate) isolation: Text<bool>,
    /// Resource reallocation: what the publication says.
    pub(crate) reallocation: Text<bool>,
    /// Scalability, in the publication's words.
    pub(crate) scalability: Text<String>,
    /// A remark of the publication.
    pub(crate) remark: Option<Text<String>>,
}

/// One class of a policy.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassFileSpec {
    /// Name of the class; `class-default` is the class for everything else.
    pub(crate) name: Text<Name>,
    /// Which frames: conditions that must all hold, or a list of such groups, one of which must.
    #[serde(rename = "match")]
    pub(crate) matches: Option<At<OneOrMany<MatchSpec>>>,
    /// Instead of `match`: the frames of this slice.
    pub(crate) slice: Option<Text<Name>>,
    /// Meter the class, and act on what exceeds.
    pub(crate) police: Option<At<Short<Share, PoliceSpec>>>,
    /// Set the code point of every packet.
    pub(crate) set_dscp: Option<Text<Dscp>>,
    /// Serve the class before all that have no priority.
    pub(crate) priority: Option<At<PriorityFileSpec>>,
    /// Rate it gets at least: a rate, or a percentage of the port (of the parent class, in a child).
    pub(crate) minimum: Option<Text<Share>>,
    /// Its weight in the excess, relative to the other classes. Default 1.
    #[schemars(extend("minimum" = 1))]
    pub(crate) weight: Option<Text<u32>>,
    /// Maximum rate; what comes faster is delayed.
    pub(crate) shape: Option<At<Short<Share, ShapeSpec>>>,
    /// How much may wait, as `64 packets`, `100 kB` or `10 ms` at its own rate.
    pub(crate) queue_limit: Option<Text<QueueLimitSpec>>,
    /// Drop at random before the queue is full.
    pub(crate) wred: Option<At<WredFileSpec>>,
    /// A queue for each flow with `CoDel`, instead of one for the class.
    pub(crate) flow_queue: Option<At<FlowQueueFileSpec>>,
    /// Divide the class in turn.
    pub(crate) child: Option<At<Box<ChildSpec>>>,
    /// Guaranteed rate and delay bound; for the discipline
    /// `guaranteed`.
    pub(crate) guarantee: Option<At<Short<Share, GuaranteeFileSpec>>>,
    /// Maximum rate, even if more is unused; for the discipline `guaranteed`.
    pub(crate) maximum: Option<At<Short<Share, MaximumFileSpec>>>,
    /// The tenant whose part of the excess it shares; for the discipline `guaranteed`.
    pub(crate) tenant: Option<Text<Name>>,
}

/// A guarantee with a delay bound.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuaranteeFileSpec {
    /// Committed rate.
    pub(crate) rate: Text<Share>,
    /// Committed burst: a size, or a duration at the rate. Default 4 ms, two largest frames at
    /// least.
    pub(crate) burst: Option<Text<Amount>>,
    /// Delay bound of frames within rate and burst. Default: the time the rate takes
    /// to send the burst.
    pub(crate) delay: Option<Text<Duration>>,
}

/// The most a slice may send.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaximumFileSpec {
    /// Peak rate, at least the guaranteed rate.
    pub(crate) rate: Text<Share>,
    /// Peak burst: a size, or a duration at the rate. Default 4 ms, two largest frames and the
    /// guaranteed burst at least.
    pub(crate) burst: Option<Text<Amount>>,
}

/// What slices with a delay bound have in common.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuaranteedFileSpec {
    /// Which bytes of a frame rates, bursts, largest frame and buffer count. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
    /// The largest frame there can be. Default 1522 B.
    pub(crate) largest_frame: Option<Text<ByteCount>>,
    /// The range of delay classes. Default 10 µs to 100 ms.
    pub(crate) delays: Option<DelaysSpec>,
    /// Tenants, who share the excess first, and the weight of each. Classes that name none belong
    /// to the tenant `default`.
    #[serde(default)]
    pub(crate) tenants: Named<Text<u32>>,
    /// How much can wait in all classes together, where that is limited.
    pub(crate) buffer: Option<Text<ByteCount>>,
}

/// The shortest and the longest delay, between which there are four classes to a doubling and 64
/// at most: a delay is rounded down to one of them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DelaysSpec {
    /// The shortest. Default 10 µs.
    pub(crate) shortest: Option<Text<Duration>>,
    /// The longest. Default 100 ms.
    pub(crate) longest: Option<Text<Duration>>,
}

/// The classes a class is divided in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChildSpec {
    /// Classes in order.
    #[schemars(with = "Vec<ClassReference>")]
    pub(crate) classes: List<At<ClassFileSpec>>,
    /// How the classes without priority share.
    pub(crate) discipline: Option<Text<Discipline>>,
}

/// Stands for [`ClassFileSpec`] in the schema, where a type inside itself must be a reference.
struct ClassReference;

impl JsonSchema for ClassReference {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ClassReference".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<ClassFileSpec>()
    }
}

/// A policer. One rate and one burst, or the three-colour markers: `excess_burst` alone is
/// RFC 2697, `peak_rate` is RFC 2698, `excess_rate` is RFC 4115.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoliceSpec {
    /// Committed rate.
    pub(crate) rate: Text<Share>,
    /// Committed burst: a size, or a duration at the rate. Default 250 ms.
    pub(crate) burst: Option<Text<Amount>>,
    /// Excess burst.
    pub(crate) excess_burst: Option<Text<Amount>>,
    /// Peak rate, at least the committed rate.
    pub(crate) peak_rate: Option<Text<Share>>,
    /// Peak burst. Default 250 ms at the peak rate.
    pub(crate) peak_burst: Option<Text<Amount>>,
    /// Excess rate, beside the committed rate.
    pub(crate) excess_rate: Option<Text<Share>>,
    /// Which bytes of a frame are counted. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
    /// `blind` (default) or `aware` of the colour a packet comes with.
    pub(crate) colour: Option<Text<ColourMode>>,
    /// What is done within the rate. Default `transmit`.
    pub(crate) conform: Option<Text<Action>>,
    /// What is done beyond the committed rate. Default `drop`.
    pub(crate) exceed: Option<Text<Action>>,
    /// What is done beyond everything. Default as `exceed`.
    pub(crate) violate: Option<Text<Action>>,
}

/// A place in the low-latency queue.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorityFileSpec {
    /// 1 is served first. Default 1.
    pub(crate) level: Option<Text<u8>>,
    /// While the link is congested, more than this is dropped. Default: no limit.
    pub(crate) rate: Option<Text<Share>>,
    /// Burst of that limit. Default 200 ms at the rate.
    pub(crate) burst: Option<Text<ByteCount>>,
    /// Which bytes of a frame the rate counts. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
}

/// A shaper.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShapeSpec {
    /// The rate.
    pub(crate) rate: Text<Share>,
    /// Committed burst. Default 4 ms at the rate.
    pub(crate) burst: Option<Text<ByteCount>>,
    /// Excess burst. Default: as the committed burst where `peak`, else none.
    pub(crate) excess_burst: Option<Text<ByteCount>>,
    /// Send both bursts in each interval, instead of the committed one.
    pub(crate) peak: Option<Text<bool>>,
    /// Which bytes of a frame the rate counts. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
}

/// Random early detection, with a curve for each kind of packet.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WredFileSpec {
    /// What chooses the curve of a packet: `dscp` (default) or `precedence`.
    pub(crate) by: Option<Text<WredKey>>,
    /// Curves that differ from the default.
    #[serde(default)]
    pub(crate) curves: List<At<CurveSpec>>,
    /// The newest sample's weight in the average is 2^-n. Default 9.
    pub(crate) weight_exponent: Option<Text<u8>>,
}

/// A queue for each flow, each kept short by `CoDel` (RFC 8289, RFC 8290), and levels of strict
/// priority.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlowQueueFileSpec {
    /// Queues that flows are hashed to. Default 1024; 1 is `CoDel` alone.
    pub(crate) flows: Option<Text<u32>>,
    /// How long frames may wait. Default 5 ms.
    pub(crate) target: Option<Text<Duration>>,
    /// How long all must wait longer before one is dropped. Default 100 ms.
    pub(crate) interval: Option<Text<Duration>>,
    /// What a flow sends in its turn. Default 1514 B.
    pub(crate) quantum: Option<Text<ByteCount>>,
    /// Mark instead of dropping, where the transport understands it. Default yes.
    pub(crate) ecn: Option<Text<bool>>,
    /// Code points of each level of strict priority, the first served first; the others form
    /// the last.
    #[serde(default)]
    pub(crate) priority: List<PriorityLevelSpec>,
}

/// A level of strict priority.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorityLevelSpec {
    /// Its code points.
    pub(crate) dscp: List<Text<Dscp>>,
}

/// A drop curve: nothing below `min`, rising to one packet in `denominator` at `max`, everything
/// from there on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CurveSpec {
    /// The code point or precedence it is for.
    #[serde(rename = "for")]
    pub(crate) key: Text<Dscp>,
    /// Average queue from which packets are dropped, packets.
    pub(crate) min: Text<u32>,
    /// Average queue from which all are dropped, packets.
    pub(crate) max: Text<u32>,
    /// One packet in so many is dropped just below `max`. Default 10.
    pub(crate) denominator: Option<Text<u32>>,
}
