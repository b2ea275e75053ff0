//! Connections and the applications over them, at the endpoints of a network.
//!
//! The data of an application flows from its sender to its receiver, the ends of the study's path. Each connection is two
//! flows of the network, one for each direction: so devices classify and route what comes back as anything else.

mod leaving;
mod measurement;

use crate::event::Place;
use crate::observer::FlowId;
use crate::packet::Packet;
use crate::port::Node;
pub(crate) use leaving::Leaving;
pub(crate) use measurement::Losses;
use measurement::TransportMeasurement;
use slicewise_applications::{Application, Server, Start};
use slicewise_stats::application::{ApplicationRecord, SourceTransactions};
use slicewise_traffic::Random;
use slicewise_traffic::application::{ApplicationParams, ApplicationSourceParams, ServerParams};
use slicewise_transport::{Behaviour, Connection, Segment};
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// The end of a connection at the sender of an application's data, and that at its receiver.
pub(crate) const SENDER: usize = 0;
pub(crate) const RECEIVER: usize = 1;

/// Stream of randomness in a host: how long it has been counting ticks. Sources use the first ones of such seeds.
const TICKS: u64 = u64::MAX;

/// An application of a run.
#[derive(Debug, Clone)]
pub struct ApplicationFlows<'a> {
    /// Parameters of the application.
    pub params: &'a ApplicationSourceParams,
    /// Name of its slice.
    pub slice_name: &'a str,
    /// Index of its slice, in the order of the study.
    pub slice: u16,
    /// Seed of everything random in it.
    pub seed: u64,
    /// Seed of what is random in its host.
    pub host_seed: u64,
    /// The endpoint that sends data.
    pub sender: Node,
    /// The endpoint that receives it.
    pub receiver: Node,
}

/// Series measured of applications: `bins` values, each over `bin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesParams {
    /// Width of a bin.
    pub bin: Duration,
    /// How many.
    pub bins: usize,
}

/// A direction of a connection, as a flow of the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direction {
    pub(crate) id: FlowId,
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) headers: Headers,
}

/// The applications of a network, their connections, and what is measured of them.
#[derive(Debug, Default)]
pub struct Transports {
    pub(crate) applications: Vec<Host>,
    pub(crate) connections: Vec<Carried>,
    /// The application of each connection, and by flow the first packet that is of the present connection: of those before
    /// it, some may still be on their way. Looked at for every packet, and therefore apart from the connections, of which
    /// there may be more than the processor's caches hold.
    pub(crate) applications_of: Vec<u32>,
    pub(crate) first_packets: Vec<u64>,
    /// The number of the flow that is the first direction of the first connection.
    pub(crate) first_flow: u32,
    pub(crate) first_places: FirstPlaces,
    /// Packets that leave an adapter earlier than this have left it. In one nanosecond, packets arrive before ports
    /// send, and timers expire after that.
    pub(crate) left_before: Instant,
    /// The hosts have stopped: see [`Network::stop_hosts`](crate::network::Network::stop_hosts).
    pub(crate) have_stopped: bool,
    /// Segments that an interrupt brought, until all of them are known.
    pub(crate) batch: Vec<Received>,
}

/// The first places of what connections and applications have in the event queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstPlaces {
    /// Ends of connections that wait for their data to leave.
    pub(crate) room: Place,
    /// Timers of ends of connections.
    pub(crate) end: Place,
    /// Timers of applications.
    pub(crate) application: Place,
}

/// A segment that was received, and more that was joined to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) flow: u32,
    pub(crate) is_marked: bool,
    pub(crate) segment: Segment,
}

/// An application and its server.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) slice_name: String,
    pub(crate) limit_bits_per_second: Option<u64>,
    pub(crate) behaviour: Behaviour,
    /// Bytes of a frame before its data.
    pub(crate) header_bytes: u32,
    pub(crate) application: Application,
    pub(crate) server: Server,
    /// The end that opens connections.
    pub(crate) opener: usize,
    /// Number of its first connection.
    pub(crate) first_connection: u32,
    pub(crate) ports: Ports,
    /// True if an arrival decides what it does next.
    pub(crate) is_asking: bool,
    pub(crate) wake_at: Instant,
    pub(crate) measurement: TransportMeasurement,
}

/// The ports of an application's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) first: u16,
    /// Connections that are open at once.
    pub(crate) connections: u32,
    /// Ports that these use in turn, from the first on.
    pub(crate) all: u32,
}

impl Ports {
    /// The port of connection `own`, which had `port`, when it is opened again: the next that no other connection has.
    pub(crate) fn after(self, port: u16, own: u32) -> u16 {
        let first = u32::from(self.first);
        let next = u32::from(port) + self.connections;
        let is_there = next < first + self.all;
        u16::try_from(if is_there { next } else { first + own }).unwrap_or(port)
    }
}

/// A connection and how it is used.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) ends: [End; 2],
    pub(crate) is_open: bool,
    pub(crate) is_connected: bool,
    /// Of a request under way: bytes that its server waits for, and bytes of the response.
    pub(crate) asked: Option<(u64, u64)>,
}

/// An end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) connection: Connection,
    /// The port of its endpoint.
    pub(crate) port: u32,
    /// Its data in an adapter that sends ahead.
    pub(crate) leaving: Leaving,
    /// When so much of that has left that it may send more; [`Instant::MAX`] if that is not what it waits for.
    pub(crate) room_at: Instant,
    /// When its timer is set for.
    pub(crate) wake_at: Instant,
    /// Packets sent, those of earlier connections of this number included.
    pub(crate) sent_packets: u64,
    /// Behind the last position sent.
    pub(crate) highest: u64,
}

impl End {
    fn new(behaviour: &Behaviour) -> Self {
        Self {
            connection: Connection::listen(behaviour),
            port: 0,
            leaving: Leaving::default(),
            room_at: Instant::MAX,
            wake_at: Instant::MAX,
            sent_packets: 0,
            highest: 0,
        }
    }
}

impl Transports {
    /// The applications of a run, measured in a series like this.
    #[must_use]
    pub fn new(applications: &[ApplicationFlows<'_>], series: SeriesParams) -> Self {
        let mut all = Self::default();
        for flows in applications {
            let params = flows.params;
            let headers = &params.headers;
            let mut behaviour = Behaviour::new(&params.transport, headers.ip_bytes());
            let tick = behaviour.ticks.length.nanos();
            let phase = Random::stream(flows.host_seed, TICKS).below(tick << 12);
            behaviour.ticks.phase = Duration::from_nanos(phase);
            let count = params.application.connections();
            let index = u32::try_from(all.applications.len()).unwrap_or(u32::MAX);
            let first_connection = u32::try_from(all.connections.len()).unwrap_or(u32::MAX);
            let ip_bytes = headers.ip_bytes();
            let first_port = if params.application.sender_opens() {
                headers.source_port
            } else {
                headers.destination_port
            };
            all.applications.push(Host {
                name: params.name.clone(),
                slice_name: flows.slice_name.to_owned(),
                limit_bits_per_second: params.application.limit_bits_per_second(),
                behaviour,
                header_bytes: u32::from(headers.l3_offset())
                    + ip_bytes
                    + slicewise_traffic::transport::TransportParams::TCP_BYTES,
                application: Application::new(
                    &params.application,
                    Start {
                        at: Instant::ZERO.saturating_add(params.start),
                        spread: params.start_spread,
                    },
                    Instant::ZERO.saturating_add(params.stop),
                    flows.seed,
                ),
                server: Server::new(server_of(&params.application)),
                opener: if params.application.sender_opens() {
                    SENDER
                } else {
                    RECEIVER
                },
                first_connection,
                ports: Ports {
                    first: first_port,
                    connections: count,
                    all: params.application.ports(first_port),
                },
                is_asking: !matches!(
                    &params.application,
                    ApplicationParams::Bulk(bulk) if bulk.bytes.is_none()
                ),
                wake_at: Instant::MAX,
                measurement: TransportMeasurement::new(series, count),
            });
            all.connections.extend((0..count).map(|_| Carried {
                ends: [End::new(&behaviour), End::new(&behaviour)],
                is_open: false,
                is_connected: false,
                asked: None,
            }));
            all.applications_of.resize(all.connections.len(), index);
            all.first_packets.resize(2 * all.connections.len(), 0);
        }
        all
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Ends of connections, and applications: each has a timer.
    pub(crate) const fn timers(&self) -> (usize, usize) {
        (2 * self.connections.len(), self.applications.len())
    }

    /// The flows are numbered from `first_flow`, and send from `ports`.
    pub(crate) fn attach(&mut self, first_flow: u32, ports: &[u32], first_places: FirstPlaces) {
        self.first_flow = first_flow;
        self.first_places = first_places;
        for (carried, ports) in self.connections.iter_mut().zip(ports.chunks(2)) {
            for (end, port) in carried.ends.iter_mut().zip(ports) {
                end.port = *port;
            }
        }
    }

    /// Note the windows of an application's connections where a bin has ended, before anything happens in the next one.
    #[inline]
    pub(crate) fn look_at_windows(&mut self, application: usize, now: Instant) {
        let host = &mut self.applications[application];
        if host.measurement.is_look_due(now) {
            let connections = self.connections[host.first_connection as usize..].iter();
            let windows = connections.take(host.ports.connections as usize).map(|it| {
                let is_up = it.is_open && it.is_connected;
                is_up.then(|| it.ends[SENDER].connection.window_bytes())
            });
            host.measurement.look(windows, now);
        }
    }

    /// Nothing is sent from `now` on.
    pub(crate) fn stop(&mut self, now: Instant) {
        for application in 0..self.applications.len() {
            self.look_at_windows(application, now);
        }
        self.have_stopped = true;
    }

    /// Returns the figures of the applications in [`from`, `to`); with the series of the run if `with_series`.
    #[must_use]
    pub fn records(&self, from: Instant, to: Instant, with_series: bool) -> Vec<ApplicationRecord> {
        let hosts = self.applications.iter();
        hosts
            .map(|host| host.record(from, to, with_series))
            .collect()
    }

    /// Returns what each application asked for, one by one.
    pub(crate) fn transactions(&self) -> Vec<SourceTransactions> {
        let of_source = |host: &Host| SourceTransactions {
            source: host.name.clone(),
            slice: host.slice_name.clone(),
            transactions: host.application.transactions(),
        };
        self.applications.iter().map(of_source).collect()
    }
}

impl Host {
    fn record(&self, from: Instant, to: Instant, with_series: bool) -> ApplicationRecord {
        let figures = self.application.figures(from, to);
        ApplicationRecord {
            source: self.name.clone(),
            slice: self.slice_name.clone(),
            limit_bits_per_second: self.limit_bits_per_second,
            transport: self.measurement.figures(from, to),
            requests: figures.requests,
            flows: figures.flows,
            video: figures.video,
            times: figures.times,
            unfinished_times: figures.unfinished_times,
            failures: self.measurement.failures(from, to),
            series: if with_series {
                self.measurement.series()
            } else {
                slicewise_stats::application::ApplicationSeries::default()
            },
        }
    }
}

/// The directions of all connections, in the order of their flows: to the receiver of data, and back.
pub(crate) fn directions(applications: &[ApplicationFlows<'_>]) -> Vec<Direction> {
    let mut all = Vec::new();
    for flows in applications {
        let params = flows.params;
        let sender_opens = params.application.sender_opens();
        for number in 0..params.application.connections() {
            let mut headers = Headers::from(&params.headers);
            let own_port = if sender_opens {
                &mut headers.source_port
            } else {
                &mut headers.destination_port
            };
            // Modulo 2^16: a study has fewer connections.
            *own_port = own_port.wrapping_add(u16::try_from(number).unwrap_or(u16::MAX));
            let back = Headers {
                source: headers.destination,
                destination: headers.source,
                source_port: headers.destination_port,
                destination_port: headers.source_port,
                ..headers
            };
            let id = FlowId {
                slice: flows.slice,
                // Not the first source of its slice, whose inter-arrival times are recorded.
                source: u16::MAX,
            };
            let (from, to) = (flows.sender, flows.receiver);
            all.push(Direction {
                id,
                from,
                to,
                headers,
            });
            all.push(Direction {
                id: FlowId::UNMEASURED,
                from: to,
                to: from,
                headers: back,
            });
        }
    }
    all
}

/// The server of an application; a bulk transfer has none.
fn server_of(application: &ApplicationParams) -> ServerParams {
    match application {
        ApplicationParams::Bulk(_) => ServerParams::default(),
        ApplicationParams::Requests(requests) => requests.server,
        ApplicationParams::ShortFlows(flows) => flows.server,
        ApplicationParams::Video(video) => video.server,
    }
}

impl Transports {
    /// The connection of a flow, and the end that the flow leads to.
    #[inline]
    pub(crate) fn place(&self, flow: u32) -> (usize, usize) {
        let index = (flow - self.first_flow) as usize;
        (index / 2, 1 - index % 2)
    }

    /// The position of a connection's application.
    #[inline]
    pub(crate) fn application_of(&self, number: usize) -> usize {
        self.applications_of[number] as usize
    }

    /// Packets of a flow from this number on are of its present connection.
    #[inline]
    pub(crate) fn first_packet(&self, flow: u32) -> u64 {
        self.first_packets[(flow - self.first_flow) as usize]
    }

    /// The connection and end that sent a packet, and the bytes of data in it.
    #[inline]
    pub(crate) fn data_of(&self, packet: &Packet) -> (usize, usize, u64) {
        let (number, to) = self.place(packet.flow.into());
        let host = &self.applications[self.application_of(number)];
        let bytes = packet.l2_bytes.saturating_sub(host.header_bytes);
        (number, 1 - to, bytes.into())
    }

    /// A frame of a connection has left its adapter: the connection and end that waited for it to send more, if one did.
    #[inline]
    pub(crate) fn on_left(&mut self, packet: &Packet) -> Option<(usize, usize)> {
        let (number, end, bytes) = self.data_of(packet);
        if bytes == 0 {
            return None;
        }
        let host = &self.applications[self.applications_of[number] as usize];
        let connection = &mut self.connections[number].ends[end].connection;
        let has_room = connection.on_left(bytes, &host.behaviour);
        has_room.then_some((number, end))
    }

    /// A frame of a connection, handed over to an adapter at `now`, leaves it at `at`.
    #[inline(never)]
    pub(crate) fn leaves(&mut self, packet: &Packet, at: Instant, now: Instant) {
        if at <= now {
            // Whoever hands it over goes on as long as there is room.
            let _ = self.on_left(packet);
            return;
        }
        let (number, end, bytes) = self.data_of(packet);
        if bytes > 0 {
            self.connections[number].ends[end].leaving.push(at, bytes);
        }
    }

    /// Ports have sent what leaves at `now`.
    pub(crate) fn after_ports(&mut self, now: Instant) {
        self.left_before = now.saturating_add(Duration::from_nanos(1));
    }

    /// Tell an end of a connection what has left an adapter that sends ahead.
    #[inline]
    pub(crate) fn note_left(&mut self, number: usize, end: usize) {
        let at_end = &mut self.connections[number].ends[end];
        let bytes = at_end.leaving.take_before(self.left_before);
        if bytes > 0 {
            let host = &self.applications[self.applications_of[number] as usize];
            let _ = at_end.connection.on_left(bytes, &host.behaviour);
        }
    }

    /// When so much will have left an adapter that sends ahead that an end may send more; `Instant::MAX` if that is not what it
    /// waits for.
    #[inline]
    pub(crate) fn room_at(&mut self, number: usize, end: usize) -> Instant {
        let at_end = &mut self.connections[number].ends[end];
        if at_end.leaving.is_empty() {
            return Instant::MAX;
        }
        let host = &self.applications[self.applications_of[number] as usize];
        match at_end.connection.excess_below_socket(&host.behaviour) {
            0 => Instant::MAX,
            excess => at_end.leaving.left_at(excess),
        }
    }

    /// The next segment that an end sends.
    #[inline]
    pub(crate) fn poll_transmit(
        &mut self,
        number: usize,
        end: usize,
        now: Instant,
    ) -> Option<Segment> {
        let index = self.application_of(number);
        let host = &mut self.applications[index];
        let at_end = &mut self.connections[number].ends[end];
        let segment = at_end.connection.poll_transmit(&host.behaviour, now)?;
        if end == SENDER && segment.bytes > 0 {
            let is_resent = segment.sequence < at_end.highest;
            let segments = segment.bytes.div_ceil(host.behaviour.mss_bytes);
            host.measurement.on_sent(segments, is_resent, now);
        }
        at_end.highest = at_end.highest.max(segment.end());
        Some(segment)
    }

    /// When each application begins, and its place in the event queue.
    pub(crate) fn beginnings(&mut self) -> impl Iterator<Item = (Instant, u32)> {
        let first = self.first_places.application;
        let begin = move |(host, index): (&mut Host, u32)| {
            host.wake_at = host.application.poll_at()?;
            Some((host.wake_at, first + index))
        };
        self.applications.iter_mut().zip(0u32..).filter_map(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_opened_again_has_a_port_that_no_other_has() {
        let ports = Ports {
            first: 65_526,
            connections: 3,
            all: 9,
        };
        let turns = |own: u32| {
            let first = 65_526 + u16::try_from(own).unwrap();
            let ports = std::iter::successors(Some(first), |&port| Some(ports.after(port, own)));
            ports.take(4).collect::<Vec<u16>>()
        };
        assert_eq!(turns(0), [65_526, 65_529, 65_532, 65_526]);
        assert_eq!(turns(2), [65_528, 65_531, 65_534, 65_528]);
    }
}
