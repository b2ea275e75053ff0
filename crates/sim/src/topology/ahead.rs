//! Which adapters send ahead.
//!
//! When a frame leaves an adapter is not known before it does, as long as the adapter can be paused, can be full, or has
//! to tell a connection that there is room again. Where none of that is so, a frame is put on the link as soon as it is handed
//! over, behind those before it, and the adapter needs no timer.
//!
//! If moreover all packets on the link are of one source, the order of events elsewhere does not depend on when they are
//! handed over: the next one departs when one arrives at the device, however long ago its time was, and the source needs
//! no event.

use super::{Node, PortId, Topology};
use crate::device::Forwarding;
use crate::link::LinkParams;
use crate::network::Flow;

/// By port.
pub(super) struct Ahead {
    /// Its adapter sends ahead.
    adapters: Vec<bool>,
    /// The source that departs as its packets arrive at the other end of the link.
    sources: Vec<Option<u32>>,
}

impl Ahead {
    /// The first `sources` of the `flows` are not those of connections. `is_ordered`: packets are to be sent in order of
    /// time.
    pub(super) fn new<F: Forwarding>(
        topology: &Topology<F>,
        peers: &[(PortId, LinkParams)],
        flows: &[Flow],
        sources: usize,
        is_ordered: bool,
    ) -> Self {
        let (flows, connections) = flows.split_at(sources);
        let ports = (0u32..).zip(topology.ports.iter().zip(peers));
        let (adapters, sources) = ports
            .map(|(number, ((node, _), (peer, _)))| {
                let is_ahead = topology.has_room_for_all(*node)
                    && topology.flow_control_of(*peer).is_none()
                    && connections.iter().all(|flow| flow.port != number);
                let may_wait = is_ahead
                    && !is_ordered
                    && matches!(topology.ports[peer.0 as usize].0, Node::Device(_))
                    && !topology
                        .impairments
                        .iter()
                        .any(|(port, _)| port.0 == number);
                (is_ahead, may_wait.then(|| only(flows, number)).flatten())
            })
            .unzip();
        Self { adapters, sources }
    }

    /// Whether the adapter at a port sends ahead.
    pub(super) fn is_ahead(&self, port: u32) -> bool {
        self.adapters[port as usize]
    }

    /// The source whose packets depart as they arrive at the other end of the link of `port`.
    pub(super) fn only_source(&self, port: u32) -> Option<u32> {
        self.sources[port as usize]
    }

    /// Whether a source needs no event.
    pub(super) fn departs_on_arrival(&self, source: u32) -> bool {
        self.sources.contains(&Some(source))
    }
}

/// The only flow that is sent from a port.
fn only(flows: &[Flow], port: u32) -> Option<u32> {
    let mut of_port = (0u32..).zip(flows).filter(|(_, flow)| flow.port == port);
    let (first, _) = of_port.next()?;
    of_port.next().is_none().then_some(first)
}
