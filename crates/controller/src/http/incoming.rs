//! Bodies of requests, which are read to their end whoever wants them.

use super::extract::{BODY_BYTES_MAX, BODY_PATIENCE};
use axum::body::{Body, Bytes, HttpBody};
use futures_util::TryStreamExt as _;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The body of a request over HTTP/1. A connection of which a body is left unread is reset, and the client loses an answer that it has not taken yet (RFC 9112,
/// section 9.6): what no handler wants is read and thrown away meanwhile.
pub(super) struct Incoming(Body);

impl Incoming {
    pub(super) fn new(body: Body) -> Self {
        Self(body)
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let rest = std::mem::take(&mut self.0);
        // There is no runtime any more where the process ends.
        let runtime = Handle::try_current().ok();
        if let Some(runtime) = runtime.filter(|_| !rest.is_end_stream()) {
            runtime.spawn(timeout(BODY_PATIENCE, discard(rest)));
        }
    }
}

/// Reads the rest of a body, as much as a body may have.
async fn discard(rest: Body) {
    let mut parts = rest.into_data_stream();
    let mut count = 0;
    while let Ok(Some(part)) = parts.try_next().await {
        count += part.len();
        if count > BODY_BYTES_MAX {
            return;
        }
    }
}
