//! Features that a study may ask for and the simulator does not model yet: warned of, and stated in the report; tunnels
//! at devices that do not look into them are refused.

use super::dpdk::headers;
use super::headers::TCP;
use super::policies::classes_of;
use super::traffic::{Network, SourceSpec};
use super::{Checker, StudySpec};
use crate::file::{Node, Placed, Span};
use crate::params::{DutModel, ScenarioParams};
use crate::problem;
use crate::spec::Scalar;
use crate::study::StudyPolicy;
use slicewise_model::PolicyParams;
use slicewise_traffic::scenario::Ecn;

/// Something that is not modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    /// A transport that adapts to the network.
    Tcp,
    /// Marks, where no packet can be marked.
    Ecn,
    /// A transport that answers to marks, where no queue marks.
    Unmarked,
}

impl Limit {
    /// Returns the warning at the setting that asks for it.
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
            Self::Unmarked => {
                "no queue of this study marks packets (`flow_queue: {}` does): this transport has losses alone to answer to"
            }
        }
    }

    /// Returns the statement in the report.
    const fn statement(self) -> &'static str {
        match self {
            Self::Tcp => {
                "TCP is not simulated: packets of sources with `protocol: tcp` leave at the source's \
                 pace, without congestion control, acknowledgements and retransmissions."
            }
            Self::Ecn => {
                "No source is ECN-capable, so flow queues with `ecn: yes` drop packets and mark none."
            }
            Self::Unmarked => {
                "No queue marks packets, so transports with ECN have losses alone to answer to."
            }
        }
    }
}

impl Checker<'_> {
    /// Packets in tunnels meet no model of a device that would classify them by the outer packet.
    pub(super) fn check_tunnels(
        &mut self,
        spec: &StudySpec,
        network: &Network,
        policies: &[StudyPolicy],
        scenarios: &[ScenarioParams],
    ) {
        let of_path = network.path.iter().map(|(_, device)| device);
        let of_policies = policies.iter().filter_map(|policy| policy.device.as_ref());
        let mut devices = of_path.chain(of_policies).chain([&network.dut]);
        let mut sent = scenarios.iter().flat_map(headers);
        if devices.any(|device| matches!(device.model, DutModel::Isr4221 | DutModel::QosSched(_)))
            && let Some((slice, _)) = sent.find(|(_, headers)| headers.tunnel.is_some())
            && let Some((name, _)) = spec.slices.iter().nth(slice)
        {
            problem!(self.problems, name.span => "packets of slice `{}` are in a tunnel (`headers: {{teid: ..}}`), and the models \
                `isr4221` and `qos_sched` are of devices that look at the outer packet", name.value;
                "give `dut: {{model: port}}`, `switch` or `gateway`, which look into tunnels, or leave `teid` out");
        }
    }

    /// Warn of settings that a simulation does not heed; `policies` are all that run on some device. Returns a statement of
    /// each kind.
    pub(super) fn unmodelled<'a>(
        &mut self,
        spec: &StudySpec,
        mut policies: impl Iterator<Item = &'a PolicyParams>,
    ) -> Vec<String> {
        let tcp = tcp_sources(spec).into_iter().map(|at| (at, Limit::Tcp));
        let mut found: Vec<(Span, Limit)> = tcp.collect();
        let mut marking = Vec::new();
        for name in spec.policies.names() {
            if let Some(policy) = self.entry_at(&["policies", name]) {
                ecn_queues(policy.node, &mut marking);
            }
        }
        if !policies.any(PolicyParams::marks) {
            let unmarked = marked_transports(spec).into_iter();
            found.extend(unmarked.map(|at| (at, Limit::Unmarked)));
        }
        if !is_ecn_capable(spec) {
            found.extend(marking.into_iter().map(|at| (at, Limit::Ecn)));
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

/// Every source of a scenario.
fn sources(spec: &StudySpec) -> impl Iterator<Item = &Placed<SourceSpec>> {
    let scenarios = spec.scenarios.iter();
    let sources = scenarios.flat_map(|(_, scenario)| scenario.sources.iter());
    sources.map(|(_, source)| source)
}

/// Where a transport is written that answers to marks.
fn marked_transports(spec: &StudySpec) -> Vec<Span> {
    let marked = sources(spec).filter(|source| {
        let transport = source.value.transport.as_ref();
        transport.is_some_and(|transport| transport.value.value.uses_ecn())
    });
    marked
        .filter_map(|source| source.place("transport"))
        .collect()
}

/// Where the protocol is written of the sources that send packets of TCP at their own pace.
fn tcp_sources(spec: &StudySpec) -> Vec<Span> {
    let at_their_pace = sources(spec).filter(|source| source.place("application").is_none());
    let protocol = |source: &SourceSpec| {
        let of_slice = || {
            let slice = spec.slices.get(&source.slice.as_ref()?.value.0.0)?;
            slice.value.headers.value.protocol.clone()
        };
        let protocol = source.headers.protocol.clone().or_else(of_slice);
        protocol.filter(|protocol| protocol.value.0 == TCP)
    };
    let tcp = at_their_pace.filter_map(|source| protocol(&source.value));
    tcp.map(|protocol| protocol.span).collect()
}

/// Where a policy's queues with `CoDel`, also those of children, are to mark packets.
fn ecn_queues(policy: &Node, found: &mut Vec<Span>) {
    let named = policy.entry("queues");
    let named = named.map_or(&[][..], |(_, queues)| queues.items());
    for class in classes_of(policy).iter().chain(named) {
        let codel = class.entry("flow_queue").or_else(|| class.entry("codel"));
        if let Some((key, ecn)) = codel.and_then(|(_, queue)| queue.entry("ecn"))
            && ecn
                .text()
                .is_some_and(|text| bool::from_text(text) == Ok(true))
        {
            found.push(ecn.anchor(Some(key.span)));
        }
        if let Some((_, child)) = class.entry("child") {
            ecn_queues(child, found);
        }
    }
}

/// Returns true if a source may send packets that can be marked.
fn is_ecn_capable(spec: &StudySpec) -> bool {
    if !marked_transports(spec).is_empty() {
        return true;
    }
    let of_sources = sources(spec).map(|source| &source.value.headers);
    let slices = spec.slices.iter();
    let of_slices = slices.map(|(_, slice)| &slice.value.headers.value);
    let mut headers = of_sources.chain(of_slices);
    headers.any(|headers| headers.ecn.is_some_and(|ecn| ecn != Ecn::NotEct))
}
