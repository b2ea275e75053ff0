//! A link that sends at its rate, without loss, in portions of each connection in turn; they arrive after half a round
//! trip.

use slicewise_applications::{Action, Application, Server};
use slicewise_traffic::application::ServerParams;
use slicewise_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// What reaches the application.
#[derive(Debug, Clone, Copy)]
enum Event {
    Connected,
    /// A request reaches the server.
    Asked(u64),
    Received(u64),
    Closed,
    /// The link has sent a portion.
    Free,
}

/// Bytes that arrive together.
const PORTION: u64 = 15_000;

pub struct Network {
    bits_per_second: u64,
    round_trip: Duration,
    server: Server,
    events: BTreeMap<(Instant, u64), (u32, Event)>,
    /// Events so far: those of the same time stay in order.
    count: u64,
    /// Connections in turn, with bytes to send.
    queue: VecDeque<(u32, u64)>,
    is_sending: bool,
    /// With their times, in order.
    pub actions: Vec<(Instant, Action)>,
}

impl Network {
    pub fn new(bits_per_second: u64, round_trip: Duration, server: ServerParams) -> Self {
        Self {
            bits_per_second,
            round_trip,
            server: Server::new(server),
            events: BTreeMap::new(),
            count: 0,
            queue: VecDeque::new(),
            is_sending: false,
            actions: Vec::new(),
        }
    }

    fn half_trip(&self) -> Duration {
        Duration::from_nanos(self.round_trip.nanos() / 2)
    }

    fn add(&mut self, time: Instant, connection: u32, event: Event) {
        self.events.insert((time, self.count), (connection, event));
        self.count += 1;
    }

    /// Put the next portion on the link, if it is free.
    fn send(&mut self, now: Instant) {
        if self.is_sending {
            return;
        }
        let Some((connection, bytes)) = self.queue.pop_front() else {
            return;
        };
        let portion = bytes.min(PORTION);
        let lasts = Duration::from_nanos(portion * 8_000_000_000 / self.bits_per_second);
        let received = now + lasts + self.half_trip();
        self.add(received, connection, Event::Received(portion));
        self.add(now + lasts, connection, Event::Free);
        self.is_sending = true;
        if bytes > portion {
            self.queue.push_back((connection, bytes - portion));
        }
    }

    fn act(&mut self, action: Action, now: Instant) {
        self.actions.push((now, action));
        match action {
            Action::Open { connection } => {
                self.add(now + self.round_trip, connection, Event::Connected);
            }
            Action::Send { connection, bytes } => {
                if bytes < u64::MAX {
                    self.queue.push_back((connection, bytes));
                    self.send(now);
                }
            }
            Action::Request {
                connection,
                response,
                ..
            } => self.add(now + self.half_trip(), connection, Event::Asked(response)),
            Action::Close { connection } => {
                self.add(now + self.round_trip, connection, Event::Closed);
            }
        }
    }

    /// Run the application over it until that time.
    pub fn run(&mut self, application: &mut Application, until: Instant) {
        loop {
            let event = self.events.keys().next().map(|(time, _)| *time);
            let next = [event, application.poll_at(), self.server.poll_at()];
            let Some(now) = next.into_iter().flatten().min().filter(|now| *now < until) else {
                return;
            };
            if event == Some(now)
                && let Some((_, (connection, event))) = self.events.pop_first()
            {
                match event {
                    Event::Connected => application.on_connected(connection, now),
                    Event::Asked(bytes) => self.server.on_request(connection, bytes, now),
                    Event::Received(bytes) => application.on_received(connection, bytes, now),
                    Event::Closed => application.on_closed(connection, now),
                    Event::Free => {
                        self.is_sending = false;
                        self.send(now);
                    }
                }
            }
            while let Some((connection, bytes)) = self.server.poll_response(now) {
                self.queue.push_back((connection, bytes));
                self.send(now);
            }
            while let Some(action) = application.poll_action(now) {
                self.act(action, now);
            }
        }
    }
}
