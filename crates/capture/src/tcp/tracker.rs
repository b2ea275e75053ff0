//! Retransmissions and round-trip times of every TCP flow at one point.

use super::rtt::{RttFigures, RttHistogram};
use super::segment::TcpSegment;
use slicewise_wire::TcpFlags;
use std::collections::VecDeque;

/// One direction of a TCP connection, seen at a point near its sender.
///
/// Far from the sender, segments lost before the point are missing, and reordered ones count as
/// retransmitted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TcpFigures {
    /// Segments with data, a SYN or a FIN, retransmitted ones too.
    pub segments: u64,
    /// Bytes of payload sent for the first time.
    pub data_bytes: u64,
    /// Segments that begin below the highest sequence number already sent.
    pub retransmitted_segments: u64,
    /// Bytes of payload sent again.
    pub retransmitted_bytes: u64,
    /// Keep-alive probes (RFC 9293, section 3.8.4); not retransmissions.
    pub keep_alives: u64,
    /// Bytes acknowledged by the other end.
    pub acknowledged_bytes: u64,
    /// Time from data to the acknowledgement that covers it, seen from this point: the whole round trip
    /// if the point is at the sender.
    pub rtt: RttFigures,
}

/// Tracks every flow of one point.
///
/// Round-trip times follow Karn's rule (RFC 6298, section 3): a retransmission excludes everything
/// outstanding from the measurement, because an acknowledgement could be for either copy, or have waited
/// for the gap to be filled. An acknowledgement gives one sample, from the latest data it covers.
///
/// A flow takes at most about 6 KiB: at most [`MOST_OUTSTANDING`] outstanding segments are kept.
#[derive(Debug, Clone)]
pub struct TcpTracker<P> {
    flows: Vec<Flow>,
    reverse_flow: P,
}

/// Most segments of a flow awaiting acknowledgement; further ones give no round-trip time.
pub const MOST_OUTSTANDING: usize = 256;

#[derive(Debug, Clone, Default)]
struct Flow {
    figures: TcpFigures,
    /// Next sequence number after the highest sent.
    next: Option<u32>,
    acknowledged: Option<u32>,
    outstanding: VecDeque<Outstanding>,
    rtt: RttHistogram,
    reverse: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Outstanding {
    end: u32,
    time_ns: u64,
}

impl<P: FnMut(u32) -> Option<u32>> TcpTracker<P> {
    /// `reverse_flow` returns the flow with addresses and ports swapped, once there is one.
    pub const fn new(reverse_flow: P) -> Self {
        Self {
            flows: Vec::new(),
            reverse_flow,
        }
    }

    /// A segment was seen; segments come in time order.
    pub fn on_segment(&mut self, segment: &TcpSegment) {
        let index = segment.flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.on_sent(segment);
        if !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if flow.reverse.is_none() {
            flow.reverse = (self.reverse_flow)(segment.flow);
        }
        let Some(reverse) = flow.reverse else {
            return;
        };
        if let Some(acknowledged) = self.flows.get_mut(reverse as usize) {
            acknowledged.on_acknowledged(segment);
        }
    }

    /// Figures of a flow; `None` if no segment of it was seen.
    #[must_use]
    pub fn flow(&self, flow: u32) -> Option<TcpFigures> {
        let flow = self.flows.get(flow as usize)?;
        flow.next?;
        Some(TcpFigures {
            rtt: flow.rtt.figures(),
            ..flow.figures
        })
    }

    /// Heap memory in use, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_flow = |flow: &Flow| {
            flow.outstanding.capacity() * size_of::<Outstanding>() + flow.rtt.memory_bytes()
        };
        self.flows.capacity() * size_of::<Flow>() + self.flows.iter().map(of_flow).sum::<usize>()
    }
}

impl Flow {
    fn on_sent(&mut self, segment: &TcpSegment) {
        let length = segment.sequence_length();
        let end = segment.sequence.wrapping_add(length);
        let is_new_connection =
            segment.flags.contains(TcpFlags::SYN) && self.next != Some(end) && {
                // A retransmitted SYN has its original number: everything before `next` is this SYN.
                self.next.is_none_or(|next| {
                    !is_before(segment.sequence, next) || self.acknowledged.is_some()
                })
            };
        if is_new_connection {
            self.outstanding.clear();
            self.acknowledged = None;
            self.next = Some(segment.sequence);
        }
        let next = *self.next.get_or_insert(segment.sequence);
        if self.is_keep_alive(segment, next) {
            self.figures.keep_alives += 1;
            return;
        }
        if length == 0 {
            return;
        }
        self.figures.segments += 1;
        if is_before(segment.sequence, next) {
            self.on_retransmitted(segment, next);
        } else if self.outstanding.len() < MOST_OUTSTANDING {
            let time_ns = segment.time_ns;
            self.outstanding.push_back(Outstanding { end, time_ns });
            self.figures.data_bytes += u64::from(segment.payload_bytes);
        } else {
            self.figures.data_bytes += u64::from(segment.payload_bytes);
        }
        if is_before(next, end) {
            self.next = Some(end);
        }
    }

    fn on_retransmitted(&mut self, segment: &TcpSegment, next: u32) {
        let before_next = next.wrapping_sub(segment.sequence);
        let again = segment.payload_bytes.min(before_next);
        self.figures.retransmitted_segments += 1;
        self.figures.retransmitted_bytes += u64::from(again);
        self.figures.data_bytes += u64::from(segment.payload_bytes - again);
        self.outstanding.clear();
    }

    /// A probe repeats the last sequence number with at most one byte while nothing is outstanding.
    fn is_keep_alive(&self, segment: &TcpSegment, next: u32) -> bool {
        segment.payload_bytes <= 1
            && [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST]
                .iter()
                .all(|flag| !segment.flags.contains(*flag))
            && segment.sequence == next.wrapping_sub(1)
            && self.acknowledged == Some(next)
    }

    /// A segment of the other direction acknowledges data of this flow.
    fn on_acknowledged(&mut self, segment: &TcpSegment) {
        let number = segment.acknowledgement;
        let Some(next) = self.next else {
            return;
        };
        if is_before(next, number) {
            // It acknowledges data this point has not seen.
            return;
        }
        match self.acknowledged {
            Some(before) if !is_before(before, number) => return,
            Some(before) => {
                self.figures.acknowledged_bytes += u64::from(number.wrapping_sub(before));
            }
            None => {}
        }
        self.acknowledged = Some(number);
        let mut latest = None;
        while let Some(oldest) = self.outstanding.front() {
            if is_before(number, oldest.end) {
                break;
            }
            latest = self.outstanding.pop_front();
        }
        if let Some(rtt_ns) = latest.and_then(|data| segment.time_ns.checked_sub(data.time_ns)) {
            self.rtt.add(rtt_ns);
        }
    }
}

/// Returns true if a sequence number is before another, modulo 2³² (RFC 9293, section 3.4).
#[inline]
const fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}
