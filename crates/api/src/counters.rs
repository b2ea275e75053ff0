//! Counters of gateways.

use crate::offer::Direction;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use slicewise_units::Way;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Counters of a gateway since its last report, about once a second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterReport {
    /// The time that was counted, nanoseconds.
    #[serde(deserialize_with = "count")]
    pub interval_ns: u64,
    /// Its links.
    #[serde(default)]
    pub links: Vec<LinkCounters>,
    /// Its slices that have traffic, or had some in the report before. A slice or direction that is absent sent and dropped nothing, and no frame
    /// of it waits.
    #[serde(default)]
    pub slices: Vec<SliceCounters>,
    /// Flows of slices that were asked for in the answer to the report before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<SliceFlows>,
    /// Decisions of the gateway on its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<GatewayEvent>,
}

/// The answer to a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CounterAnswer {
    /// Slices whose flows the next report should have.
    #[serde(default)]
    pub flows_wanted: Vec<String>,
}

/// A decision of a gateway at run time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayEvent {
    /// The slice it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The decision, and its reason.
    pub reason: String,
}

/// Counters of one direction, within an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionCounters {
    /// Frames sent.
    #[serde(deserialize_with = "count")]
    pub sent_frames: u64,
    /// Bytes sent, L2 without FCS.
    #[serde(deserialize_with = "count")]
    pub sent_bytes: u64,
    /// Frames dropped, by reason.
    #[serde(default, deserialize_with = "counts")]
    pub dropped: BTreeMap<String, u64>,
    /// Frames that wait at the end of the interval.
    #[serde(default, deserialize_with = "count")]
    pub waiting_frames: u64,
    /// Delay from arrival to departure; absent if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<DelayPercentiles>,
    /// Of a link: time that it lost because its gateway was more than 1 ms late while frames waited, nanoseconds. Delays of
    /// its slices may exceed their bounds by that. Absent if it lost none, and of slices.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub lost_link_time_ns: Option<u64>,
}

/// Delays of an interval, nanoseconds. Each is an upper bound: at most a quarter too large between 1 µs and 17 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayPercentiles {
    /// The median.
    #[serde(deserialize_with = "count")]
    pub p50: u64,
    /// The 99th percentile.
    #[serde(deserialize_with = "count")]
    pub p99: u64,
    /// The largest.
    #[serde(deserialize_with = "count")]
    pub largest: u64,
}

/// Counters of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkCounters {
    /// The link.
    pub name: String,
    /// The forward direction.
    pub forward: DirectionCounters,
    /// The backward direction.
    pub backward: DirectionCounters,
}

/// Counters of a slice at one gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SliceCounters {
    /// The slice.
    pub name: String,
    /// The forward direction; absent if the slice does not exist there, or has no traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<DirectionCounters>,
    /// The backward direction; absent if the slice does not exist there, or has no traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DirectionCounters>,
}

/// The flows of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SliceFlows {
    /// The slice.
    pub slice: String,
    /// Its flows, those with the most bytes first.
    pub flows: Vec<FlowCounters>,
}

/// One flow within an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowCounters {
    /// The direction.
    #[serde(with = "Direction")]
    #[schema(value_type = Direction)]
    pub direction: Way,
    /// Source address.
    pub source: String,
    /// Destination address.
    pub destination: String,
    /// IP protocol number.
    #[schema(maximum = 255)]
    pub protocol: u8,
    /// Source port; 0 if the protocol has none.
    #[schema(maximum = 65535)]
    pub source_port: u16,
    /// Destination port; 0 if the protocol has none.
    #[schema(maximum = 65535)]
    pub destination_port: u16,
    /// Frames.
    #[serde(deserialize_with = "count")]
    pub frames: u64,
    /// Bytes, L2 without FCS.
    #[serde(deserialize_with = "count")]
    pub bytes: u64,
}

/// The newest counters of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SliceCountersRecord {
    /// The slice.
    pub name: String,
    /// At each gateway whose newest report has the slice. A gateway leaves out slices without traffic: in one that is absent, the slice sent
    /// and dropped nothing, and no frame of it waits.
    pub hops: Vec<HopCounters>,
}

/// The newest counters of a slice at one gateway. A direction that is absent does not exist, or has no traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HopCounters {
    /// The gateway.
    pub gateway: String,
    /// When they were reported, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The time that was counted, nanoseconds.
    pub interval_ns: u64,
    /// The forward direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<DirectionCounters>,
    /// The backward direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DirectionCounters>,
    /// Its flows, where they were asked for with `flows=true`: the first time it is asked, they come with the next report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowCounters>,
}

/// The newest counters of a link and of its slices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkCountersRecord {
    /// The link.
    pub name: String,
    /// Its gateway.
    pub gateway: String,
    /// When they were reported, milliseconds since 1970-01-01 UTC; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// The time that was counted, nanoseconds.
    pub interval_ns: u64,
    /// The forward direction.
    pub forward: DirectionCounters,
    /// The backward direction.
    pub backward: DirectionCounters,
    /// Its slices that have traffic, or had some in the report before: one that is absent sent and dropped nothing, and no frame of it waits.
    /// A tenant sees its own only.
    pub slices: Vec<SliceCounters>,
}

/// A number of 63 bits, as the description of the API says.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    within(number).map_err(D::Error::custom)
}

fn some_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    let number = number.map(within).transpose();
    number.map_err(D::Error::custom)
}

fn counts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let numbers = BTreeMap::<String, u64>::deserialize(deserializer)?;
    match numbers.values().find_map(|&number| within(number).err()) {
        Some(problem) => Err(D::Error::custom(problem)),
        None => Ok(numbers),
    }
}

fn within(number: u64) -> Result<u64, String> {
    match i64::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(format!("{number} is above {}", i64::MAX)),
    }
}
