//! What a study may ask for and the simulator does not model yet: warned of, and stated in the report.

use super::Checker;
use crate::file::{At, Span};
use crate::spec::{ClassFileSpec, Protocol, StudySpec, Text};

/// The IP protocol of TCP.
const TCP: Protocol = Protocol(6);

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
        let mut found: Vec<(Span, Limit)> = self
            .tcp_sources(spec)
            .into_iter()
            .map(|at| (at, Limit::Tcp))
            .collect();
        let policies = spec.policies.iter().filter(|_| !is_ecn_capable(spec));
        for (_, policy) in policies {
            let classes = policy.classes.iter().flat_map(|classes| &classes.value.0);
            for class in classes {
                self.ecn_queues(class, &mut found);
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

    /// Where the protocol is written of the sources that send TCP.
    fn tcp_sources(&mut self, spec: &StudySpec) -> Vec<Span> {
        let scenarios = spec.scenarios.iter();
        let sources = scenarios.flat_map(|(_, scenario)| scenario.sources.iter());
        let mut protocols: Vec<&Text<Protocol>> = Vec::new();
        for (_, source) in sources {
            let slice = source.slice.as_ref().map(Text::text);
            let mut slices = spec.slices.iter();
            let slice = slices.find(|(name, _)| Some(name.text()) == slice);
            let of_slice = slice.and_then(|(_, slice)| slice.headers.protocol.as_ref());
            protocols.extend(source.headers.protocol.as_ref().or(of_slice));
        }
        let is_tcp = |text: &&Text<Protocol>| text.read(self.problems) == Some(TCP);
        protocols
            .into_iter()
            .filter(is_tcp)
            .map(Text::span)
            .collect()
    }

    fn ecn_queues(&mut self, class: &At<ClassFileSpec>, found: &mut Vec<(Span, Limit)>) {
        let class = &class.value;
        let flow_queue = class.flow_queue.as_ref();
        if let Some(text) = flow_queue.and_then(|flow_queue| flow_queue.value.ecn.as_ref())
            && text.read(self.problems) == Some(true)
        {
            found.push((text.span(), Limit::Ecn));
        }
        for class in class.child.iter().flat_map(|child| &child.value.classes.0) {
            self.ecn_queues(class, found);
        }
    }
}

/// Whether a source may send packets that can be marked.
fn is_ecn_capable(spec: &StudySpec) -> bool {
    let of_scenarios = spec.scenarios.iter().flat_map(|(_, s)| s.sources.iter());
    let of_sources = of_scenarios.map(|(_, source)| &source.headers);
    let of_slices = spec.slices.iter().map(|(_, slice)| &slice.headers);
    of_sources.chain(of_slices).any(|headers| {
        headers
            .ecn
            .as_ref()
            .is_some_and(|ecn| ecn.text() != "not_ect")
    })
}
