//! A pass over two points, its packets sorted by the way they go.

use crate::clocks::Clocks;
use crate::connections::FlowPairs;
use crate::params::AnalysisError;
use crate::pass::{self, Beside, Pair, PassFacts, Prefix, Watch};
use slicewise_capture::Sighting;
use slicewise_capture::clock::DelayFloor;
use slicewise_capture::matching::{
    DirectionCounts, DirectionFilter, DirectionProbe, MatchObserver, SendOrder,
};
use slicewise_wire::Headers;
use std::cell::RefCell;

/// What a pass gave.
pub(crate) struct Sorted<O> {
    /// The observer of packets that go forward.
    pub(crate) forward: O,
    /// How much went which way.
    pub(crate) ways: DirectionCounts,
    pub(crate) clocks: Clocks,
    pub(crate) facts: PassFacts,
}

/// Match all packets of `pair` and tell those that go forward to what `begin` makes; those that go back
/// tell of the clocks, and of nothing else. `pairs` is to be told of all flows by `beside`.
pub(crate) fn run<O: MatchObserver, B: Beside>(
    pair: Pair,
    timeout_ns: u64,
    headers: &RefCell<Vec<Headers>>,
    pairs: &FlowPairs,
    beside: &mut B,
    watch: &dyn Watch,
    begin: impl FnOnce(&Prefix<'_>) -> O,
) -> Result<Sorted<O>, AnalysisError> {
    let mut alignment_ns = 0;
    let reverse_flow = |flow| pairs.reverse_of(flow);
    let (filter, facts) = pass::run(pair, timeout_ns, headers, beside, watch, |prefix| {
        alignment_ns = prefix.alignment_ns;
        let floor = |delays| Floor { delays };
        let forward = (floor(DelayFloor::forward()), begin(prefix));
        let reverse = floor(DelayFloor::reverse());
        let probe = DirectionProbe::new(prefix.sent, prefix.received, reverse_flow);
        DirectionFilter::new(forward, reverse, &probe, reverse_flow)
    })?;
    let ((forth, forward), back, ways) = filter.into_parts();
    let clocks = Clocks::new(&forth.delays, &back.delays, alignment_ns);
    Ok(Sorted {
        forward,
        ways,
        clocks,
        facts,
    })
}

/// Watches delays as the clocks tell them.
struct Floor {
    delays: DelayFloor,
}

impl MatchObserver for Floor {
    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: SendOrder) {
        self.delays.add(sent.time_ns, received.time_ns);
    }
}
