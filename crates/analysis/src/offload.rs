//! Segments that one end captured whole and the other split, because an adapter or a kernel splits or
//! merges them (TSO, GSO, GRO, LRO). Such packets never match and would count as lost.

use crate::connections::FlowPairs;
use crate::slices::FlowName;
use slicewise_capture::matching::{FlowDirection, MatchObserver};
use slicewise_capture::{Sighting, TcpSegment};
use slicewise_wire::Headers;
use std::collections::HashMap;
use std::fmt;

/// Looks for TCP segments that start alike at both ends but differ in length.
///
/// One segment in four is examined, selected by sequence number, so that both ends examine the same.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Payload of segments seen at one end and not yet at the other.
    waiting: [HashMap<u64, u32>; 2],
    flows: HashMap<Ports, Samples>,
}

/// Addresses and ports of a flow.
type Ports = (u128, u128, u16, u16);

#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    alike: u64,
    longer_sent: u64,
    longer_received: u64,
}

impl Segments {
    pub(crate) fn on_segment(&mut self, side: Side, headers: &Headers, segment: &TcpSegment) {
        if segment.payload_bytes == 0 {
            return;
        }
        let ports = u64::from(headers.source_port) << 48
            | u64::from(headers.destination_port) << 32
            | u64::from(segment.sequence);
        let key = ports.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if key >> 62 != 0 {
            return;
        }
        let (here, there) = match side {
            Side::Sent => (0, 1),
            Side::Received => (1, 0),
        };
        let Some(other_bytes) = self.waiting[there].remove(&key) else {
            if self.waiting[here].len() >= MOST_WAITING {
                self.waiting[here].clear();
            }
            self.waiting[here].insert(key, segment.payload_bytes);
            return;
        };
        let bytes = [segment.payload_bytes, other_bytes];
        let (sent, received) = (bytes[here], bytes[there]);
        let samples = self.flows.entry(ports_of(headers)).or_default();
        match sent.cmp(&received) {
            std::cmp::Ordering::Equal => samples.alike += 1,
            std::cmp::Ordering::Greater => samples.longer_sent += 1,
            std::cmp::Ordering::Less => samples.longer_received += 1,
        }
    }

    fn of(&self, headers: &Headers) -> Samples {
        let samples = self.flows.get(&ports_of(headers));
        samples.copied().unwrap_or_default()
    }
}

impl Samples {
    /// A segment is occasionally retransmitted with another length.
    const fn are_split(self) -> bool {
        let split = self.longer_sent + self.longer_received;
        split >= LEAST_SAMPLES && split * LEAST_SHARE > self.alike + split
    }
}

const fn ports_of(headers: &Headers) -> Ports {
    (
        headers.source,
        headers.destination,
        headers.source_port,
        headers.destination_port,
    )
}

/// Packets of each flow seen at one end only.
#[derive(Debug, Default)]
pub(crate) struct OneEnded {
    pub(crate) lost: Vec<Packets>,
    pub(crate) unsent: Vec<Packets>,
}

/// Number, lengths and times of packets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Packets {
    pub(crate) count: u64,
    bytes: u64,
    largest_bytes: u32,
    pub(crate) ttl_sum: u64,
    /// The earliest, by the clock of its end; 0 without packets.
    pub(crate) first_ns: u64,
}

impl Packets {
    fn add(flows: &mut Vec<Self>, packet: &Sighting) {
        let index = packet.flow as usize;
        if index >= flows.len() {
            flows.resize(index + 1, Self::default());
        }
        if let Some(flow) = flows.get_mut(index) {
            flow.join(&Self {
                count: 1,
                bytes: u64::from(packet.l2_bytes),
                largest_bytes: packet.l2_bytes,
                ttl_sum: u64::from(packet.ttl),
                first_ns: packet.time_ns,
            });
        }
    }

    /// Adds other packets.
    pub(crate) fn join(&mut self, other: &Self) {
        self.first_ns = match (self.count, other.count) {
            (0, _) => other.first_ns,
            (_, 0) => self.first_ns,
            _ => self.first_ns.min(other.first_ns),
        };
        self.count += other.count;
        self.bytes += other.bytes;
        self.largest_bytes = self.largest_bytes.max(other.largest_bytes);
        self.ttl_sum += other.ttl_sum;
    }

    /// The same without so many bytes of each.
    pub(crate) const fn without(mut self, bytes: u64) -> Self {
        self.bytes = self.bytes.saturating_sub(bytes.saturating_mul(self.count));
        self
    }

    /// Returns true if number and lengths are those of the others.
    pub(crate) const fn equal(&self, other: &Self) -> bool {
        self.count == other.count && self.bytes == other.bytes
    }

    /// Mean length; 0 without packets.
    pub(crate) fn mean_bytes(&self) -> u64 {
        self.bytes / self.count.max(1)
    }

    /// Returns true if these are on average at least 1.5 times as long as the others.
    const fn are_longer(&self, other: &Self) -> bool {
        let mine = self.bytes as u128 * other.count as u128 * 2;
        mine >= other.bytes as u128 * self.count as u128 * 3
    }
}

impl MatchObserver for OneEnded {
    fn on_lost(&mut self, sent: &Sighting, _: u64) {
        Packets::add(&mut self.lost, sent);
    }

    fn on_unsent(&mut self, received: &Sighting) {
        Packets::add(&mut self.unsent, received);
    }
}

/// A flow whose packets are longer at one end than at the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitFlow {
    /// Which flow.
    pub flow: String,
    /// Packets seen only at the sending point, and the longest of them, L2 bytes.
    pub sent: (u64, u32),
    /// Packets seen only at the receiving point, and the longest of them, L2 bytes.
    pub received: (u64, u32),
}

/// Classification of the packets seen only at the receiving point.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// Of reverse flows: lost in transit.
    pub(crate) lost_back: u64,
    /// A forward flow that is split or merged in transit.
    pub(crate) split: Option<SplitFlow>,
}

impl OneEnded {
    /// Compare each flow of the receiving point with the flows of the sending point that have the same
    /// or the opposite headers.
    pub(crate) fn judge(
        &self,
        received_flows: &[Headers],
        pairs: &FlowPairs,
        segments: &Segments,
        direction: impl Fn(u32) -> Option<FlowDirection>,
    ) -> Unsent {
        let mut found = Unsent::default();
        for (headers, unsent) in received_flows.iter().zip(&self.unsent) {
            if unsent.count == 0 {
                continue;
            }
            let sent_flow = pairs.flow_of(headers);
            let lost = sent_flow.and_then(|flow| self.lost.get(flow as usize));
            let lost = lost.copied().unwrap_or_default();
            let is_split = segments.of(headers).are_split() || are_split(&lost, unsent);
            let of_answers = || direction(pairs.answered_by(headers)?).map(opposite);
            let way = sent_flow.and_then(&direction).or_else(of_answers);
            match way {
                Some(FlowDirection::Reverse) if !is_split => found.lost_back += unsent.count,
                Some(FlowDirection::Forward) if is_split && found.split.is_none() => {
                    found.split = Some(SplitFlow {
                        flow: FlowName(headers).to_string(),
                        sent: (lost.count, lost.largest_bytes),
                        received: (unsent.count, unsent.largest_bytes),
                    });
                }
                _ => {}
            }
        }
        found
    }
}

const fn opposite(direction: FlowDirection) -> FlowDirection {
    match direction {
        FlowDirection::Forward => FlowDirection::Reverse,
        FlowDirection::Reverse => FlowDirection::Forward,
    }
}

/// Returns true if packets of one end are parts of the packets of the other: different lengths, and about as many bytes
/// as were not lost. Each part has its own headers.
fn are_split(lost: &Packets, unsent: &Packets) -> bool {
    let fewest = lost.count.min(unsent.count);
    let differ = lost.are_longer(unsent) || unsent.are_longer(lost);
    fewest >= LEAST_SAMPLES && differ && unsent.bytes <= lost.bytes.saturating_mul(2)
}

impl fmt::Display for SplitFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            flow,
            sent: (sent, sent_bytes),
            received: (received, received_bytes),
        } = self;
        let why = if sent_bytes > received_bytes {
            "the sending end captures segments before they are split (TSO, GSO)"
        } else {
            "the receiving end captures segments after they are merged (GRO, LRO)"
        };
        write!(
            f,
            "packets of {flow} have different lengths at the two ends: {sent} of up to \
             {sent_bytes} bytes were seen only at the sender, {received} of up to \
             {received_bytes} bytes only at the receiver. Probably {why}. Such packets cannot be \
             matched, so loss is unknown. Disable offloads at both ends with `ethtool -K IF tso \
             off gso off gro off lro off`, and capture \
             again; or leave this flow out of both captures"
        )
    }
}

/// Most segments of one end waiting for the other end.
const MOST_WAITING: usize = 1 << 16;

/// Fewer may be chance.
const LEAST_SAMPLES: u64 = 4;

/// One in this many of the segments examined must differ.
const LEAST_SHARE: u64 = 50;

/// One of the two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Sent,
    Received,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Sent => Self::Received,
            Self::Received => Self::Sent,
        }
    }
}
