//! Connections in a running network: segments become packets, packets become segments.

use crate::device::Forwarding;
use crate::network::Network;
use crate::observer::Observer;
use crate::packet::{Packet, PacketId};
use crate::transport::{FirstPlaces, Leaving, Losses, RECEIVER, Received, SENDER};
use crate::wires::Delivered;
use slicewise_applications::Action;
use slicewise_traffic::transport::CongestionControl;
use slicewise_transport::{Connection, Flags, Segment, State};
use slicewise_units::Instant;
use slicewise_wire::{Ecn, TrafficClass};

/// Most data that receive offload joins to one segment (Linux: 64 KiB of an IP packet).
const JOINED_BYTES: u32 = 65_483;
/// Segments of an interrupt among which receive offload looks for one to join the next to.
const JOINED_AMONG: usize = 8;

impl<F: Forwarding, O: Observer> Network<F, O> {
    /// Packets of connections have reached the end of the link that `port` sends on: `first`, and all that were
    /// received with the same interrupt.
    pub(crate) fn on_segments(&mut self, port: u32, first: PacketId, now: Instant) {
        self.transports.left_before = now;
        let mut batch = std::mem::take(&mut self.transports.batch);
        self.take_segment(first, &mut batch);
        while self.wires.is_due(port, now) {
            if let Some(Delivered::Connection(id)) = self.wires.deliver(port, now) {
                self.take_segment(id, &mut batch);
            }
        }
        for received in &batch {
            self.on_segment(received, now);
        }
        batch.clear();
        self.transports.batch = batch;
    }

    /// Take a packet from the network, and join what it holds to what was received before it where receive offload does.
    fn take_segment(&mut self, id: PacketId, batch: &mut Vec<Received>) {
        let segment = *self.wires.packets.segment(id);
        let packet = self.wires.packets.take(id);
        let flow = u32::from(packet.flow);
        if packet.sequence < self.transports.first_packet(flow) {
            // Of an earlier connection of this number.
            return;
        }
        let is_marked = packet.traffic_class.ecn() == Ecn::Ce;
        let (connection, _) = self.transports.place(flow);
        let host = &self.transports.applications[self.transports.application_of(connection)];
        if host.behaviour.receive_offload {
            let recent = batch.len().saturating_sub(JOINED_AMONG);
            let mut recent = batch[recent..].iter_mut().rev();
            if let Some(before) = recent.find(|before| before.flow == flow)
                && before.is_marked == is_marked
                && before.segment.absorb(&segment, JOINED_BYTES)
            {
                return;
            }
        }
        batch.push(Received {
            flow,
            is_marked,
            segment,
        });
    }

    fn on_segment(&mut self, received: &Received, now: Instant) {
        let (number, end) = self.transports.place(received.flow);
        let index = self.transports.application_of(number);
        self.transports.look_at_windows(index, now);
        let carried = &mut self.transports.connections[number];
        let host = &mut self.transports.applications[index];
        let connection = &mut carried.ends[end].connection;
        let before = Losses::of(connection.figures());
        connection.on_segment(&received.segment, received.is_marked, &host.behaviour, now);
        if end == SENDER {
            host.measurement
                .on_losses(before, Losses::of(connection.figures()), now);
            if let Some(rtt) = connection.take_sample() {
                let own = number - host.first_connection as usize;
                host.measurement.on_sample(own, rtt, now);
            }
        }
        let arrived = connection.take_arrived();
        if connection.is_end_of_stream() {
            connection.close(&host.behaviour);
        }
        self.pump(number, end, now);
        self.after(number, end, arrived, now);
    }

    /// Tell the application what has happened at an end of a connection.
    fn after(&mut self, number: usize, end: usize, arrived: u64, now: Instant) {
        if self.transports.have_stopped {
            return;
        }
        let index = self.transports.application_of(number);
        let carried = &mut self.transports.connections[number];
        let host = &mut self.transports.applications[index];
        let own = u32::try_from(number).unwrap_or(u32::MAX) - host.first_connection;
        let mut has_happened = false;
        if arrived > 0 && end == RECEIVER {
            host.measurement.on_goodput(own as usize, arrived, now);
            host.application.on_received(own, arrived, now);
            has_happened = host.is_asking;
        } else if arrived > 0
            && let Some((left, response)) = carried.asked.take()
        {
            if left <= arrived {
                host.server.on_request(own, response, now);
                has_happened = true;
            } else {
                carried.asked = Some((left - arrived, response));
            }
        }
        let opener = &carried.ends[host.opener].connection;
        if !carried.is_connected && carried.is_open && opener.state() == State::Established {
            carried.is_connected = true;
            host.application.on_connected(own, now);
            has_happened = true;
        }
        let states = [0, 1].map(|end: usize| carried.ends[end].connection.state());
        let has_failed = states.contains(&State::TimedOut);
        if carried.is_open && (has_failed || states == [State::Closed; 2]) {
            carried.is_open = false;
            carried.asked = None;
            host.measurement.on_ended(own as usize, has_failed, now);
            if has_failed {
                host.server.on_failed(own);
                host.application.on_failed(own, now);
            } else {
                host.application.on_closed(own, now);
            }
            has_happened = true;
        }
        if has_happened {
            self.run_application(u32::try_from(index).unwrap_or(u32::MAX), now);
        }
    }

    /// Data of an end of a connection has left its adapter, and the end may send more.
    pub(crate) fn on_room(&mut self, index: u32, now: Instant) {
        self.transports.after_ports(now);
        let (number, end) = ((index / 2) as usize, (index % 2) as usize);
        self.transports.connections[number].ends[end].room_at = Instant::MAX;
        let application = self.transports.application_of(number);
        self.transports.look_at_windows(application, now);
        self.pump(number, end, now);
    }

    /// The timer of an end of a connection has expired.
    pub(crate) fn on_connection_timer(&mut self, index: u32, now: Instant) {
        self.transports.after_ports(now);
        let (number, end) = ((index / 2) as usize, (index % 2) as usize);
        let index = self.transports.application_of(number);
        self.transports.look_at_windows(index, now);
        let carried = &mut self.transports.connections[number];
        let host = &mut self.transports.applications[index];
        let end_of = &mut carried.ends[end];
        end_of.wake_at = Instant::MAX;
        if end_of.connection.poll_at().is_some_and(|at| at <= now) {
            let before = Losses::of(end_of.connection.figures());
            end_of.connection.on_timer(&host.behaviour, now);
            if end == SENDER {
                host.measurement
                    .on_losses(before, Losses::of(end_of.connection.figures()), now);
            }
        }
        self.pump(number, end, now);
        self.after(number, end, 0, now);
    }

    /// Let an application, and its server, do what is due.
    pub(crate) fn run_application(&mut self, index: u32, now: Instant) {
        self.transports.look_at_windows(index as usize, now);
        loop {
            let host = &mut self.transports.applications[index as usize];
            let Some(action) = host.application.poll_action(now) else {
                break;
            };
            self.carry_out(index, action, now);
        }
        loop {
            let host = &mut self.transports.applications[index as usize];
            let Some((own, response)) = host.server.poll_response(now) else {
                break;
            };
            let number = (host.first_connection + own) as usize;
            self.transports.connections[number].ends[SENDER]
                .connection
                .write(response);
            self.pump(number, SENDER, now);
        }
        let host = &mut self.transports.applications[index as usize];
        let polls = [host.application.poll_at(), host.server.poll_at()];
        let at = polls.into_iter().flatten().min().unwrap_or(Instant::MAX);
        if at != host.wake_at {
            host.wake_at = at;
            let place = self.transports.first_places.application + index;
            self.wires.events.schedule(at, place);
        }
    }

    /// The timer of an application has expired.
    pub(crate) fn on_application(&mut self, index: u32, now: Instant) {
        if self.transports.have_stopped {
            return;
        }
        self.transports.after_ports(now);
        self.transports.applications[index as usize].wake_at = Instant::MAX;
        self.run_application(index, now);
    }

    fn carry_out(&mut self, index: u32, action: Action, now: Instant) {
        let host = &mut self.transports.applications[index as usize];
        let (own, opener) = (action.connection(), host.opener);
        let number = (host.first_connection + own) as usize;
        let Some(carried) = self.transports.connections.get_mut(number) else {
            debug_assert!(false, "an action on a connection that there is not");
            return;
        };
        let behaviour = &host.behaviour;
        match action {
            Action::Open { .. } => {
                // Opened again it is another flow, with the next port of who opens it.
                if carried.ends[opener].sent_packets > 0 {
                    let flow = self.transports.first_flow as usize + 2 * number;
                    if let [to, back] = &mut self.flows[flow..flow + 2] {
                        let (to, back) = (&mut to.headers, &mut back.headers);
                        let (own_port, of_others) = match opener {
                            SENDER => (&mut to.source_port, &mut back.destination_port),
                            _ => (&mut to.destination_port, &mut back.source_port),
                        };
                        *own_port = host.ports.after(*own_port, own);
                        *of_others = *own_port;
                    }
                    for device in &self.wires.devices {
                        for flow in [flow, flow + 1] {
                            let port = device.egress_of_flow[flow] as usize;
                            self.ports[port].classes.forget(flow);
                        }
                    }
                }
                let first_packets = &mut self.transports.first_packets[2 * number..][..2];
                for ((end, at), first) in (0..).zip(&mut carried.ends).zip(first_packets) {
                    at.connection = if end == opener {
                        Connection::open(behaviour)
                    } else {
                        Connection::listen(behaviour)
                    };
                    *first = at.sent_packets;
                    at.highest = 0;
                    at.leaving = Leaving::default();
                }
                (carried.is_open, carried.is_connected, carried.asked) = (true, false, None);
                host.measurement.on_opened(own as usize, now);
            }
            Action::Send { bytes, .. } => carried.ends[opener].connection.write(bytes),
            Action::Request {
                bytes, response, ..
            } => {
                carried.ends[opener].connection.write(bytes);
                carried.asked = Some((bytes, response));
            }
            Action::Close { .. } => carried.ends[opener].connection.close(behaviour),
        }
        self.pump(number, opener, now);
    }

    /// Send what an end of a connection has, and set its timer.
    pub(crate) fn pump(&mut self, number: usize, end: usize, now: Instant) {
        if self.transports.have_stopped {
            return;
        }
        self.transports.note_left(number, end);
        while let Some(segment) = self.transports.poll_transmit(number, end, now) {
            self.send_segment(number, end, &segment, now);
        }
        let FirstPlaces {
            room, end: first, ..
        } = self.transports.first_places;
        let index = u32::try_from(2 * number + end).unwrap_or(u32::MAX);
        let room_at = self.transports.room_at(number, end);
        let at_end = &mut self.transports.connections[number].ends[end];
        if room_at != at_end.room_at {
            at_end.room_at = room_at;
            self.wires.events.schedule(room_at, room + index);
        }
        let at = at_end.connection.poll_at().unwrap_or(Instant::MAX);
        // A timer that moves back expires for nothing, which costs less than to move it with every acknowledgement.
        if at < at_end.wake_at {
            at_end.wake_at = at;
            self.wires.events.schedule(at, first + index);
        }
    }

    /// Cut a segment into frames, and hand them to the adapter.
    fn send_segment(&mut self, number: usize, end: usize, segment: &Segment, now: Instant) {
        let transports = &mut self.transports;
        let host = &transports.applications[transports.application_of(number)];
        let (mss_bytes, header_bytes) = (host.behaviour.mss_bytes, host.header_bytes);
        let port = transports.connections[number].ends[end].port;
        let flow = transports.first_flow + u32::try_from(2 * number + end).unwrap_or(u32::MAX);
        let headers = &self.flows[flow as usize].headers;
        let ecn = match segment.flags.has(Flags::ECT) {
            // RFC 9331: it may wait in a low-latency queue.
            true if host.behaviour.congestion == CongestionControl::Prague => Ecn::Ect1,
            true => Ecn::Ect0,
            false => Ecn::NotEct,
        };
        let traffic_class = TrafficClass::new(headers.dscp, ecn);
        let l3_offset = headers.l3_offset;
        for part in (0..).map_while(|index| segment.part(index, mss_bytes)) {
            let sequence = &mut self.transports.connections[number].ends[end].sent_packets;
            let packet = Packet {
                sent_at: now,
                queued_at: now,
                sequence: *sequence,
                l2_bytes: header_bytes + part.bytes,
                flow: u16::try_from(flow).unwrap_or(u16::MAX),
                l3_offset,
                traffic_class,
            };
            *sequence += 1;
            self.hand_over(port, packet, Some(&part), now);
        }
    }
}
