//! Connections: how many there may be.

use super::limits::{Place, Places};
use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Connections from one address and in all: fewer than a process usually may have files open, so that the store and gateways are still reached. Many come from one
/// address where a load balancer is in front.
const CONNECTIONS: [usize; 2] = [8_192, 16_384];

/// Takes connections, as many as there are places. Without delay: parts of an answer, and events of a stream, would wait for the acknowledgement of the part
/// before.
#[derive(Debug, Clone)]
pub(super) struct Accepting {
    places: Arc<Places>,
}

impl Default for Accepting {
    fn default() -> Self {
        Self {
            places: Places::new("connections", CONNECTIONS),
        }
    }
}

impl<S> Accept<TcpStream, S> for Accepting {
    type Stream = Counted;
    type Service = S;
    type Future = Ready<io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let counted = || {
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?.ip().to_string();
            let place = self.places.try_take(&peer, 1);
            let place = place.map_err(|refusal| io::Error::other(refusal.problem.detail))?;
            Ok(Counted {
                stream,
                _place: place,
            })
        };
        ready(counted().map(|counted| (counted, service)))
    }
}

/// A connection, whose place is free when it ends.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    _place: Place,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
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
