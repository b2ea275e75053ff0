//! Sorts matching results by the direction of their flows.

use super::{DirectionProbe, FlowDirection, Split, by_capture, by_time_to_live, difference};
use crate::Sighting;
use crate::matching::{AmbiguousGroup, MatchObserver, SendOrder};

/// Reports forward packets to one observer and reverse packets to another.
///
/// The direction of a flow never changes once set. Packets of a flow that [`DirectionProbe`] did not see
/// are held until the first of them is matched, usually for one delay. So sent packets are reported in
/// time order within a flow, not across flows. A flow that is never matched takes the direction opposite
/// to its reverse flow, or forward: its packets count as lost, so that a path that loses everything is
/// not hidden.
///
/// Reverse packets arrive at the sending point, but are reported as if they were forward: for them
/// "lost" means unsent and "unsent" means lost.
#[derive(Debug, Clone)]
pub struct DirectionFilter<F, R, P> {
    forward: F,
    reverse: R,
    reverse_flow: P,
    split: Split,
    /// By index at the sending point.
    flows: Vec<Flow>,
    /// By index at the receiving point, the index at the sending point.
    sent_flows: Vec<Option<u32>>,
    held: usize,
    counts: DirectionCounts,
}

#[derive(Debug, Clone, Default)]
struct Flow {
    direction: Option<FlowDirection>,
    /// Packets sent before the direction was known.
    held: Vec<Sighting>,
}

/// Traffic in each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionCounts {
    /// From the sending to the receiving point.
    pub forward: WayCounts,
    /// Back.
    pub reverse: WayCounts,
    /// Flows of the sending point without a matched packet when their direction was needed; also counted
    /// above.
    pub assumed_flows: u64,
    /// Packets seen at the receiving point only, of flows without a matched packet.
    pub unknown_unsent_packets: u64,
}

/// Flows, packets and bytes at the sending point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Flows.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes at layer 2, without FCS.
    pub bytes: u64,
}

impl DirectionCounts {
    /// Returns true if more bytes go back than forward: the two captures are probably swapped.
    #[must_use]
    pub const fn look_exchanged(&self) -> bool {
        self.reverse.bytes > self.forward.bytes
    }
}

impl<F, R, P> DirectionFilter<F, R, P>
where
    F: MatchObserver,
    R: MatchObserver,
    P: FnMut(u32) -> Option<u32>,
{
    /// Reports to `forward` and `reverse`. `reverse_flow` maps a flow of the sending point to the flow
    /// there with addresses and ports swapped, if there is one.
    pub fn new(forward: F, reverse: R, probe: &DirectionProbe, reverse_flow: P) -> Self {
        let mut filter = Self {
            forward,
            reverse,
            reverse_flow,
            split: probe.split,
            flows: Vec::new(),
            sent_flows: Vec::new(),
            held: 0,
            counts: DirectionCounts::default(),
        };
        for &(flow, direction) in &probe.flows {
            filter.decide(flow, direction);
        }
        filter
    }

    /// Direction of a flow of the sending point; `None` while unknown.
    #[must_use]
    pub fn direction(&self, flow: u32) -> Option<FlowDirection> {
        self.flows.get(flow as usize)?.direction
    }

    /// Counts so far, without flows whose direction is still unknown.
    #[must_use]
    pub const fn counts(&self) -> &DirectionCounts {
        &self.counts
    }

    /// The flow of the sending point that corresponds to one of the receiving point; `None` if none of
    /// its packets was matched.
    #[must_use]
    pub fn sent_flow(&self, received_flow: u32) -> Option<u32> {
        *self.sent_flows.get(received_flow as usize)?
    }

    /// The two observers and the counts.
    #[must_use]
    pub fn into_parts(self) -> (F, R, DirectionCounts) {
        (self.forward, self.reverse, self.counts)
    }

    /// Direction of a flow with a matched packet.
    #[inline]
    fn matched(&mut self, sent: &Sighting, received: &Sighting) -> FlowDirection {
        let difference_ns = difference(sent, received);
        let direction = match self.direction(sent.flow) {
            Some(direction) => direction,
            None => self.decide_by_match(sent, received, difference_ns),
        };
        if !sent.time_is_restored && !received.time_is_restored {
            self.split.learn(direction, difference_ns);
        }
        let received_flow = received.flow as usize;
        if received_flow >= self.sent_flows.len() {
            self.sent_flows.resize(received_flow + 1, None);
        }
        if let Some(sent_flow) = self.sent_flows.get_mut(received_flow) {
            *sent_flow = Some(sent.flow);
        }
        direction
    }

    #[cold]
    fn decide_by_match(
        &mut self,
        sent: &Sighting,
        received: &Sighting,
        difference_ns: i64,
    ) -> FlowDirection {
        let direction = by_time_to_live(sent, received)
            .or_else(|| self.opposite_of_reverse(sent.flow))
            .or_else(|| by_capture(sent, received))
            .unwrap_or_else(|| self.split.direction_of(difference_ns));
        self.decide(sent.flow, direction);
        direction
    }

    /// Direction of a flow; decided now if it was not yet.
    #[inline]
    fn settled(&mut self, flow: u32) -> FlowDirection {
        match self.direction(flow) {
            Some(direction) => direction,
            None => self.assume(flow),
        }
    }

    #[cold]
    fn assume(&mut self, flow: u32) -> FlowDirection {
        let direction = self
            .opposite_of_reverse(flow)
            .unwrap_or(FlowDirection::Forward);
        self.counts.assumed_flows += 1;
        self.decide(flow, direction);
        direction
    }

    fn opposite_of_reverse(&mut self, flow: u32) -> Option<FlowDirection> {
        let other = (self.reverse_flow)(flow)?;
        self.direction(other).map(FlowDirection::opposite)
    }

    fn decide(&mut self, index: u32, direction: FlowDirection) {
        let flow = self.flow_mut(index);
        flow.direction = Some(direction);
        let held = std::mem::take(&mut flow.held);
        self.held -= held.len();
        self.way_mut(direction).flows += 1;
        for sent in &held {
            self.report_sent(direction, sent);
        }
    }

    #[inline]
    fn report_sent(&mut self, direction: FlowDirection, sent: &Sighting) {
        let way = self.way_mut(direction);
        way.packets += 1;
        way.bytes += u64::from(sent.l2_bytes);
        match direction {
            FlowDirection::Forward => self.forward.on_sent(sent),
            FlowDirection::Reverse => self.reverse.on_sent(sent),
        }
    }

    #[cold]
    fn hold(&mut self, sent: &Sighting) {
        if self.held >= MOST_HELD {
            let direction = self.assume(sent.flow);
            self.report_sent(direction, sent);
            return;
        }
        self.held += 1;
        self.flow_mut(sent.flow).held.push(*sent);
    }

    fn flow_mut(&mut self, index: u32) -> &mut Flow {
        let index = index as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        &mut self.flows[index]
    }

    #[inline]
    const fn way_mut(&mut self, direction: FlowDirection) -> &mut WayCounts {
        match direction {
            FlowDirection::Forward => &mut self.counts.forward,
            FlowDirection::Reverse => &mut self.counts.reverse,
        }
    }

    /// Direction of a flow of the receiving point; forward if unknown.
    fn of_received(&mut self, received_flow: u32) -> FlowDirection {
        let sent_flow = self.sent_flow(received_flow);
        sent_flow.map_or(FlowDirection::Forward, |flow| self.settled(flow))
    }
}

impl<F, R, P> MatchObserver for DirectionFilter<F, R, P>
where
    F: MatchObserver,
    R: MatchObserver,
    P: FnMut(u32) -> Option<u32>,
{
    #[inline]
    fn on_sent(&mut self, sent: &Sighting) {
        match self.direction(sent.flow) {
            Some(direction) => self.report_sent(direction, sent),
            None => self.hold(sent),
        }
    }

    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        match self.matched(sent, received) {
            FlowDirection::Forward => self.forward.on_received(sent, received, order),
            FlowDirection::Reverse => self.reverse.on_received(sent, received, order),
        }
    }

    #[inline]
    fn on_lost(&mut self, sent: &Sighting, send_order: u64) {
        match self.settled(sent.flow) {
            FlowDirection::Forward => self.forward.on_lost(sent, send_order),
            FlowDirection::Reverse => self.reverse.on_lost(sent, send_order),
        }
    }

    fn on_duplicate(&mut self, sent: &Sighting, received: &Sighting) {
        match self.settled(sent.flow) {
            FlowDirection::Forward => self.forward.on_duplicate(sent, received),
            FlowDirection::Reverse => self.reverse.on_duplicate(sent, received),
        }
    }

    fn on_unsent(&mut self, received: &Sighting) {
        if self.sent_flow(received.flow).is_none() {
            self.counts.unknown_unsent_packets += 1;
        }
        match self.of_received(received.flow) {
            FlowDirection::Forward => self.forward.on_unsent(received),
            FlowDirection::Reverse => self.reverse.on_unsent(received),
        }
    }

    fn on_ambiguous_sent(&mut self, sent: &Sighting) {
        match self.settled(sent.flow) {
            FlowDirection::Forward => self.forward.on_ambiguous_sent(sent),
            FlowDirection::Reverse => self.reverse.on_ambiguous_sent(sent),
        }
    }

    fn on_ambiguous_received(&mut self, first_sent: Option<&Sighting>, received: &Sighting) {
        let direction = match first_sent {
            Some(sent) => self.settled(sent.flow),
            None => self.of_received(received.flow),
        };
        match direction {
            FlowDirection::Forward => self.forward.on_ambiguous_received(first_sent, received),
            FlowDirection::Reverse => self.reverse.on_ambiguous_received(first_sent, received),
        }
    }

    fn on_ambiguous_closed(&mut self, group: &AmbiguousGroup) {
        let direction = match (group.first_sent, group.first_received) {
            (Some(sent), _) => self.settled(sent.flow),
            (None, Some(received)) => self.of_received(received.flow),
            (None, None) => FlowDirection::Forward,
        };
        match direction {
            FlowDirection::Forward => self.forward.on_ambiguous_closed(group),
            FlowDirection::Reverse => self.reverse.on_ambiguous_closed(group),
        }
    }
}

/// Most packets held over all flows (32 MB); beyond that, directions are assumed.
const MOST_HELD: usize = 1 << 20;
