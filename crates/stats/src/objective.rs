//! Service-level objectives of slices.

use crate::figures::DelayFigures;
use serde::{Deserialize, Serialize};

/// The objectives of one slice, at least one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Largest one-way delay (RFC 7679).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayLimit>,
    /// Largest packet delay variation (PDV of RFC 5481: delay less the smallest delay of the run).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelayLimit>,
    /// Largest loss ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Smallest rate received, bit/s of L2 frames without FCS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bits_per_second: Option<u64>,
    /// Smallest goodput of its applications together, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bits_per_second: Option<u64>,
    /// Longest completion time of flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<DelayLimit>,
    /// Longest latency of requests, from when they are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_latency: Option<DelayLimit>,
    /// Smallest share of intervals in which all objectives of packets and goodput are met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<ConformingIntervals>,
}

impl Objective {
    /// With intervals of whole bins, at least as long as stated.
    #[must_use]
    pub fn in_bins(self, bin_ns: u64) -> Self {
        let bin_ns = bin_ns.max(1);
        let whole = |intervals: ConformingIntervals| ConformingIntervals {
            length_ns: intervals.length_ns.div_ceil(bin_ns).saturating_mul(bin_ns),
            ..intervals
        };
        Self {
            availability: self.availability.map(whole),
            ..self
        }
    }
}

/// A share of intervals that conform: in which all other objectives are met.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformingIntervals {
    /// Smallest share of them.
    pub share: f64,
    /// Length of one, ns; intervals are of whole bins of the series, at least as long as this.
    pub length_ns: u64,
}

impl ConformingIntervals {
    /// Length of an interval where none is stated: 1 s.
    pub const LENGTH_NS: u64 = 1_000_000_000;
}

/// A limit of time for a share of packets, flows or requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayLimit {
    /// The limit, ns.
    pub limit_ns: u64,
    /// The percentile.
    pub at: Percentile,
}

/// A percentile stored in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Percentile {
    /// Median.
    #[serde(rename = "50 %")]
    P50,
    /// 90th percentile.
    #[serde(rename = "90 %")]
    P90,
    /// 95th percentile.
    #[serde(rename = "95 %")]
    P95,
    /// 99th percentile.
    #[serde(rename = "99 %")]
    P99,
    /// 99.9th percentile.
    #[serde(rename = "99.9 %")]
    P999,
    /// 99.99th percentile.
    #[serde(rename = "99.99 %")]
    P9999,
    /// 99.999th percentile.
    #[serde(rename = "99.999 %")]
    P99999,
    /// The largest.
    #[serde(rename = "100 %")]
    Max,
}

impl Percentile {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::P9999,
        Self::P99999,
        Self::Max,
    ];

    /// In parts per 100,000.
    #[must_use]
    pub const fn per_100_000(self) -> u32 {
        match self {
            Self::P50 => 50_000,
            Self::P90 => 90_000,
            Self::P95 => 95_000,
            Self::P99 => 99_000,
            Self::P999 => 99_900,
            Self::P9999 => 99_990,
            Self::P99999 => 99_999,
            Self::Max => 100_000,
        }
    }

    /// Share of packets that may be beyond it; 0 for the largest.
    #[must_use]
    pub fn share_beyond(self) -> f64 {
        f64::from(100_000 - self.per_100_000()) / 1e5
    }

    /// This percentile of `delay`, ns.
    #[must_use]
    pub const fn of(self, delay: &DelayFigures) -> u64 {
        match self {
            Self::P50 => delay.p50_ns,
            Self::P90 => delay.p90_ns,
            Self::P95 => delay.p95_ns,
            Self::P99 => delay.p99_ns,
            Self::P999 => delay.p999_ns,
            Self::P9999 => delay.p9999_ns,
            Self::P99999 => delay.p99999_ns,
            Self::Max => delay.max_ns,
        }
    }
}

impl std::fmt::Display for Percentile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::P50 => "50 %",
            Self::P90 => "90 %",
            Self::P95 => "95 %",
            Self::P99 => "99 %",
            Self::P999 => "99.9 %",
            Self::P9999 => "99.99 %",
            Self::P99999 => "99.999 %",
            Self::Max => "100 %",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_of_whole_bins_and_not_shorter_than_stated() {
        let of = |length_ns| {
            let objective = Objective {
                availability: Some(ConformingIntervals {
                    share: 0.99,
                    length_ns,
                }),
                ..Objective::default()
            };
            objective.in_bins(50).availability.unwrap().length_ns
        };
        assert_eq!([1, 50, 51, 70].map(of), [50, 50, 100, 100]);
    }

    #[test]
    fn a_percentile_leaves_the_rest_of_the_packets_beyond_it() {
        assert_eq!(
            Percentile::ALL.map(Percentile::share_beyond),
            [0.5, 0.1, 0.05, 0.01, 0.001, 0.0001, 0.000_01, 0.0]
        );
    }
}
