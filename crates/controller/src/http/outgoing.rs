//! Answers on their way: what a client has not taken yet counts against its limits.

use super::connections::{Connection, Waiting};
use super::limits::Place;
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes that are given to the connection at a time: what it may hold of an answer whose places are given back.
const PART_BYTES: usize = 16 << 10;

/// The body of an answer. Its places are given back when the connection has taken all of it and asks for more, which is after the window of HTTP/2 had room for the last
/// part.
pub(super) struct Outgoing {
    body: Body,
    part: Bytes,
    _places: Vec<Place>,
    waiting: Option<Waiting>,
}

impl Outgoing {
    pub(super) fn new(body: Body, places: Vec<Place>, on: Option<&Arc<Connection>>) -> Self {
        Self {
            body,
            part: Bytes::new(),
            _places: places,
            waiting: on.map(Connection::wait),
        }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(waiting) = &self.waiting {
            waiting.took_some();
        }
        if self.part.is_empty() {
            let next = ready!(Pin::new(&mut self.body).poll_frame(context));
            match next.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.part = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let count = self.part.len().min(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.part.split_to(count)))))
    }

    /// Never before it is asked for more.
    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        let (body, part) = (self.body.size_hint(), self.part.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(part));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(part));
        }
        hint
    }
}
