//! What a study may ask for and the simulator does not model yet: warned of, and stated in the report.

use super::policies::classes_of;
use super::{Checker, StudySpec};
use crate::file::{Node, Span};
use crate::spec::Scalar;
use slicewise_traffic::scenario::Ecn;

/// The IP protocol of TCP.
const TCP: u8 = 6;

/// Something that is not modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    /// A transport that adapts to the network.
    Tcp,
    /// Marks, where no packet can be marked.
    Ecn,
}

impl Limit {
    /// What is said where it is asked for.
    const fn warning(self) -> &'static str {
        match self {
            Self::Tcp => {
                "the simulator sends these packets at the source's pace, with TCP's header and without \
                 its congestion control, acknowledgements and retransmissions"
            }
            Self::Ecn => {
                "no source of this study is ECN-capable (`headers: {ecn: ect0}`): this flow queue drops packets \
                 and marks none"
            }
        }
    }

    /// What the report says.
    const fn statement(self) -> &'static str {
        match self {
            Self::Tcp => {
                "TCP is not simulated: packets of sources with `protocol: tcp` leave at the source's \
                 pace, without congestion control, acknowledgements and retransmissions."
            }
            Self::Ecn => {
                "No source is ECN-capable, so flow queues with `ecn: yes` drop packets and mark none."
            }
        }
    }
}

impl Checker<'_> {
    /// Warn of settings that a simulation does not heed; returns a statement of each kind.
    pub(super) fn unmodelled(&mut self, spec: &StudySpec) -> Vec<String> {
        let tcp = tcp_sources(spec).into_iter().map(|at| (at, Limit::Tcp));
        let mut found: Vec<(Span, Limit)> = tcp.collect();
        let policies = spec.policies.names().into_iter();
        for name in policies.filter(|_| !is_ecn_capable(spec)) {
            if let Some(policy) = self.entry_at(&["policies", name]) {
                ecn_queues(policy.node, &mut found);
            }
        }
        for (at, limit) in &found {
            self.problems.warn(*at, limit.warning());
        }
        let mut kinds: Vec<Limit> = found.into_iter().map(|(_, limit)| limit).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
            .iter()
            .map(|limit| limit.statement().to_owned())
            .collect()
    }
}

/// Where the protocol is written of the sources that send TCP.
fn tcp_sources(spec: &StudySpec) -> Vec<Span> {
    let scenarios = spec.scenarios.iter();
    let sources = scenarios.flat_map(|(_, scenario)| scenario.sources.iter());
    let protocol = |source: &super::traffic::SourceSpec| {
        let of_slice = || {
            let slice = spec.slices.get(&source.slice.as_ref()?.value.0.0)?;
            slice.value.headers.value.protocol.clone()
        };
        let protocol = source.headers.protocol.clone().or_else(of_slice);
        protocol.filter(|protocol| protocol.value.0 == TCP)
    };
    let tcp = sources.filter_map(|(_, source)| protocol(&source.value));
    tcp.map(|protocol| protocol.span).collect()
}

/// Where a policy's flow queues, also those of children, are to mark packets.
fn ecn_queues(policy: &Node, found: &mut Vec<(Span, Limit)>) {
    for class in classes_of(policy) {
        let flow_queue = class.entry("flow_queue");
        if let Some((key, ecn)) = flow_queue.and_then(|(_, queue)| queue.entry("ecn"))
            && ecn
                .text()
                .is_some_and(|text| bool::from_text(text) == Ok(true))
        {
            found.push((ecn.anchor(Some(key.span)), Limit::Ecn));
        }
        if let Some((_, child)) = class.entry("child") {
            ecn_queues(child, found);
        }
    }
}

/// Whether a source may send packets that can be marked.
fn is_ecn_capable(spec: &StudySpec) -> bool {
    let of_scenarios = spec.scenarios.iter().flat_map(|(_, s)| s.sources.iter());
    let of_sources = of_scenarios.map(|(_, source)| &source.value.headers);
    let slices = spec.slices.iter();
    let of_slices = slices.map(|(_, slice)| &slice.value.headers.value);
    let mut headers = of_sources.chain(of_slices);
    headers.any(|headers| headers.ecn.is_some_and(|ecn| ecn != Ecn::NotEct))
}
