//! A responder for HTTP GET on the loopback interface: what a scrape needs of HTTP/1.1, and no more.

use super::{Exchange, openmetrics};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest request that is read.
const REQUEST_BYTES: usize = 4096;
/// Whoever asks has this long to do so, and the gateway this long to answer.
const PATIENCE: Duration = Duration::from_secs(2);

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
        let port = listener.local_addr()?.port();
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                // One at a time: nobody can make the gateway hold many connections.
                for stream in listener.incoming().flatten() {
                    // Whoever goes away before the answer only harms himself.
                    let _ = answer(stream, &exchange);
                }
            })?;
        Ok(Self { port })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

fn answer(mut stream: TcpStream, exchange: &Exchange) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let end = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut piece = [0; 512];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        // All of the request has this long, not each byte: others wait meanwhile.
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        if read == 0 || request.len() + read > REQUEST_BYTES {
            return Ok(());
        }
        request.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    let (status, kind, body) = respond(&request, exchange);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn respond(request: &[u8], exchange: &Exchange) -> (&'static str, &'static str, String) {
    let plain = "text/plain; charset=utf-8";
    let mut words = request.split(|byte| *byte == b' ');
    let (method, path) = (words.next(), words.next());
    if method != Some(b"GET") {
        return ("405 Method Not Allowed", plain, "only GET\n".to_owned());
    }
    if path != Some(b"/metrics") {
        return ("404 Not Found", plain, "see /metrics\n".to_owned());
    }
    match exchange.ask(PATIENCE) {
        Some(snapshot) => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics::render(&snapshot),
        ),
        None => (
            "503 Service Unavailable",
            plain,
            "the gateway does not answer\n".to_owned(),
        ),
    }
}
