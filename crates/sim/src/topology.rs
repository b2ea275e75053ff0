//! Which nodes there are and how links join them.

use crate::device::{Device, DeviceParams, Forwarding};
use crate::event::{Actors, EventQueue};
use crate::host::{HostParams, Receiver, TransmitQueue};
use crate::impairment::Impairments;
use crate::link::{Link, LinkParams};
use crate::network::{Flow, Network};
use crate::observer::{FlowId, Observer};
use crate::wires::{LinkEnd, Wires};
use slicewise_traffic::Source;
use slicewise_units::{BitRate, Duration};
use slicewise_wire::Headers;

/// A node of a [`Topology`], identified by the topology that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A host.
    Host(u32),
    /// A device.
    Device(u32),
}

/// A network being described: nodes, each with at most one outgoing link, that lead to hosts. Several hosts may
/// therefore feed a device, and devices may be chained; a device forwards everything through its one egress
/// port.
#[derive(Debug, Clone)]
pub struct Topology<F> {
    hosts: Vec<HostParams>,
    devices: Vec<DeviceParams<F>>,
    links: Vec<(Node, Node, LinkParams)>,
    impairments: Vec<(Node, Impairments)>,
}

/// A flow: its sender, the headers and lengths of its packets, and when they leave.
#[derive(Debug, Clone)]
pub struct FlowParams {
    /// How observers know it.
    pub id: FlowId,
    /// The host that sends it.
    pub sender: Node,
    /// Header fields of its packets.
    pub headers: Headers,
    /// When they leave, and their bytes without FCS.
    pub source: Source,
}

/// Why a topology cannot be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A link names a node that does not exist, or a flow a sender that is not a host.
    #[error("there is no {0:?}")]
    NoSuchNode(Node),
    /// A link with no rate.
    #[error("the link from {0:?} has a rate of zero")]
    RateZero(Node),
    /// A node with two outgoing links.
    #[error("{0:?} has more than one outgoing link")]
    TwoLinks(Node),
    /// Frames that arrive at this node cannot reach a host.
    #[error("the path from {0:?} does not lead to a host")]
    NoWay(Node),
    /// More flows, nodes or links than an event can identify.
    #[error("there are too many flows, hosts, devices or links")]
    TooLarge,
}

impl<F> Default for Topology<F> {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            devices: Vec::new(),
            links: Vec::new(),
            impairments: Vec::new(),
        }
    }
}

impl<F: Forwarding> Topology<F> {
    /// Add a host.
    pub fn host(&mut self, params: HostParams) -> Node {
        self.hosts.push(params);
        Node::Host(count(self.hosts.len()) - 1)
    }

    /// Add a device.
    pub fn device(&mut self, params: DeviceParams<F>) -> Node {
        self.devices.push(params);
        Node::Device(count(self.devices.len()) - 1)
    }

    /// Add a link from one node to another.
    pub fn link(&mut self, from: Node, to: Node, params: LinkParams) {
        self.links.push((from, to, params));
    }

    /// Let the link from a node lose and delay frames. `impairments` know the flows in the order in which
    /// [`Self::build`] is given them.
    pub fn impair(&mut self, from: Node, impairments: Impairments) {
        self.impairments.push((from, impairments));
    }

    /// Connect the nodes and send `flows` through them, watched by `observer`.
    ///
    /// # Errors
    /// If a path does not lead to a host, a node does not exist, or a link has no rate.
    pub fn build<O: Observer>(
        self,
        flows: Vec<FlowParams>,
        observer: O,
    ) -> Result<Network<F, O>, TopologyError> {
        let actors = Actors {
            departures: count(flows.len()),
            arrivals: count(self.links.len()),
            egresses: count(self.devices.len()),
        };
        let events = EventQueue::new(actors).ok_or(TopologyError::TooLarge)?;
        if flows.len() > usize::from(u16::MAX) {
            return Err(TopologyError::TooLarge);
        }
        let mut links = Vec::with_capacity(self.links.len());
        for &(from, to, params) in &self.links {
            links.push((self.link_state(from, to, params)?, self.link_end(to)?));
        }
        for (from, impairments) in &self.impairments {
            let link = self.link_from(*from).ok_or(TopologyError::NoWay(*from))?;
            if let Some((link, _)) = links.get_mut(link as usize) {
                link.impairments = Some(Box::new(impairments.clone()));
            }
        }
        for node in (0..count(self.devices.len())).map(Node::Device) {
            self.check_way(node)?;
        }
        let flows = flows
            .into_iter()
            .map(|flow| self.flow(flow))
            .collect::<Result<_, _>>()?;
        let transmit_queue = |host: &HostParams| host.transmit_queue_frames.map(TransmitQueue::new);
        let transmit_queues = self.hosts.iter().map(transmit_queue).collect();
        let wires = Wires::new(events, links, observer);
        let egress: Vec<Option<u32>> = (0..count(self.devices.len()))
            .map(|d| self.link_from(Node::Device(d)))
            .collect();
        let devices = self
            .devices
            .into_iter()
            .zip(egress)
            .map(|(device, egress)| Device::new(device.forwarding, egress.unwrap_or(0)))
            .collect();
        Ok(Network::new(wires, devices, transmit_queues, flows))
    }

    fn link_state(&self, from: Node, to: Node, params: LinkParams) -> Result<Link, TopologyError> {
        self.exists(from)?;
        if params.rate.rate == BitRate::ZERO {
            return Err(TopologyError::RateZero(from));
        }
        if self.links.iter().filter(|link| link.0 == from).count() > 1 {
            return Err(TopologyError::TwoLinks(from));
        }
        let processing = match to {
            Node::Device(device) => self
                .devices
                .get(device as usize)
                .map_or(Duration::ZERO, |d| d.processing),
            Node::Host(_) => Duration::ZERO,
        };
        let propagation = params
            .propagation
            .nanos()
            .saturating_add(processing.nanos());
        let propagation = Duration::from_nanos(propagation);
        Ok(Link::new(params.rate, propagation, params.handover))
    }

    fn link_end(&self, to: Node) -> Result<LinkEnd, TopologyError> {
        let nowhere = TopologyError::NoSuchNode(to);
        match to {
            Node::Host(index) => {
                let host = self.hosts.get(index as usize).ok_or(nowhere)?;
                Ok(LinkEnd::Host(Receiver::new(host.interrupt_interval)))
            }
            Node::Device(index) => {
                self.exists(to)?;
                Ok(LinkEnd::Device(index))
            }
        }
    }

    fn exists(&self, node: Node) -> Result<(), TopologyError> {
        let there = match node {
            Node::Host(index) => (index as usize) < self.hosts.len(),
            Node::Device(index) => (index as usize) < self.devices.len(),
        };
        if there {
            Ok(())
        } else {
            Err(TopologyError::NoSuchNode(node))
        }
    }

    /// The one outgoing link of a node.
    fn link_from(&self, node: Node) -> Option<u32> {
        self.links.iter().position(|link| link.0 == node).map(count)
    }

    /// What arrives at `node` must reach a host, in fewer hops than there are links.
    fn check_way(&self, node: Node) -> Result<(), TopologyError> {
        let mut at = node;
        for _ in 0..=self.links.len() {
            let link = self.links.iter().find(|link| link.0 == at);
            at = link.ok_or(TopologyError::NoWay(node))?.1;
            if matches!(at, Node::Host(_)) {
                return Ok(());
            }
        }
        Err(TopologyError::NoWay(node))
    }

    fn flow(&self, flow: FlowParams) -> Result<Flow, TopologyError> {
        let Node::Host(host) = flow.sender else {
            return Err(TopologyError::NoSuchNode(flow.sender));
        };
        self.exists(flow.sender)?;
        self.check_way(flow.sender)?;
        let link = self
            .link_from(flow.sender)
            .ok_or(TopologyError::NoWay(flow.sender))?;
        Ok(Flow::new(&flow, host, link))
    }
}

fn count(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
