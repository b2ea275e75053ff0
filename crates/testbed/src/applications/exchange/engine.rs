//! One thread's work: the sockets of both ends, driven by the application and its server.

use super::ends::{self, Awaited, Came, Outgoing};
use super::{Ended, Exchange, http};
use slicewise_applications::{Action, Application, Server};
use slicewise_live::sys::epoll::{Epoll, Interest};
use slicewise_live::sys::{tcp, time};
use slicewise_stats::application::FailureCount;
use slicewise_units::{Duration as Span, Instant};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

/// Longest sleep: an order to stop is looked for then.
const NAP: Span = Span::from_millis(20);
/// Longest time without sleep, for a thread that runs before others, and how long it then sleeps.
const LONGEST_STRETCH: Span = Span::from_millis(20);
const BREAK: Duration = Duration::from_micros(500);
/// A wait of this length is a sleep, too.
const REST: Span = Span::from_micros(100);
/// Reads of one connection before others have their turn.
const READS: usize = 16;
/// Numbers of descriptors: the listener, accepted connections from here on, and opened ones below.
const LISTENER: u64 = u64::MAX;
const ACCEPTED: u64 = 1 << 32;
/// Bytes that heads of responses are taken to have until one was seen.
const USUAL_HEAD: u64 = 300;

pub(super) struct Engine {
    exchange: Exchange,
    application: Application,
    /// Of ours; else the server is another program.
    server: Option<Server>,
    listener: Option<TcpListener>,
    epoll: Epoll,
    /// By number of the connection.
    opened: Vec<Option<Opened>>,
    accepted: Vec<Option<Accepted>>,
    free: Vec<usize>,
    /// By number of the connection, the place of the end that was accepted last.
    newest: HashMap<u32, usize>,
    head_bytes: u64,
    failures: BTreeMap<String, u64>,
    buffer: Vec<u8>,
}

/// The end that asks, or sends.
struct Opened {
    stream: TcpStream,
    is_connected: bool,
    outgoing: Outgoing,
    awaited: Option<Awaited>,
    waits_to_write: bool,
}

/// The end that answers, or receives.
struct Accepted {
    stream: TcpStream,
    connection: u32,
    incoming: Vec<u8>,
    outgoing: Outgoing,
    waits_to_write: bool,
}

impl Engine {
    /// Its thread has to be where connections are opened.
    pub(super) fn new(
        exchange: Exchange,
        application: Application,
        listener: Option<TcpListener>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        if let Some(listener) = &listener {
            epoll.add(listener.as_fd(), LISTENER, Interest::Read)?;
        }
        let connections = exchange.params.connections();
        let server = exchange.server.filter(|_| listener.is_some());
        Ok(Self {
            application,
            head_bytes: server.map_or(USUAL_HEAD, |_| http::HEAD_BYTES),
            server: server.map(Server::new),
            listener,
            epoll,
            opened: (0..connections).map(|_| None).collect(),
            accepted: Vec::new(),
            free: Vec::new(),
            newest: HashMap::new(),
            failures: BTreeMap::new(),
            buffer: ends::buffer(),
            exchange,
        })
    }

    /// Until `is_stopped`; failures of connections are counted.
    pub(super) fn run(mut self, is_stopped: &dyn Fn() -> bool) -> io::Result<Ended> {
        let mut rested = time::now();
        while !is_stopped() {
            self.act(time::now());
            let now = time::now();
            if now.saturating_since(rested) > LONGEST_STRETCH {
                // What is due meanwhile is late, and counted so.
                thread::sleep(BREAK);
                rested = time::now();
            }
            let server = self.server.as_ref().and_then(Server::poll_at);
            let next = self.application.poll_at().into_iter().chain(server).min();
            let wait = next.map_or(NAP, |next| next.saturating_since(now).min(NAP));
            let before = time::now();
            let happened = self.epoll.wait(wait)?;
            let after = time::now();
            if after.saturating_since(before) >= REST {
                rested = after;
            }
            for number in happened {
                self.on_event(number)?;
            }
        }
        let failures = self.failures.into_iter();
        Ok(Ended {
            application: self.application,
            failures: failures
                .map(|(reason, connections)| FailureCount {
                    reason,
                    connections,
                })
                .collect(),
        })
    }

    fn act(&mut self, now: Instant) {
        while let Some(action) = self.application.poll_action(now) {
            match action {
                Action::Open { connection } => self.open(connection),
                Action::Send { connection, bytes } => {
                    self.send(connection, Vec::new(), bytes, None);
                }
                Action::Request {
                    connection,
                    bytes,
                    response,
                } => {
                    let body = response.saturating_sub(self.head_bytes).max(1);
                    let request = http::request(bytes, body);
                    self.send(connection, request, 0, Some(Awaited::new(response)));
                }
                Action::Close { connection } => self.close(connection),
            }
        }
        while let Some((connection, body)) = self.server.as_mut().and_then(|s| s.poll_response(now))
        {
            self.respond(connection, body);
        }
    }

    fn place(connection: u32) -> usize {
        usize::try_from(connection).unwrap_or(usize::MAX)
    }

    fn open(&mut self, connection: u32) {
        let exchange = &self.exchange;
        let more = u16::try_from(connection).unwrap_or(u16::MAX);
        let local = SocketAddr::new(
            exchange.local.ip(),
            exchange.local.port().saturating_add(more),
        );
        let opened = tcp::connect(local, exchange.remote, exchange.options).and_then(|stream| {
            let number = u64::from(connection);
            self.epoll
                .add(stream.as_fd(), number, Interest::ReadWrite)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                if let Some(slot) = self.opened.get_mut(Self::place(connection)) {
                    *slot = Some(Opened {
                        stream,
                        is_connected: false,
                        outgoing: Outgoing::default(),
                        awaited: None,
                        waits_to_write: true,
                    });
                }
            }
            Err(error) => self.fail(connection, &error.to_string()),
        }
    }

    fn send(&mut self, connection: u32, head: Vec<u8>, body: u64, awaited: Option<Awaited>) {
        if let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) {
            opened.outgoing.push(head, body);
            opened.awaited = awaited;
        }
        self.write_opened(connection);
    }

    fn close(&mut self, connection: u32) {
        if let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) {
            opened.outgoing.end();
        }
        self.write_opened(connection);
    }

    fn write_opened(&mut self, connection: u32) {
        let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) else {
            return;
        };
        if !opened.is_connected {
            return;
        }
        let written = opened.outgoing.write_to(&mut opened.stream).and_then(|()| {
            let waits = !opened.outgoing.is_empty();
            let number = u64::from(connection);
            let changed = std::mem::replace(&mut opened.waits_to_write, waits) != waits;
            want(&self.epoll, &opened.stream, number, changed, waits)
        });
        if let Err(error) = written {
            self.fail(connection, &error.to_string());
        }
    }

    /// The connection is lost.
    fn fail(&mut self, connection: u32, reason: &str) {
        if let Some(slot) = self.opened.get_mut(Self::place(connection)) {
            *slot = None;
        }
        *self.failures.entry(reason.to_owned()).or_default() += 1;
        self.application.on_failed(connection, time::now());
    }

    fn on_event(&mut self, number: u64) -> io::Result<()> {
        if number == LISTENER {
            return self.accept();
        }
        if let Some(place) = number.checked_sub(ACCEPTED) {
            self.on_accepted(usize::try_from(place).unwrap_or(usize::MAX));
        } else {
            self.on_opened(u32::try_from(number).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    fn on_opened(&mut self, connection: u32) {
        let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) else {
            return;
        };
        if !opened.is_connected {
            match opened.stream.take_error() {
                Ok(None) => {
                    opened.is_connected = true;
                    self.application.on_connected(connection, time::now());
                    self.act(time::now());
                }
                Ok(Some(error)) | Err(error) => return self.fail(connection, &error.to_string()),
            }
        }
        self.write_opened(connection);
        for _ in 0..READS {
            let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) else {
                return;
            };
            match ends::read(&mut opened.stream, &mut self.buffer) {
                Ok(Came::Bytes(count)) => self.on_response(connection, count),
                Ok(Came::Nothing) => return,
                Ok(Came::End) => {
                    if let Some(slot) = self.opened.get_mut(Self::place(connection)) {
                        *slot = None;
                    }
                    return self.application.on_closed(connection, time::now());
                }
                Err(error) => return self.fail(connection, &error.to_string()),
            }
        }
    }

    /// So many bytes of a response are in the buffer.
    fn on_response(&mut self, connection: u32, count: usize) {
        let Some(Some(opened)) = self.opened.get_mut(Self::place(connection)) else {
            return;
        };
        let Some(awaited) = &mut opened.awaited else {
            return self.fail(connection, "a response without a request");
        };
        match awaited.on_bytes(self.buffer.get(..count).unwrap_or_default()) {
            Ok((tell, is_complete)) => {
                if is_complete {
                    self.head_bytes = awaited.head_bytes;
                    opened.awaited = None;
                }
                let now = time::now();
                self.application.on_received(connection, tell, now);
                self.act(now);
            }
            Err(wrong) => self.fail(connection, wrong),
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(listener) = &self.listener {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                // Also where the other end has given up already.
                Err(_) => return Ok(()),
            };
            stream.set_nonblocking(true)?;
            let connection = from.port().wrapping_sub(self.exchange.local.port()).into();
            let place = self.free.pop().unwrap_or(self.accepted.len());
            let number = ACCEPTED + u64::try_from(place).unwrap_or(0);
            self.epoll.add(stream.as_fd(), number, Interest::Read)?;
            let accepted = Some(Accepted {
                stream,
                connection,
                incoming: Vec::new(),
                outgoing: Outgoing::default(),
                waits_to_write: false,
            });
            self.newest.insert(connection, place);
            match self.accepted.get_mut(place) {
                Some(slot) => *slot = accepted,
                None => self.accepted.push(accepted),
            }
        }
        Ok(())
    }

    fn on_accepted(&mut self, place: usize) {
        self.write_accepted(place);
        for _ in 0..READS {
            let Some(Some(accepted)) = self.accepted.get_mut(place) else {
                return;
            };
            match ends::read(&mut accepted.stream, &mut self.buffer) {
                Ok(Came::Bytes(count)) => self.on_request(place, count),
                Ok(Came::Nothing) => return,
                // The opening end counts what went wrong.
                Ok(Came::End) | Err(_) => return self.forget(place),
            }
        }
    }

    /// So many bytes are in the buffer: of requests, or of what is only received.
    fn on_request(&mut self, place: usize, count: usize) {
        let Some(Some(accepted)) = self.accepted.get_mut(place) else {
            return;
        };
        let connection = accepted.connection;
        let now = time::now();
        let Some(server) = &mut self.server else {
            let bytes = u64::try_from(count).unwrap_or(0);
            return self.application.on_received(connection, bytes, now);
        };
        accepted
            .incoming
            .extend(self.buffer.get(..count).unwrap_or_default());
        loop {
            match http::read_request(&accepted.incoming) {
                Ok(Some(head)) => {
                    accepted.incoming.drain(..head.bytes);
                    server.on_request(connection, head.body, now);
                }
                Ok(None) => break,
                Err(_) => return self.forget(place),
            }
        }
        self.act(now);
    }

    fn forget(&mut self, place: usize) {
        let Some(gone) = self.accepted.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.free.push(place);
        if self.newest.get(&gone.connection) != Some(&place) {
            return;
        }
        self.newest.remove(&gone.connection);
        if let Some(server) = &mut self.server {
            server.on_failed(gone.connection);
        }
    }

    fn respond(&mut self, connection: u32, body: u64) {
        let Some(&place) = self.newest.get(&connection) else {
            return;
        };
        if let Some(Some(accepted)) = self.accepted.get_mut(place) {
            accepted.outgoing.push(http::response_head(body), body);
        }
        self.write_accepted(place);
    }

    fn write_accepted(&mut self, place: usize) {
        let Some(Some(accepted)) = self.accepted.get_mut(place) else {
            return;
        };
        let written = accepted
            .outgoing
            .write_to(&mut accepted.stream)
            .and_then(|()| {
                let waits = !accepted.outgoing.is_empty();
                let number = ACCEPTED + u64::try_from(place).unwrap_or(0);
                let changed = std::mem::replace(&mut accepted.waits_to_write, waits) != waits;
                want(&self.epoll, &accepted.stream, number, changed, waits)
            });
        if written.is_err() {
            self.forget(place);
        }
    }
}

/// Hear of room to write, or no longer.
fn want(
    epoll: &Epoll,
    stream: &TcpStream,
    number: u64,
    has_changed: bool,
    to_write: bool,
) -> io::Result<()> {
    let interest = if to_write {
        Interest::ReadWrite
    } else {
        Interest::Read
    };
    if has_changed {
        epoll.change(stream.as_fd(), number, interest)
    } else {
        Ok(())
    }
}
