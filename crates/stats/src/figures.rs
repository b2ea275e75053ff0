//! Figures of a slice in a span of a run, and their distributions and series.

use serde::{Deserialize, Serialize};

/// Figures over a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// The span, ns.
    pub span_ns: u64,
    /// Frames sent in the span.
    pub sent_frames: u64,
    /// Bytes sent in the span.
    pub sent_bytes: u64,
    /// Frames received in the span, by receive time.
    pub received_frames: u64,
    /// Bytes received in the span, by receive time.
    pub received_bytes: u64,
    /// Frames sent in the span that never arrived.
    pub lost_frames: u64,
    /// Rate sent, bit/s.
    pub offered_bits_per_second: f64,
    /// Rate received, bit/s.
    pub throughput_bits_per_second: f64,
    /// Lost frames / sent frames; 0 where none were sent.
    pub loss_ratio: f64,
    /// One-way delay of frames sent in the span and received.
    pub delay: DelayFigures,
    /// Variation of that delay.
    pub variation: VariationFigures,
    /// Loss bursts: packets that a flow sent in a row and of which none arrived (loss periods of RFC 3357), each counted
    /// when a later packet of the flow was received in the span. One whose packets arrive late is none, unless the flow has had 64
    /// other bursts since. 0 without a packet in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss_bursts: u64,
    /// Packets in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss_burst_frames: u64,
}

/// One-way delay (RFC 7679).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayFigures {
    /// Packets measured. If 0, all other fields are 0.
    pub samples: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// 99.99th percentile, ns.
    pub p9999_ns: u64,
    /// 99.999th percentile, ns.
    pub p99999_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// Delay variation (RFC 5481), in both of its forms.
///
/// PDV is the delay of a packet less the smallest delay of the run, the transient included: never negative. Its
/// number of samples is that of the delay. IPDV is the difference between the delays of two consecutive packets of a
/// flow, by the order sent, of which both were received: signed in RFC 3393, kept here as absolute value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariationFigures {
    /// Mean PDV, ns.
    pub pdv_mean_ns: f64,
    /// Median PDV, ns.
    pub pdv_p50_ns: u64,
    /// 95th percentile of PDV, ns.
    pub pdv_p95_ns: u64,
    /// 99th percentile of PDV, ns.
    pub pdv_p99_ns: u64,
    /// 99.9th percentile of PDV, ns.
    pub pdv_p999_ns: u64,
    /// Largest PDV, ns.
    pub pdv_max_ns: u64,
    /// Pairs of consecutive packets measured. All else of IPDV is 0 where this is 0.
    pub ipdv_samples: u64,
    /// Mean absolute IPDV, ns.
    pub ipdv_mean_ns: f64,
    /// 95th percentile of absolute IPDV, ns.
    pub ipdv_p95_ns: u64,
    /// 99th percentile of absolute IPDV, ns.
    pub ipdv_p99_ns: u64,
    /// 99.9th percentile of absolute IPDV, ns.
    pub ipdv_p999_ns: u64,
    /// Largest absolute IPDV, ns.
    pub ipdv_max_ns: u64,
}

/// A point of an empirical distribution function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CdfPoint(
    /// Value, ns.
    pub u64,
    /// Fraction of samples at or below it.
    pub f64,
);

/// Inter-arrival times of one source at one point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IatFigures {
    /// Number of intervals.
    pub samples: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Variance, ns².
    pub variance_ns2: f64,
    /// Distribution.
    pub cdf: Vec<CdfPoint>,
}

/// One value per bin; all vectors have the same length, except that `late_frames` may be empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Bytes sent, by send time.
    pub sent_bytes: Vec<u64>,
    /// Bytes received, by receive time.
    pub received_bytes: Vec<u64>,
    /// Bytes received, by receive time less the smallest delay of the slice until then. What is on its way through
    /// an empty path counts, what waits in a queue does not; propagation changes nothing of it.
    pub served_bytes: Vec<u64>,
    /// Bytes of the frames in `lost_frames`.
    pub lost_bytes: Vec<u64>,
    /// Frames sent, by send time.
    pub sent_frames: Vec<u32>,
    /// Frames sent in this bin that never arrived.
    pub lost_frames: Vec<u32>,
    /// Mean one-way delay of packets sent in this bin and received, ns; `None` where there was none.
    pub delay_mean_ns: Vec<Option<u64>>,
    /// Largest one-way delay of those packets, ns; `None` where there was none.
    pub delay_max_ns: Vec<Option<u64>>,
    /// For a slice with a delay limit: frames sent in this bin and received with a delay above it. Empty
    /// without a limit or if delays are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_frames: Vec<u32>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
