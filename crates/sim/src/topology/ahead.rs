//! Which ports send ahead.
//!
//! When a frame leaves an adapter is not known before it does, as long as the adapter can be paused or can be full. Where
//! neither is so, a frame is put on the link as soon as it is handed over, behind those before it, and the adapter needs no
//! timer. A connection that waits for its data to leave knows when that will be: see `transport/leaving.rs`. A port of a
//! device that has no policy sends in the same way.
//!
//! If all packets on the link of an adapter are of sources, the order of events elsewhere does not depend on when they are
//! handed over: the next one departs when one arrives at the device, however long ago its time was, and the sources need
//! no events: they are a *chain*. So each packet must arrive: the link has no impairments and leads to a device, because
//! arrivals at other hosts may need no event either. And the observer sees packets of several chains out of order, which it must allow.
//!
//! If it does, a port with a policy whose link leads to a host that only captures needs no timer either. When its frames leave
//! matters to nothing but the port: what was due is sent when the next frame comes, or when the run stops. Such a port is
//! *deferred*. Flow control must not count what waits there. And frames that are sent to the device in a nanosecond must arrive in a
//! later one: a deferred port sends after all that arrives in its nanosecond, one with a timer after what has arrived by then.
//!
//! Savings of each, in instructions per packet of the router study (`--bench instructions`): sending ahead and chains together
//! 19 to 24 %, chains alone 15 to 20 %, deferred ports 8 to 10 %.

use super::{Node, PortId, Topology};
use crate::device::Forwarding;
use crate::link::{Handover, LinkParams};
use crate::network::Flow;
use crate::wires::Device;
use slicewise_units::{BitRate, Duration};

/// The shortest frame of Ethernet lasts a nanosecond at this rate. A shorter one could arrive in the nanosecond in which it is
/// handed over, and then before what happens in that nanosecond but was scheduled later.
const FASTEST: BitRate = BitRate::new(512_000_000_000);

/// By port.
pub(super) struct Ahead {
    /// It sends ahead.
    ports: Vec<bool>,
    /// The number of sources whose packets depart as those before them arrive at the other end of the link; 0 where each has
    /// an event.
    chained: Vec<usize>,
    /// It is deferred if nothing happens when a frame reaches the other end of the link.
    may_be_deferred: Vec<bool>,
}

/// Most sources of a chain: more are found sooner among the events.
const MOST_CHAINED: usize = 16;

impl Ahead {
    /// The first `first_of_connections` of the `flows` are those of sources. `is_ordered`: packets are to be sent in order
    /// of time.
    pub(super) fn new<F: Forwarding>(
        topology: &Topology<F>,
        peers: &[(PortId, LinkParams)],
        flows: &[Flow],
        devices: &[Device],
        first_of_connections: usize,
        is_ordered: bool,
    ) -> Self {
        let may_send_ahead = |port: usize| {
            let (peer, link) = peers[port];
            topology.flow_control_of(peer).is_none()
                && link.handover == Handover::LastBit
                && link.rate.rate <= FASTEST
        };
        let ports = topology.ports.iter().zip(0..);
        let ports: Vec<bool> = ports
            .map(|((node, forwarding), port)| match node {
                Node::Endpoint(_) => topology.keeps_nothing_back(*node) && may_send_ahead(port),
                Node::Device(_) => forwarding.is_none(),
            })
            .collect();
        let with_policy = topology.ports.iter().zip((0..).map(PortId));
        let with_policy = with_policy.map(|((_, forwarding), port)| {
            forwarding.is_some() && topology.flow_control_of(port).is_none()
        });
        let mut ahead = Self {
            may_be_deferred: with_policy.map(|it| it && !is_ordered).collect(),
            chained: vec![0; ports.len()],
            ports,
        };
        ahead.find_fed_at_once(topology, peers, devices);
        if !is_ordered {
            ahead.find_chains(topology, peers, flows.split_at(first_of_connections));
        }
        ahead
    }

    /// Ports are not deferred at which frames may arrive in the nanosecond in which they were sent.
    fn find_fed_at_once<F>(
        &mut self,
        topology: &Topology<F>,
        peers: &[(PortId, LinkParams)],
        devices: &[Device],
    ) {
        for (device, at) in topology.devices.iter().zip(devices) {
            for (egress, ingress) in at.egress_of_flow.iter().zip(&at.ingress_of_flow) {
                let (_, link) = &peers[*ingress as usize];
                let lasts = link.handover == Handover::LastBit && link.rate.rate <= FASTEST;
                if !lasts && link.propagation + device.processing == Duration::ZERO {
                    self.may_be_deferred[*egress as usize] = false;
                }
            }
        }
    }

    fn find_chains<F>(
        &mut self,
        topology: &Topology<F>,
        peers: &[(PortId, LinkParams)],
        (flows, connections): (&[Flow], &[Flow]),
    ) {
        for flow in flows {
            self.chained[flow.port as usize] += 1;
        }
        for (port, (peer, _)) in peers.iter().enumerate() {
            let leads_to_device = matches!(topology.ports[peer.0 as usize].0, Node::Device(_));
            let may_be = self.ports[port] && leads_to_device;
            if !may_be || self.chained[port] > MOST_CHAINED {
                self.chained[port] = 0;
            }
        }
        let impaired = topology.impairments.iter().map(|(port, _)| port.0);
        for port in (connections.iter().map(|flow| flow.port)).chain(impaired) {
            self.chained[port as usize] = 0;
        }
    }

    /// Returns true if a port sends ahead.
    pub(super) fn is_ahead(&self, port: u32) -> bool {
        self.ports[port as usize]
    }

    /// Returns true if a port is deferred, provided that nothing happens at the other end of its link.
    pub(super) fn may_be_deferred(&self, port: u32) -> bool {
        self.may_be_deferred[port as usize]
    }

    /// Returns true if the sources of a port are a chain.
    pub(super) fn is_chained(&self, port: u32) -> bool {
        self.chained[port as usize] > 0
    }
}
