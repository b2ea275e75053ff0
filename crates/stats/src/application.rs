//! Results of applications over TCP: the part of a record that sources with an `application` have.

use crate::figures::{CdfPoint, DelayFigures};
use serde::{Deserialize, Serialize};

/// Results of the application of one source over a run, or in a phase of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationRecord {
    /// Name of the source.
    pub source: String,
    /// Name of its slice.
    pub slice: String,
    /// Most that all connections of a bulk transfer together hand to their transport, bit/s; `None`: no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bits_per_second: Option<u64>,
    /// Its transport.
    pub transport: TransportFigures,
    /// Of requests at a constant rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestFigures>,
    /// Of short flows, and bulk transfers of a given size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowFigures>,
    /// Of video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoFigures>,
    /// Distribution function of the latency of requests, or of the completion time of flows: of those that have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<CdfPoint>,
    /// The same of the time until the end of the span: of requests without a response, or of flows in progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished_times: Vec<CdfPoint>,
    /// Connections that ended before their work was done, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureCount>,
    /// Over the whole run, one value per bin; empty in a phase.
    #[serde(default)]
    pub series: ApplicationSeries,
}

/// Requests, flows or segments of one source, one by one: exact times, of which a record has distributions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTransactions {
    /// Name of the source.
    pub source: String,
    /// Name of its slice.
    pub slice: String,
    /// By begin, then by connection.
    pub transactions: Vec<Transaction>,
}

/// A request, a flow or a segment of a video. Times are from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// `request`, `flow` or `segment`.
    pub kind: &'static str,
    /// Number of its connection, or client, from 0.
    pub connection: u32,
    /// Number among those of its connection, from 0.
    pub number: u64,
    /// When the request was due, the flow opened its connection, or the segment was asked for.
    pub begins_ns: u64,
    /// When it was handed to the transport; `None`: never.
    pub sent_ns: Option<u64>,
    /// When its last byte arrived; `None` where that was lost, or had not arrived at the end of the run.
    pub ends_ns: Option<u64>,
    /// Bytes of the response, the transfer or the segment; `None`: never decided.
    pub bytes: Option<u64>,
    /// Place of a segment's quality in the ladder, from 0.
    pub quality: Option<u64>,
}

/// All connections of a source together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportFigures {
    /// The span, ns.
    pub span_ns: u64,
    /// Connections that were open in the span.
    pub connections: u64,
    /// Rate of bytes that reached the application in order, bit/s.
    pub goodput_bits_per_second: f64,
    /// Segments with data that were sent, of one frame each.
    pub segments: u64,
    /// Of those, segments with data that had been sent before.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Times that loss was recovered from without a time-out.
    pub recoveries: u64,
    /// Round-trip times as the sender measured them. If 0, its figures are 0.
    pub rtt_samples: u64,
    /// Mean round-trip time, ns.
    pub rtt_mean_ns: f64,
    /// Smallest, ns.
    pub rtt_min_ns: u64,
    /// Largest, ns.
    pub rtt_max_ns: u64,
    /// Congestion windows that were seen, of each open connection at the end of each bin. If 0, their mean is 0.
    #[serde(default)]
    pub window_samples: u64,
    /// Their mean, bytes.
    pub window_mean_bytes: f64,
    /// Jain's index of the goodput of the connections of the span while all of them were open, 1 where all got the same;
    /// `None` for fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
}

/// Requests that were due in the span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFigures {
    /// Requests due a second.
    pub offered_per_second: f64,
    /// Responses that were complete, a second.
    pub achieved_per_second: f64,
    /// Requests due in the span without a response at the end of the run.
    pub unanswered: u64,
    /// From when a request was due to its response: waiting for a free connection counts, so that a
    /// slow response does not hide that others were not even asked for (coordinated omission).
    pub latency: DelayFigures,
    /// From when the request was sent to its response.
    pub response_time: DelayFigures,
    /// Latency of all requests due: without a response, the time until the end of the span.
    #[serde(default)]
    pub latency_of_due: DelayFigures,
}

/// Flows that were completed in the span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowFigures {
    /// Flows completed.
    pub completed: u64,
    /// From the opening of the connection to the last byte of the response.
    pub completion_time: DelayFigures,
    /// The same, with the flows in progress at the end of the span: of these, the time until then.
    #[serde(default)]
    pub time_of_begun: DelayFigures,
    /// Mean of a flow's bytes over its completion time, bit/s; `None` where none was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mean_bits_per_second: Option<f64>,
}

/// Clients of a video, over the segments that arrived in the span. A mean of nothing is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoFigures {
    /// Clients.
    pub clients: u64,
    /// Segments that arrived.
    pub segments: u64,
    /// Mean quality of a segment, as its place in the ladder, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_mean: Option<f64>,
    /// The same of the client with the lowest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_least: Option<f64>,
    /// Mean bit rate of a segment, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_rate_mean: Option<f64>,
    /// Changes of quality, a client and minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_minute: Option<f64>,
    /// Mean time from asking for the first segment to playing it, ns, of clients that began to play in the span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up_mean_ns: Option<f64>,
    /// Times that playing stopped for want of a segment.
    pub stalls: u64,
    /// Time in which playing was stopped / time since it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_ratio: Option<f64>,
}

/// Connections that failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureCount {
    /// The reason, in words.
    pub reason: String,
    /// Connections.
    pub connections: u64,
}

/// One value per bin of the run; all vectors have the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSeries {
    /// Bytes that reached the application in order, all connections together.
    pub goodput_bytes: Vec<u64>,
    /// Segments with data that were sent again.
    pub retransmitted_segments: Vec<u32>,
    /// Mean round-trip time of all connections, ns; `None` where none was measured.
    pub rtt_mean_ns: Vec<Option<u64>>,
    /// Congestion window of the first connection at its last acknowledgement in the bin, bytes; `None` where there
    /// was none.
    pub first_window_bytes: Vec<Option<u64>>,
    /// Round-trip time that the first connection measured last in the bin, ns.
    pub first_rtt_ns: Vec<Option<u64>>,
}

/// Service of the applications of a slice in a run, as verdicts compare it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SliceApplications {
    /// Rate of bytes that reached applications in order, bit/s.
    pub goodput_bits_per_second: f64,
    /// The part of it that lies within the slice's share: of a slice that is served more than its share, as
    /// much less as it is served more.
    pub goodput_within_share_bits_per_second: f64,
    /// Completion time of flows (mean, 99th percentile) and latency of requests (the same), ns.
    pub times_ns: [Option<f64>; 4],
    /// One of them sends as much as its transport takes, for as long as it lasts.
    pub wants_all: bool,
    /// The goodput that they ask for, bit/s: requests what they would get if each were answered, transfers of limited rate
    /// that. `None` where it is not known, or no request was answered.
    pub goodput_asked_bits_per_second: Option<f64>,
    /// None wants all, and one is of those that ask until they have what they want, and it is not known how much that is.
    pub may_have_enough: bool,
}
