//! Which adapters send ahead.
//!
//! When a frame leaves an adapter is not known before it does, as long as the adapter can be paused, can be full, or has
//! to tell a connection that there is room again. Where none of that is so, a frame is put on the link as soon as it is handed
//! over, behind those before it, and the adapter needs no timer.
//!
//! If moreover all packets on the link are of one source, the order of events elsewhere does not depend on when they are
//! handed over: the next one departs when one arrives at the device, however long ago its time was, and the source needs
//! no event. So each packet must arrive: the link has no impairments, and leads to a device, because arrivals at other
//! hosts may need no event either. And the observer sees packets of several sources out of order, which it must allow.

use super::{Node, PortId, Topology};
use crate::device::Forwarding;
use crate::link::{Handover, LinkParams};
use crate::network::Flow;
use slicewise_units::BitRate;

/// The shortest frame of Ethernet lasts a nanosecond at this rate. A shorter one could arrive in the nanosecond in which it is
/// handed over, and then before what happens in that nanosecond but was scheduled later.
const FASTEST: BitRate = BitRate::new(512_000_000_000);

/// By port.
pub(super) struct Ahead {
    /// Its adapter sends ahead.
    adapters: Vec<bool>,
    /// The source that departs as its packets arrive at the other end of the link.
    sources: Vec<Option<u32>>,
}

impl Ahead {
    /// The first `first_of_connections` of the `flows` are those of sources. `is_ordered`: packets are to be sent in order
    /// of time.
    pub(super) fn new<F: Forwarding>(
        topology: &Topology<F>,
        peers: &[(PortId, LinkParams)],
        flows: &[Flow],
        first_of_connections: usize,
        is_ordered: bool,
    ) -> Self {
        let (flows, connections) = flows.split_at(first_of_connections);
        let ports = topology.ports.iter().zip(peers);
        let mut adapters: Vec<bool> = ports
            .map(|((node, _), (peer, link))| {
                topology.keeps_nothing_back(*node)
                    && topology.flow_control_of(*peer).is_none()
                    && link.handover == Handover::LastBit
                    && link.rate.rate <= FASTEST
            })
            .collect();
        for flow in connections {
            adapters[flow.port as usize] = false;
        }
        let mut sources = vec![None; adapters.len()];
        if !is_ordered {
            let mut flows_of_port = vec![0u32; adapters.len()];
            for (source, flow) in (0u32..).zip(flows) {
                sources[flow.port as usize] = Some(source);
                flows_of_port[flow.port as usize] += 1;
            }
            for (port, (peer, _)) in peers.iter().enumerate() {
                let leads_to_device = matches!(topology.ports[peer.0 as usize].0, Node::Device(_));
                if !(adapters[port] && flows_of_port[port] == 1 && leads_to_device) {
                    sources[port] = None;
                }
            }
            for (port, _) in &topology.impairments {
                sources[port.0 as usize] = None;
            }
        }
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
}
