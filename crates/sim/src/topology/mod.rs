//! Which nodes there are, their ports, and how links join them.

mod ahead;
mod events;
mod routes;

use crate::device::{DeviceParams, Forwarding};
use crate::endpoint::{EndpointParams, Processing, Receiver, TransmitRing};
use crate::event::{Event, Place};
use crate::flow_control::FlowControl;
use crate::impairment::Impairments;
use crate::link::{Link, LinkParams};
use crate::network::{Flow, Network};
use crate::observer::{FlowId, Observer};
use crate::port::{Egress, Node, Port, PortId};
use crate::sources::{Chain, Sending};
use crate::transport::{ApplicationFlows, Direction, Transports, directions};
use crate::wires::{Device, End, Wire, Wires};
use ahead::Ahead;
use events::{Actors, Places};
use routes::Routes;
use slicewise_study::FlowControlParams;
use slicewise_traffic::{Random, RateSeries, Source};
use slicewise_units::BitRate;
use slicewise_wire::Headers;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network being described: nodes with ports, and duplex links, each between two ports. Links form no loop, so
/// that there is one way between any two nodes.
#[derive(Debug, Clone)]
pub struct Topology<F> {
    endpoints: Vec<EndpointParams>,
    devices: Vec<DeviceParams>,
    ports: Vec<(Node, Option<F>)>,
    /// Of each: its ports, and what it is for frames from either of them.
    links: Vec<[(PortId, LinkParams); 2]>,
    impairments: Vec<(PortId, Impairments)>,
    varying: Vec<(PortId, Arc<RateSeries>)>,
}

/// A flow: where it goes, the headers and lengths of its packets, and when they leave.
#[derive(Debug, Clone)]
pub struct FlowParams {
    /// How observers know it.
    pub id: FlowId,
    /// The endpoint that sends it.
    pub sender: Node,
    /// The endpoint that receives it.
    pub receiver: Node,
    /// Header fields of its packets.
    pub headers: Headers,
    /// Headers of the outer packet, for a flow in a tunnel.
    pub outer: Option<Headers>,
    /// When they leave, and their bytes without FCS.
    pub source: Source,
}

/// Why a topology cannot be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A port is at a node that does not exist, or a flow begins or ends at a node that is not an endpoint.
    #[error("there is no {0:?}")]
    NoSuchNode(Node),
    /// A link or impairment names a port that does not exist.
    #[error("there is no {0:?}")]
    NoSuchPort(PortId),
    /// A link with no rate.
    #[error("the link at {0:?} has a rate of zero")]
    RateZero(PortId),
    /// A port with two links.
    #[error("{0:?} has more than one link")]
    TwoLinks(PortId),
    /// A port without a link.
    #[error("{port:?} of {node:?} has no link")]
    Dangling {
        /// The port.
        port: PortId,
        /// Its node.
        node: Node,
    },
    /// Links from a node lead back to it.
    #[error("links form a loop through {0:?}")]
    Loop(Node),
    /// A device that cannot forward, because it has fewer than two ports.
    #[error("what arrives at {0:?} cannot leave it by another port")]
    NoWay(Node),
    /// A flow whose endpoints are not connected, or are the same.
    #[error("no path leads from {from:?} to {to:?}")]
    NoPath {
        /// Its sender.
        from: Node,
        /// Its receiver.
        to: Node,
    },
    /// A flow leaves a device by a port that has no forwarding plane although flow control is about what waits there.
    #[error("a flow leaves {node:?} by {port:?}, which is under flow control and has no policy")]
    NoPolicy {
        /// The device.
        node: Node,
        /// The port.
        port: PortId,
    },
    /// More flows, nodes or ports than an event can identify.
    #[error("there are too many flows, endpoints, devices or ports")]
    TooLarge,
}

impl<F> Default for Topology<F> {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            devices: Vec::new(),
            ports: Vec::new(),
            links: Vec::new(),
            impairments: Vec::new(),
            varying: Vec::new(),
        }
    }
}

impl<F: Forwarding> Topology<F> {
    /// Add an endpoint.
    pub fn endpoint(&mut self, params: EndpointParams) -> Node {
        self.endpoints.push(params);
        Node::Endpoint(count(self.endpoints.len()) - 1)
    }

    /// Add a device.
    pub fn device(&mut self, params: DeviceParams) -> Node {
        self.devices.push(params);
        Node::Device(count(self.devices.len()) - 1)
    }

    /// Add a port to a node: an adapter of an endpoint, or a port of a device that sends frames in the order in which they
    /// come and has room for all.
    pub fn port(&mut self, node: Node) -> PortId {
        self.ports.push((node, None));
        PortId(count(self.ports.len()) - 1)
    }

    /// Add a port to a device, which sends what `forwarding` decides.
    pub fn egress(&mut self, device: Node, forwarding: F) -> PortId {
        let port = self.port(device);
        if let Some((_, slot)) = self.ports.last_mut() {
            *slot = Some(forwarding);
        }
        port
    }

    /// Join two ports by a link, the same in both directions.
    pub fn link(&mut self, one: PortId, other: PortId, params: LinkParams) {
        self.links.push([(one, params), (other, params)]);
    }

    /// Join two ports by a link that is another one from each of them.
    pub fn unequal_link(&mut self, one: (PortId, LinkParams), other: (PortId, LinkParams)) {
        self.links.push([one, other]);
    }

    /// Let the link on which a port sends lose and delay its frames. `impairments` know the flows in the order
    /// in which [`Self::build`] is given them.
    pub fn impair(&mut self, from: PortId, impairments: Impairments) {
        self.impairments.push((from, impairments));
    }

    /// Let the link on which a port sends change its rate: `series` replaces that of its parameters.
    pub fn vary(&mut self, from: PortId, series: Arc<RateSeries>) {
        self.varying.push((from, series));
    }

    /// Connect the nodes and send `flows` through them, watched by `observer`.
    ///
    /// # Errors
    /// See [`TopologyError`].
    pub fn build<O: Observer>(
        self,
        flows: Vec<FlowParams>,
        observer: O,
    ) -> Result<Network<F, O>, TopologyError> {
        self.build_with(flows, &[], Transports::default(), observer)
    }

    /// The same with applications, whose connections `transports` was made for.
    ///
    /// # Errors
    /// See [`TopologyError`].
    pub fn build_with<O: Observer>(
        self,
        flows: Vec<FlowParams>,
        applications: &[ApplicationFlows<'_>],
        mut transports: Transports,
        observer: O,
    ) -> Result<Network<F, O>, TopologyError> {
        let directions = directions(applications);
        if flows.len() + directions.len() >= usize::from(u16::MAX) {
            return Err(TopologyError::TooLarge);
        }
        let peers = self.peers()?;
        let nodes: Vec<Node> = self.ports.iter().map(|(node, _)| *node).collect();
        let routes = Routes::new(&nodes, &peers)?;
        if let Some(device) = (0..count(self.devices.len()))
            .map(Node::Device)
            .find(|device| nodes.iter().filter(|node| *node == device).count() < 2)
        {
            return Err(TopologyError::NoWay(device));
        }
        let mut used = vec![false; self.ports.len()];
        let mut devices = vec![Device::default(); self.devices.len()];
        let first_of_connections = flows.len();
        let (mut all, mut sources) = (directions_of(&flows), Vec::with_capacity(flows.len()));
        sources.extend(
            flows
                .into_iter()
                .zip(0..)
                .map(|(flow, number)| Sending::new(flow.source, number, &flow.headers)),
        );
        all.extend(directions);
        let mut running = Vec::with_capacity(all.len());
        for flow in &all {
            running.push(self.place(flow, &routes, &peers, &mut devices, &mut used)?);
        }
        let ids = running.iter().map(|flow| flow.id).collect();
        let ahead = Ahead::new(
            &self,
            &peers,
            &running,
            &devices,
            first_of_connections,
            O::ORDERED,
        );
        let (mut departures, mut separate) = (Vec::new(), Vec::new());
        let mut chained: BTreeMap<u32, Vec<Sending>> = BTreeMap::new();
        for (mut sending, flow) in sources.into_iter().zip(&running) {
            if ahead.is_chained(flow.port) {
                chained.entry(flow.port).or_default().push(sending);
            } else {
                sending.place = count(departures.len());
                departures.push(Event::Departure(sending.place));
                separate.push(sending);
            }
        }
        let answering = &all[first_of_connections..];
        let actors = Actors {
            used: &used,
            answers: answering.iter().map(|flow| flow.to).collect(),
            timers: transports.timers(),
        };
        let (events, places, first_timers) =
            self.events(departures, &actors, &ahead, &peers, &nodes)?;
        let senders: Vec<u32> = running[first_of_connections..]
            .iter()
            .map(|flow| flow.port)
            .collect();
        let first_of_connections = count(first_of_connections);
        transports.attach(first_of_connections, &senders, first_timers);
        let wires = self.wires(&peers, &places);
        let chains = self.chains(chained, &peers, &places);
        let (flow_controls, control_of_link) = self.flow_controls(&peers, &places);
        let ports = (0..).zip(self.ports.into_iter().zip(&places));
        let ports = ports
            .map(|(number, ((node, forwarding), places))| {
                let egress = match (node, forwarding) {
                    (Node::Endpoint(index), _) if !ahead.is_ahead(number) => {
                        let params = self.endpoints.get(index as usize);
                        let params = params.copied().unwrap_or_default();
                        Egress::Adapter(TransmitRing::new(&params))
                    }
                    (Node::Device(_), Some(forwarding)) => Egress::Forwarding(forwarding),
                    (Node::Endpoint(_), _) | (Node::Device(_), None) => Egress::Ahead,
                };
                let controls = match node {
                    Node::Device(index) if self.devices[index as usize].flow_control.is_some() => {
                        let links = devices[index as usize].ingress_of_flow.iter();
                        let controls = links.map(|link| control_of_link[*link as usize]);
                        controls.collect()
                    }
                    Node::Device(_) | Node::Endpoint(_) => Vec::new(),
                };
                Port::new(egress, places.timer, controls)
            })
            .collect();
        let first = u16::try_from(first_of_connections).unwrap_or(u16::MAX);
        let wires = Wires::new(events, wires, flow_controls, devices, ids, first, observer);
        Ok(Network::new(
            wires,
            ports,
            running,
            (separate, chains),
            transports,
        ))
    }

    /// Returns true if a node is an endpoint whose adapters keep no frame and no source back by themselves.
    fn keeps_nothing_back(&self, node: Node) -> bool {
        match node {
            Node::Endpoint(index) => self.endpoints[index as usize].keeps_nothing_back(),
            Node::Device(_) => false,
        }
    }

    /// The flow control that the device of a port has for the link that leads there.
    fn flow_control_of(&self, port: PortId) -> Option<FlowControlParams> {
        let (node, _) = self.ports.get(port.0 as usize)?;
        match node {
            Node::Device(device) => self.devices.get(*device as usize)?.flow_control,
            Node::Endpoint(_) => None,
        }
    }

    /// Returns true if flow control counts the frames that wait at a port of a device, or may pause the port.
    fn is_controlled(&self, port: PortId, peers: &[(PortId, LinkParams)]) -> bool {
        let peer = peers.get(port.0 as usize);
        let may_be_paused = peer.is_some_and(|(peer, _)| self.flow_control_of(*peer).is_some());
        may_be_paused || self.flow_control_of(port).is_some()
    }

    /// Flow control of all links that have it, and which of them is that of the link of each port; 0 for one that has
    /// none, which nobody asks for.
    fn flow_controls(
        &self,
        peers: &[(PortId, LinkParams)],
        places: &[Places],
    ) -> (Vec<FlowControl>, Vec<u32>) {
        let (mut controls, mut of_link) = (Vec::new(), vec![0; peers.len()]);
        for (number, ((peer, link), places)) in (0u32..).zip(peers.iter().zip(places)) {
            let used = places.control != Place::MAX;
            if let (true, Some(params)) = (used, self.flow_control_of(*peer)) {
                of_link[number as usize] = count(controls.len());
                let rate = link.rate.rate;
                controls.push(FlowControl::new(
                    params,
                    rate,
                    number,
                    peer.0,
                    places.control,
                ));
            }
        }
        (controls, of_link)
    }

    /// The port at the other end of the link of every port, and the link.
    fn peers(&self) -> Result<Vec<(PortId, LinkParams)>, TopologyError> {
        let mut peers = vec![None; self.ports.len()];
        for &[one, other] in &self.links {
            for ((port, params), (peer, _)) in [(one, other), (other, one)] {
                if params.rate.rate == BitRate::ZERO {
                    return Err(TopologyError::RateZero(port));
                }
                let slot = peers
                    .get_mut(port.0 as usize)
                    .ok_or(TopologyError::NoSuchPort(port))?;
                if slot.replace((peer, params)).is_some() {
                    return Err(TopologyError::TwoLinks(port));
                }
            }
        }
        let impaired = self.impairments.iter().map(|(port, _)| port);
        for port in impaired.chain(self.varying.iter().map(|(port, _)| port)) {
            if port.0 as usize >= self.ports.len() {
                return Err(TopologyError::NoSuchPort(*port));
            }
        }
        let ports = (0..).map(PortId).zip(&self.ports);
        ports
            .zip(peers)
            .map(|((port, (node, _)), peer)| {
                self.exists(*node)?;
                peer.ok_or(TopologyError::Dangling { port, node: *node })
            })
            .collect()
    }

    fn exists(&self, node: Node) -> Result<(), TopologyError> {
        let there = match node {
            Node::Endpoint(index) => (index as usize) < self.endpoints.len(),
            Node::Device(index) => (index as usize) < self.devices.len(),
        };
        if there {
            Ok(())
        } else {
            Err(TopologyError::NoSuchNode(node))
        }
    }

    /// Enter the way of a flow into the tables of the devices on it.
    fn place(
        &self,
        flow: &Direction,
        routes: &Routes,
        peers: &[(PortId, LinkParams)],
        devices: &mut [Device],
        used: &mut [bool],
    ) -> Result<Flow, TopologyError> {
        let (from, to) = (flow.from, flow.to);
        for node in [from, to] {
            self.exists(node)?;
            if let Node::Device(_) = node {
                return Err(TopologyError::NoSuchNode(node));
            }
        }
        let way = routes.way(from, to);
        let &[(_, first), ..] = way.as_slice() else {
            return Err(TopologyError::NoPath { from, to });
        };
        for device in &mut *devices {
            device.egress_of_flow.push(first.0);
            device.ingress_of_flow.push(first.0);
        }
        // Behind the first node there are devices.
        let egress = way.get(1).map_or(first.0, |(_, port)| port.0);
        let mut from = first.0;
        for (node, port) in way {
            if let Some(used) = used.get_mut(port.0 as usize) {
                *used = true;
            }
            let ingress = std::mem::replace(&mut from, port.0);
            let Node::Device(index) = node else {
                continue;
            };
            let forwarding = self.ports.get(port.0 as usize);
            if forwarding.is_some_and(|(_, forwarding)| forwarding.is_none())
                && self.is_controlled(port, peers)
            {
                return Err(TopologyError::NoPolicy { node, port });
            }
            if let Some(device) = devices.get_mut(index as usize)
                && let (Some(of_egress), Some(of_ingress)) = (
                    device.egress_of_flow.last_mut(),
                    device.ingress_of_flow.last_mut(),
                )
            {
                *of_egress = port.0;
                *of_ingress = ingress;
            }
        }
        Ok(Flow {
            id: flow.id,
            port: first.0,
            egress,
            headers: flow.headers,
        })
    }

    /// The sources that alone send on a port, by port.
    fn chains(
        &self,
        sources: BTreeMap<u32, Vec<Sending>>,
        peers: &[(PortId, LinkParams)],
        places: &[Places],
    ) -> Vec<Chain> {
        let chain = |(port, sources): (u32, Vec<Sending>)| {
            let (peer, link) = &peers[port as usize];
            let Node::Device(device) = self.ports[peer.0 as usize].0 else {
                return None;
            };
            let processing = self.devices[device as usize].processing;
            let place = places[port as usize].arrival;
            Some(Chain::new(sources, link, processing, place))
        };
        sources.into_iter().filter_map(chain).collect()
    }

    /// The direction of a link on which each port sends.
    fn wires(&self, peers: &[(PortId, LinkParams)], places: &[Places]) -> Vec<Wire> {
        let directions = peers.iter().zip(places);
        let mut wires: Vec<Wire> = directions
            .map(|((peer, params), places)| Wire {
                link: Link::new(*params),
                end: self.end(*peer),
                arrival: places.arrival,
            })
            .collect();
        for (port, impairments) in &self.impairments {
            if let Some(wire) = wires.get_mut(port.0 as usize) {
                wire.link.impairments = Some(Box::new(impairments.clone()));
            }
        }
        for (port, series) in &self.varying {
            if let Some(wire) = wires.get_mut(port.0 as usize) {
                wire.link.vary(Arc::clone(series));
            }
        }
        wires
    }

    fn end(&self, port: PortId) -> End {
        match self.ports[port.0 as usize].0 {
            Node::Endpoint(index) => {
                let params = self.endpoints[index as usize];
                End::Endpoint {
                    receiver: Receiver::new(params.interrupt_interval),
                    processing: Processing::new(
                        params.processing,
                        Random::stream(params.seed, u64::from(index)),
                    ),
                }
            }
            Node::Device(device) => End::Device {
                device,
                processing: self.devices[device as usize].processing,
            },
        }
    }
}

/// The directions of flows whose sources send whatever happens.
fn directions_of(flows: &[FlowParams]) -> Vec<Direction> {
    let direction = |flow: &FlowParams| Direction {
        id: flow.id,
        from: flow.sender,
        to: flow.receiver,
        headers: flow.headers,
    };
    flows.iter().map(direction).collect()
}

fn count(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
