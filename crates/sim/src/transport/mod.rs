//! Connections and the applications over them, at the endpoints of a network.
//!
//! The data of an application flows from its sender to its receiver, the ends of the study's path. Each connection is two
//! flows of the network, one for each direction: so devices classify and route what comes back as anything else.

mod carry;
mod leaving;
mod measurement;

use crate::event::Place;
use crate::observer::FlowId;
use crate::topology::Node;
use leaving::Leaving;
use measurement::TransportMeasurement;
use slicewise_applications::{Application, Server, Start};
use slicewise_stats::application::ApplicationRecord;
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
    applications: Vec<Host>,
    connections: Vec<Carried>,
    /// The application of each connection, and by flow the first packet that is of the present connection: of those before
    /// it, some may still be on their way. Looked at for every packet, and therefore apart from the connections, of which
    /// there may be more than the processor's caches hold.
    applications_of: Vec<u32>,
    first_packets: Vec<u64>,
    /// The number of the flow that is the first direction of the first connection.
    first_flow: u32,
    first_places: FirstPlaces,
    /// Packets that leave an adapter earlier than this have left it. In one nanosecond, packets arrive before ports
    /// send, and timers expire after that.
    left_before: Instant,
    /// The hosts have stopped: see [`Network::stop_hosts`](crate::network::Network::stop_hosts).
    have_stopped: bool,
    /// Segments that an interrupt brought, until all of them are known.
    batch: Vec<Received>,
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
struct Received {
    flow: u32,
    is_marked: bool,
    segment: Segment,
}

/// An application and its server.
#[derive(Debug)]
struct Host {
    name: String,
    slice_name: String,
    limit_bits_per_second: Option<u64>,
    behaviour: Behaviour,
    /// Bytes of a frame before its data.
    header_bytes: u32,
    application: Application,
    server: Server,
    /// The end that opens connections.
    opener: usize,
    /// Number of its first connection.
    first_connection: u32,
    ports: Ports,
    /// True if an arrival decides what it does next.
    is_asking: bool,
    wake_at: Instant,
    measurement: TransportMeasurement,
}

/// The ports of an application's connections.
#[derive(Debug, Clone, Copy)]
struct Ports {
    first: u16,
    /// Connections that are open at once.
    connections: u32,
    /// Ports that these use in turn, from the first on.
    all: u32,
}

impl Ports {
    /// The port of connection `own`, which had `port`, when it is opened again: the next that no other connection has.
    fn after(self, port: u16, own: u32) -> u16 {
        let first = u32::from(self.first);
        let next = u32::from(port) + self.connections;
        let is_there = next < first + self.all;
        u16::try_from(if is_there { next } else { first + own }).unwrap_or(port)
    }
}

/// A connection and how it is used.
#[derive(Debug)]
struct Carried {
    ends: [End; 2],
    is_open: bool,
    is_connected: bool,
    /// Of a request under way: bytes that its server waits for, and bytes of the response.
    asked: Option<(u64, u64)>,
}

/// An end of a connection.
#[derive(Debug)]
struct End {
    connection: Connection,
    /// The port of its endpoint.
    port: u32,
    /// Its data in an adapter that sends ahead.
    leaving: Leaving,
    /// When so much of that has left that it may send more; [`Instant::MAX`] if that is not what it waits for.
    room_at: Instant,
    /// When its timer is set for.
    wake_at: Instant,
    /// Packets sent, those of earlier connections of this number included.
    sent_packets: u64,
    /// Behind the last position sent.
    highest: u64,
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
