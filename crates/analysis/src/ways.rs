//! A pass over two points, with packets sorted by direction.

use crate::changed::OneEndedFlows;
use crate::clocks::Clocks;
use crate::connections::FlowObserver;
use crate::connections::FlowPairs;
use crate::describe;
use crate::offload::OneEnded;
use crate::params::AnalysisError;
use crate::pass::{self, Pair, PassFacts, Prefix, Watch};
use slicewise_capture::Sighting;
use slicewise_capture::clock::DelayFloor;
use slicewise_capture::matching::{
    DirectionCounts, DirectionFilter, DirectionProbe, MatchObserver, SendOrder,
};
use slicewise_wire::Headers;
use std::cell::RefCell;

/// Result of a pass.
pub(crate) struct Sorted<O> {
    /// The observer of packets that go forward.
    pub(crate) forward: O,
    /// Traffic in each direction.
    pub(crate) ways: DirectionCounts,
    /// Reverse packets that were lost.
    pub(crate) lost_back: u64,
    /// All packets have the same times at both points.
    pub(crate) is_one_capture: bool,
    pub(crate) clocks: Clocks,
    pub(crate) facts: PassFacts,
}

/// Match all packets of `pair` and report the forward ones to the observer made by `begin`; the reverse
/// ones are used only to estimate the clocks. `flow_observer` must report all flows to `pairs`.
pub(crate) fn run<O: MatchObserver, B: FlowObserver>(
    pair: Pair,
    timeout_ns: u64,
    headers: &RefCell<Vec<Headers>>,
    pairs: &FlowPairs,
    flow_observer: &mut B,
    watch: &dyn Watch,
    begin: impl FnOnce(&Prefix<'_>) -> O,
) -> Result<Sorted<O>, AnalysisError> {
    let mut alignment_ns = 0;
    let resolution_ns = pair.sent.resolution_ns().max(pair.received.resolution_ns());
    let reverse_flow = |flow| pairs.reverse_of(flow);
    let (observers, facts) =
        pass::run(pair, timeout_ns, headers, flow_observer, watch, |prefix| {
            alignment_ns = prefix.alignment_ns;
            let floor = |delays| Floor {
                delays,
                differs: false,
            };
            let [forward, reverse] = [DelayFloor::forward(), DelayFloor::reverse()]
                .map(|delays| floor(delays.with_resolution(resolution_ns)));
            let forward = (forward, begin(prefix));
            let probe = DirectionProbe::new(prefix.sent, prefix.received, reverse_flow);
            let filter = DirectionFilter::new(forward, reverse, &probe, reverse_flow);
            (filter, OneEnded::default())
        })?;
    let (filter, one_ended) = observers;
    let way = |flow| filter.direction(flow);
    let unsent = one_ended.judge(&facts.received_flows, pairs, &facts.segments, way);
    if let Some(flow) = unsent.split {
        return Err(AnalysisError::Split(flow));
    }
    let flows = OneEndedFlows {
        sent: &headers.borrow(),
        sent_packets: &facts.sent_in_flows,
        lost: &one_ended.lost,
        received: &facts.received_flows,
        unsent: &one_ended.unsent,
        alignment_ns,
        are_late: facts.counts.late * 2 >= facts.counts.unsent,
    };
    if let Some(flows) = flows.changed() {
        return Err(AnalysisError::Changed(flows));
    }
    if let Some(problem) = describe::guessed(&facts, timeout_ns) {
        return Err(AnalysisError::Nothing(problem));
    }
    let ((forth, forward), back, ways) = filter.into_parts();
    let was_set = facts.sent_times.step_count + facts.received_times.step_count > 0;
    let clocks = Clocks::new(&forth.delays, &back.delays, alignment_ns, was_set);
    Ok(Sorted {
        forward,
        ways,
        lost_back: unsent.lost_back,
        is_one_capture: forth.is_one_capture() && !back.differs,
        clocks,
        facts,
    })
}

/// Observes delays as measured by the clocks.
struct Floor {
    delays: DelayFloor,
    /// Some packet has different times at the two points.
    differs: bool,
}

impl Floor {
    const fn is_one_capture(&self) -> bool {
        !self.differs && self.delays.packets() >= LEAST_PACKETS
    }
}

/// Fewer may have equal times by chance, or with millisecond clocks.
const LEAST_PACKETS: u64 = 16;

impl MatchObserver for Floor {
    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: SendOrder) {
        if !sent.time_is_restored && !received.time_is_restored {
            self.delays.add(sent.time_ns, received.time_ns);
            self.differs |= sent.time_ns != received.time_ns;
        }
    }
}
