//! Connections: how many there may be, and how long a client may take nothing of what it asked for.

use super::limits::{Place, Places};
use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use std::collections::HashMap;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower_layer::Layer as _;

/// Connections from one address and in all: fewer than a process usually may have files open, so that the store and gateways are still reached. Many come from one
/// address where a load balancer is in front.
const CONNECTIONS: [usize; 2] = [8_192, 16_384];
/// How long a client may take nothing of an answer: then its connection is closed, with all that waits on it.
const STALL_PATIENCE: Duration = Duration::from_secs(30);
/// How long the first byte of a connection, and the end of one that is refused, may take.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Takes connections, as many as there are places. Without delay: parts of an answer, and events of a stream, would wait for the acknowledgement of the part
/// before.
#[derive(Debug, Clone)]
pub(super) struct Accepting {
    places: Arc<Places>,
    speaks_tls: bool,
}

impl Accepting {
    pub(super) fn new(speaks_tls: bool) -> Self {
        Self {
            places: Places::new("connections", CONNECTIONS),
            speaks_tls,
        }
    }
}

impl<S: Send + 'static> Accept<TcpStream, S> for Accepting {
    type Stream = Counted;
    type Service = AddExtension<S, Arc<Connection>>;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let (places, speaks_tls) = (Arc::clone(&self.places), self.speaks_tls);
        Box::pin(async move {
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?.ip().to_string();
            let place = places.try_take(&peer, 1);
            let place = place.map_err(|refusal| io::Error::other(refusal.problem.detail))?;
            let stream = if speaks_tls {
                timeout(FIRST_PATIENCE, refuse_plain_http(stream)).await??
            } else {
                stream
            };
            let connection = Arc::<Connection>::default();
            let service = Extension(Arc::clone(&connection)).layer(service);
            let counted = Counted {
                stream,
                connection,
                blocked_since: None,
                look: None,
                _place: place,
            };
            Ok((counted, service))
        })
    }
}

/// Tells a client that speaks HTTP where TLS is spoken so: its own message would be about bytes.
///
/// # Errors
/// If it does.
async fn refuse_plain_http(mut stream: TcpStream) -> io::Result<TcpStream> {
    let mut first = [0];
    // RFC 8446, section 5.1: a handshake begins with 22, and a method with a letter.
    if stream.peek(&mut first).await? == 0 || !first[0].is_ascii_alphabetic() {
        return Ok(stream);
    }
    let text = "this port speaks TLS: use https:// instead of http://\n";
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // What was not read when a connection is closed resets it, and the client with it.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "plain HTTP where TLS is spoken",
    ))
}

/// The answers that wait on a connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    answers: Mutex<Answers>,
    is_closed: AtomicBool,
    reader: AtomicWaker,
}

#[derive(Debug, Default)]
struct Answers {
    last: u64,
    /// Since when nothing was taken of each.
    since: HashMap<u64, Instant>,
}

/// An answer that waits on a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    connection: Arc<Connection>,
    number: u64,
}

impl Connection {
    pub(super) fn wait(self: &Arc<Self>) -> Waiting {
        let number = self.with(|answers| {
            answers.last += 1;
            answers.since.insert(answers.last, Instant::now());
            answers.last
        });
        // It looks from now on.
        self.reader.wake();
        Waiting {
            connection: Arc::clone(self),
            number,
        }
    }

    /// Ends the connection, whatever waits on it.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.reader.wake();
    }

    fn with<T>(&self, act: impl FnOnce(&mut Answers) -> T) -> T {
        act(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Since when nothing was taken of the answer that waits longest.
    fn waits_since(&self) -> Option<Instant> {
        self.with(|answers| answers.since.values().min().copied())
    }
}

impl Waiting {
    /// The connection took a part.
    pub(super) fn took_some(&self) {
        let answers = &self.connection;
        answers.with(|answers| answers.since.insert(self.number, Instant::now()));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.connection
            .with(|answers| answers.since.remove(&self.number));
    }
}

/// A connection, whose place is free when it ends.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// Since when the system takes no more.
    blocked_since: Option<Instant>,
    /// While something waits.
    look: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl Counted {
    /// # Errors
    /// If the client has taken nothing for too long.
    fn check_stall(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.connection.is_closed.load(Ordering::Relaxed) {
            let reason = "the client takes none of many refusals";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
        }
        loop {
            let since = [self.blocked_since, self.connection.waits_since()];
            let Some(since) = since.into_iter().flatten().min() else {
                self.look = None;
                return Ok(());
            };
            if since.elapsed() >= STALL_PATIENCE {
                let reason = "the client takes nothing of its answers";
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            let look = self.look.get_or_insert_with(|| Box::pin(sleep(LOOK_EVERY)));
            match look.as_mut().poll(context) {
                Poll::Ready(()) => look.as_mut().reset(Instant::now() + LOOK_EVERY),
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Notes whether the system took something.
    fn noted<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.blocked_since = None;
            return polled;
        }
        self.blocked_since.get_or_insert_with(Instant::now);
        match self.check_stall(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.connection.reader.register(context.waker());
        self.check_stall(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noted(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
