//! Parameters of an application: its needs of a transport, and its times.

use crate::scenario::SourceHeaders;
use crate::transport::TransportParams;
use slicewise_units::{BitRate, Duration};

/// A source that reacts: an application over TCP connections. Data flows from the sender of the study's path to its
/// receiver, requests and acknowledgements the other way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSourceParams {
    /// Name, unique in its scenario.
    pub name: String,
    /// The host that sends its data, as [`SourceParams::host`](crate::scenario::SourceParams::host).
    pub host: Option<String>,
    /// Index of its slice in the study.
    pub slice: usize,
    /// Header fields of the packets that the sender sends. Each connection has a port of its own: the sender's where
    /// the sender opens the connections, else the receiver's, counted up from the one given here.
    pub headers: SourceHeaders,
    /// Transport of its connections.
    pub transport: TransportParams,
    /// Kind of application, and its parameters.
    pub application: ApplicationParams,
    /// When it begins, from the start of the run.
    pub start: Duration,
    /// Each connection begins later by a random part of this, uniform from zero, drawn for each repetition; of requests, their schedule.
    pub start_spread: Duration,
    /// It begins nothing new from here on; at most the study's duration.
    pub stop: Duration,
}

/// Kind of an application, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplicationParams {
    /// Sends as much as the transport takes, as iperf3 does.
    Bulk(BulkParams),
    /// Requests at a constant rate, whatever the answers take, as wrk2 does.
    Requests(RequestsParams),
    /// Requests one after the other, each on a connection of its own.
    ShortFlows(ShortFlowsParams),
    /// Adaptive video (DASH).
    Video(VideoParams),
}

/// Time that rates of events are counted over, ns.
pub const KILOSECOND_NS: u64 = 1_000_000_000_000;

/// Block that a transfer of limited rate hands to its transport at a time, bytes: iperf3's default for TCP.
pub const BULK_BLOCK_BYTES: u64 = 128 << 10;

/// Bulk transfers from the sender to the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkParams {
    /// Connections; of flows that arrive at random, more than are to be expected.
    pub flows: u32,
    /// Bytes that each transfers; `None`: it sends until the source stops.
    pub bytes: Option<TransferSizes>,
    /// Most that each hands to its transport, on average since it began, in blocks of [`BULK_BLOCK_BYTES`]; `None`: as
    /// much as the transport takes. Not together with `bytes`.
    pub bitrate: Option<BitRate>,
    /// When they begin, besides what is drawn for each.
    pub arrivals: FlowArrivals,
}

/// When flows begin, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowArrivals {
    /// Each so much later than the one before it.
    Staggered(Duration),
    /// A Poisson process: times between two are independent and exponentially distributed. So many begin in 1000 seconds on
    /// average.
    Poisson(u64),
}

/// An open-loop client: requests are due at a constant rate, and their latency counts from when they were due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestsParams {
    /// Requests in 1000 seconds, of all connections together.
    pub per_kilosecond: u64,
    /// Connections, which stay open. Requests take turns on them; a connection carries one at a time.
    pub connections: u32,
    /// Bytes of a request, headers of HTTP included.
    pub request_bytes: u32,
    /// Bytes of a response, headers of HTTP included.
    pub response: TransferSizes,
    /// The server.
    pub server: ServerParams,
}

/// Clients that open a connection, ask, get the response, close, and begin again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortFlowsParams {
    /// Clients.
    pub clients: u32,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response: TransferSizes,
    /// Time between the end of one flow and the beginning of the next of a client.
    pub pause: Duration,
    /// The server.
    pub server: ServerParams,
}

/// A server of responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerParams {
    /// Time that it works on a request.
    pub service_time: Duration,
    /// Requests that it works on at once, others wait in order of arrival; `None`: all.
    pub workers: Option<u32>,
}

/// Sizes of responses, or of transfers, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferSizes {
    /// All alike.
    Equal(u64),
    /// Exponentially distributed with this mean, at least 1.
    Exponential(u64),
    /// Drawn by weight: (bytes, weight).
    Mix(Vec<(u64, u32)>),
}

/// Clients that play a stream of segments offered in several qualities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoParams {
    /// Clients, each over one connection that stays open.
    pub clients: u32,
    /// Bit rates of the qualities, lowest first.
    pub ladder: Vec<BitRate>,
    /// Length of a segment, in time played.
    pub segment: Duration,
    /// Most that a client has to play at the top quality; below it, three fifths of that. It asks for a segment once there
    /// is room for it, or, where a segment is longer than that, once it has less to play.
    pub buffer: Duration,
    /// How it chooses qualities.
    pub rule: AdaptationRule,
    /// Each begins so much later than the one before it, besides what is drawn.
    pub stagger: Duration,
    /// The server.
    pub server: ServerParams,
}

/// How a video client chooses the quality of the next segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdaptationRule {
    /// By the throughput of the last segments.
    Throughput,
    /// By how much it has to play: BOLA (Spiteri, Urgaonkar, Sitaraman 2016).
    Bola,
    /// The first while there is little to play, the second once there is enough, as dash.js does.
    #[default]
    Dynamic,
}

impl ApplicationParams {
    /// True where the sender of the data opens the connections; else the receiver does, and asks.
    #[must_use]
    pub const fn sender_opens(&self) -> bool {
        matches!(self, Self::Bulk(_))
    }

    /// Most that all connections of a bulk transfer together hand to their transport, bit/s; `None`: no such limit.
    #[must_use]
    pub fn limit_bits_per_second(&self) -> Option<u64> {
        let Self::Bulk(bulk) = self else {
            return None;
        };
        let each = bulk.bitrate?.bits_per_second();
        Some(each.saturating_mul(u64::from(bulk.flows)))
    }

    /// Ports that its connections use, of which the first is `first`. A connection that is opened again has another port,
    /// so that its packets are another flow: ports are used again once there are no more.
    #[must_use]
    pub fn ports(&self, first: u16) -> u32 {
        let connections = self.connections();
        match self {
            Self::ShortFlows(_) => {
                let there_are = u32::from(u16::MAX - first) + 1;
                (there_are / connections.max(1)).max(1) * connections
            }
            _ => connections,
        }
    }

    /// Connections that are open at once.
    #[must_use]
    pub const fn connections(&self) -> u32 {
        match self {
            Self::Bulk(bulk) => bulk.flows,
            Self::Requests(requests) => requests.connections,
            Self::ShortFlows(flows) => flows.clients,
            Self::Video(video) => video.clients,
        }
    }
}

impl RequestsParams {
    /// Time between two requests, rounded down; zero where none is ever due.
    #[must_use]
    pub const fn period(&self) -> Duration {
        match KILOSECOND_NS.checked_div(self.per_kilosecond) {
            Some(nanos) => Duration::from_nanos(nanos),
            None => Duration::ZERO,
        }
    }
}

impl TransferSizes {
    /// Mean size, bytes, rounded down; 0 of a mix without weights.
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        match self {
            Self::Equal(bytes) | Self::Exponential(bytes) => *bytes,
            Self::Mix(sizes) => {
                let weights: u128 = sizes.iter().map(|(_, weight)| u128::from(*weight)).sum();
                let sum: u128 = sizes
                    .iter()
                    .map(|(bytes, weight)| u128::from(*bytes) * u128::from(*weight))
                    .sum();
                u64::try_from(sum / weights.max(1)).unwrap_or(u64::MAX)
            }
        }
    }

    /// The largest, bytes; of an exponential distribution, which has none, its mean.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        match self {
            Self::Equal(bytes) | Self::Exponential(bytes) => *bytes,
            Self::Mix(sizes) => sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}
