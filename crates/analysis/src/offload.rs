//! Segments that one end captured whole and the other in pieces, because an adapter or a kernel splits
//! or joins them (TSO, GSO, GRO, LRO). Such packets match nothing and would count as lost.

use crate::connections::FlowPairs;
use crate::ends::Side;
use crate::slices::FlowName;
use slicewise_capture::matching::{FlowDirection, MatchObserver};
use slicewise_capture::{Sighting, TcpSegment};
use slicewise_wire::Headers;
use std::collections::HashMap;
use std::fmt;

/// Looks for segments of TCP that begin alike at both ends and end elsewhere.
///
/// One segment in four is looked at, by its sequence number, so that both ends look at the same.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Payload of segments that one end showed and the other did not yet.
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
    /// Now and then a segment is sent again with another length.
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

/// Packets of each flow that were seen at one end only.
#[derive(Debug, Default)]
pub(crate) struct OneEnded {
    lost: Vec<Packets>,
    unsent: Vec<Packets>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Packets {
    count: u64,
    bytes: u64,
    largest_bytes: u32,
}

impl Packets {
    fn add(flows: &mut Vec<Self>, packet: &Sighting) {
        let index = packet.flow as usize;
        if index >= flows.len() {
            flows.resize(index + 1, Self::default());
        }
        if let Some(flow) = flows.get_mut(index) {
            flow.count += 1;
            flow.bytes += u64::from(packet.l2_bytes);
            flow.largest_bytes = flow.largest_bytes.max(packet.l2_bytes);
        }
    }

    /// Whether these are half as long again as the others, in the mean.
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
    /// Packets seen at the sending point only, and the longest of them, L2 bytes.
    pub sent: (u64, u32),
    /// Packets seen at the receiving point only, and the longest of them, L2 bytes.
    pub received: (u64, u32),
}

/// What became of the packets that were seen at the receiving point only.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// Of flows that go back: lost on the way.
    pub(crate) lost_back: u64,
    /// A flow that goes forward and is split or joined on the way.
    pub(crate) split: Option<SplitFlow>,
}

impl OneEnded {
    /// Judge each flow of the receiving point by the flows of the sending point with its headers, and
    /// with those of its answers.
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

/// Whether packets of one end are the pieces of those of the other: of other lengths, and of about as
/// many bytes as were not lost. Each piece has headers of its own.
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
            "the receiving end captures segments after they were joined (GRO, LRO)"
        };
        write!(
            f,
            "packets of {flow} have other lengths at the two ends: {sent} of up to {sent_bytes} bytes were \
             seen where they are sent only, {received} of up to {received_bytes} bytes where they are \
             received only. Probably {why}. Such packets cannot be matched, so loss is not known. Switch \
             offloads off at both ends with `ethtool -K IF tso off gso off gro off lro off`, and capture \
             again; or leave this flow out of both captures"
        )
    }
}

/// Segments of one end that wait for the other end, at most.
const MOST_WAITING: usize = 1 << 16;

/// Fewer may be chance.
const LEAST_SAMPLES: u64 = 4;

/// One in so many of the segments looked at must differ.
const LEAST_SHARE: u64 = 50;
