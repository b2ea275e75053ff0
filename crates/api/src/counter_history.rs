//! Counters of the last hour.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counters of a slice in the last hour, since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SliceHistory {
    /// The slice.
    pub name: String,
    /// At each gateway of its path that reported to this controller.
    pub hops: Vec<HopHistory>,
}

/// Counters of a slice at one gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HopHistory {
    /// The gateway.
    pub gateway: String,
    /// When they were counted.
    pub bins: Bins,
    /// The forward direction; absent if the slice does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<DirectionHistory>,
    /// The backward direction; absent if the slice does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DirectionHistory>,
}

/// Bins of time, oldest first; each list has one value for each bin. Where no bin is, nothing was reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bins {
    /// When each begins, milliseconds since 1970-01-01 UTC.
    pub start_ms: Vec<u64>,
    /// Length of each, milliseconds: 10,000, or that times a power of two up to 320,000. The newest is not over yet.
    pub length_ms: Vec<u64>,
    /// Time in each that reports of the gateway counted, nanoseconds. Rates are counts divided by this.
    pub counted_ns: Vec<u64>,
}

/// Counters of one direction: each list has one value for each bin, rounded to seven digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectionHistory {
    /// Bytes sent, L2 without FCS.
    pub sent_bytes: Vec<u64>,
    /// Frames sent.
    pub sent_frames: Vec<u64>,
    /// Frames dropped, for any reason.
    pub dropped_frames: Vec<u64>,
    /// Largest of the 99th percentiles of delay that were reported, nanoseconds; null if nothing was sent. Absent for slices of a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p99_ns: Vec<Option<u64>>,
    /// Largest delay, nanoseconds; null if nothing was sent. Absent for slices of a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest_ns: Vec<Option<u64>>,
}

/// Counters of a link in the last hour, and of those of its slices that sent most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkHistory {
    /// The link.
    pub name: String,
    /// Its gateway.
    pub gateway: String,
    /// When they were counted.
    pub bins: Bins,
    /// The forward direction.
    pub forward: LinkDirectionHistory,
    /// The backward direction.
    pub backward: LinkDirectionHistory,
}

/// Counters of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkDirectionHistory {
    /// Rate of the link in each bin, bit/s as the link counts; null if it was not known.
    pub rate_bps: Vec<Option<u64>>,
    /// Rate of the link that was promised to slices, bit/s as the link counts (`promised.link_rate_bps` of the link); null if it was not known.
    pub promised_bps: Vec<Option<u64>>,
    /// All that the link sent and dropped.
    pub total: DirectionHistory,
    /// Slices that sent most bytes in these bins, the busiest first.
    pub slices: Vec<NamedHistory>,
}

/// A slice of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedHistory {
    /// The slice.
    pub name: String,
    /// Counters of it.
    pub counters: DirectionHistory,
}
