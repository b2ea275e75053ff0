//! A responder for HTTP GET on the loopback interface: only the part of HTTP/1.1 that a scrape needs.
//!
//! One thread serves all connections and waits for none of them: a slow client does not delay others.

use super::{Exchange, openmetrics};
use crate::sys::poll::PollSet;
use slicewise_units::Duration as Span;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest request that is read, bytes.
const REQUEST_BYTES: usize = 4096;
/// A client has this long to ask, and as long to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The gateway has this long to answer.
const GATEWAY_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of connections: if there are more, the oldest is closed.
pub(super) const MOST_CONNECTIONS: usize = 32;
/// How long to wait where no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the process ends.
#[derive(Debug)]
pub struct Server {
    port: u16,
}

impl Server {
    /// Listen on 127.0.0.1; port 0 is any that is free.
    ///
    /// # Errors
    /// Where the port is taken.
    pub fn start(port: u16, exchange: Arc<Exchange>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || serve(&listener, &exchange))?;
        Ok(Self { port })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

fn serve(listener: &TcpListener, exchange: &Exchange) {
    let mut connections: VecDeque<Connection> = VecDeque::new();
    let mut waiting = PollSet::new();
    loop {
        waiting.clear();
        waiting.add(listener.as_fd());
        for connection in &connections {
            connection.add_to(&mut waiting);
        }
        let now = Instant::now();
        let ends = connections.iter().map(|connection| connection.end);
        let timeout = ends.min().map(|end| end.saturating_duration_since(now));
        let timeout = timeout.map_or(u64::MAX, |left| {
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
        });
        if waiting.wait(Span::from_nanos(timeout)).is_err() {
            thread::sleep(PAUSE);
        }
        accept(listener, &mut connections);
        // Whoever asks in the same round gets the same answer.
        let mut answer = None;
        let now = Instant::now();
        // A client that fails, or goes away before its answer, only harms itself.
        connections.retain_mut(|connection| {
            now < connection.end && connection.serve(exchange, &mut answer).unwrap_or(false)
        });
    }
}

fn accept(listener: &TcpListener, connections: &mut VecDeque<Connection>) {
    for _ in 0..MOST_CONNECTIONS {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                if connections.len() == MOST_CONNECTIONS {
                    connections.pop_front();
                }
                connections.push_back(Connection::new(stream));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // Too many descriptors: the connection would be there again at once.
                thread::sleep(PAUSE);
                return;
            }
        }
    }
}

/// A client that asks, and then takes its answer.
struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    end: Instant,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            request: Vec::new(),
            answer: Vec::new(),
            sent: 0,
            end: Instant::now() + PATIENCE,
        }
    }

    fn add_to(&self, waiting: &mut PollSet) {
        if self.answer.is_empty() {
            waiting.add(self.stream.as_fd());
        } else {
            waiting.add_writable(self.stream.as_fd());
        }
    }

    /// Continue as far as possible without waiting; returns whether the client has not been served yet.
    fn serve(&mut self, exchange: &Exchange, metrics: &mut Option<Answer>) -> io::Result<bool> {
        let served = if self.answer.is_empty() {
            self.read(exchange, metrics)
        } else {
            self.write()
        };
        match served {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            served => served,
        }
    }

    fn read(&mut self, exchange: &Exchange, metrics: &mut Option<Answer>) -> io::Result<bool> {
        let mut piece = [0; 512];
        while !self.request.windows(4).any(|end| end == b"\r\n\r\n") {
            let read = self.stream.read(&mut piece)?;
            if read == 0 || self.request.len() + read > REQUEST_BYTES {
                return Ok(false);
            }
            self.request
                .extend_from_slice(piece.get(..read).unwrap_or_default());
        }
        self.answer = respond(&self.request, exchange, metrics);
        self.end = Instant::now() + PATIENCE;
        self.write()
    }

    fn write(&mut self) -> io::Result<bool> {
        while let Some(rest) = self.answer.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest)? {
                0 => return Ok(false),
                sent => self.sent += sent,
            }
        }
        Ok(false)
    }
}

/// Status and body.
type Answer = (&'static str, String);

fn respond(request: &[u8], exchange: &Exchange, metrics: &mut Option<Answer>) -> Vec<u8> {
    let mut words = request.split(|byte| *byte == b' ');
    let (method, path) = (words.next(), words.next());
    let plain = |status, body: &str| http(status, "text/plain; charset=utf-8", body);
    if method != Some(b"GET") {
        return plain("405 Method Not Allowed", "only GET\n");
    }
    if path != Some(b"/metrics") {
        return plain("404 Not Found", "see /metrics\n");
    }
    let (status, body) = metrics.get_or_insert_with(|| match exchange.ask(GATEWAY_PATIENCE) {
        Some(snapshot) => ("200 OK", openmetrics::render(&snapshot)),
        None => (
            "503 Service Unavailable",
            "the gateway does not answer\n".to_owned(),
        ),
    });
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match *status {
        "200 OK" => http(status, kind, body),
        status => plain(status, body),
    }
}

fn http(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + body).into_bytes()
}
