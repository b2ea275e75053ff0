//! Events, as lists and as a stream (Server-Sent Events).

use super::Shared;
use super::answer::{Replied, json};
use super::described::Problems;
use super::extract::Parameters;
use super::guard::{Proof, is_stream};
use super::limits::Place;
use super::permit::Reader;
use super::slices::page;
use crate::actor::Actor;
use crate::events::{self, PAGE_MAX};
use crate::refusal::Refusal;
use crate::store::Progress;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use serde::Deserialize;
use slicewise_api::{Event, EventPage};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use utoipa::IntoParams;

/// Silence after which a comment shows that the stream is alive: clients count the controller as away after 3 s without a byte.
const SILENCE: Duration = Duration::from_secs(1);
/// How often a stream asks whether its token is still good.
const PROOF: Duration = Duration::from_secs(1);

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParameters {
    /// Those after this number. A stream without it begins with what comes next.
    #[serde(default, deserialize_with = "super::extract::natural")]
    after: Option<u64>,
    /// The newest events, so many, instead of those after a number. For lists only.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    newest: Option<u32>,
    /// At most this many. For lists only.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

/// Events after a number, oldest first; with `Accept: text/event-stream` a stream of them, which `Last-Event-ID` continues. Each event of the stream has
/// `id`, its number, and `data`, an `Event` as JSON.
#[utoipa::path(get, path = "/v1/events", tag = "history", params(EventParameters,
        ("Last-Event-ID" = Option<u64>, Header, description = "For streams: those after this number. It takes precedence over `after`.")),
    responses((status = 200, description = "Events.", content((EventPage = "application/json"), (String = "text/event-stream"))), Problems))]
pub(super) async fn events(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Extension(proof): Extension<Proof>,
    Parameters(asked): Parameters<EventParameters>,
    headers: HeaderMap,
) -> Replied {
    let limit = page(asked.limit, 100, PAGE_MAX)?;
    if is_stream(&headers) {
        return stream_of(app, actor, proof, asked.after, &headers).await;
    }
    let mut connection = app.store.pool().acquire().await?;
    let page = match asked.newest {
        Some(count) => {
            events::newest(&mut connection, &actor, page(Some(count), 0, PAGE_MAX)?).await
        }
        None => events::list(&mut connection, &actor, asked.after.unwrap_or(0), limit).await,
    };
    json(&page?)
}

struct Streaming {
    app: Shared,
    actor: Actor,
    proof: Proof,
    after: u64,
    said: Instant,
    watch: watch::Receiver<Progress>,
    _place: Place,
}

async fn stream_of(
    app: Shared,
    actor: Actor,
    proof: Proof,
    after: Option<u64>,
    headers: &HeaderMap,
) -> Replied {
    let place = app.limits.streams.try_take(&actor.party(), 1)?;
    let watch = app.store.watch();
    let last = match headers.get("last-event-id") {
        None => after,
        Some(last) => match last.to_str().ok().and_then(|last| last.parse().ok()) {
            Some(last) => Some(last),
            None => {
                return Err(Refusal::malformed(
                    "`Last-Event-ID` is not the number of an event",
                ));
            }
        },
    };
    let newest = app.store.refresh().await?.event;
    // A number that the store has not given yet is one of before a backup was restored: such a stream would be silent until it is reached.
    let after = last.map_or(newest, |last| last.min(newest));
    let streaming = Streaming {
        app,
        actor,
        proof,
        after,
        said: Instant::now(),
        watch,
        _place: place,
    };
    let body = Body::from_stream(stream::unfold(streaming, next));
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The next piece of the stream. It ends where the store fails: the client connects again; and where its token is not good
/// any more.
async fn next(
    mut streaming: Streaming,
) -> Option<(Result<Bytes, std::convert::Infallible>, Streaming)> {
    loop {
        streaming.watch.borrow_and_update();
        let mut connection = streaming.app.store.pool().acquire().await.ok()?;
        if !streaming.proof.is_good(&mut connection).await.ok()? {
            return None;
        }
        let page = events::list(&mut connection, &streaming.actor, streaming.after, PAGE_MAX)
            .await
            .ok()?;
        drop(connection);
        if let Some(last) = page.items.last() {
            streaming.after = last.number;
            streaming.said = Instant::now();
            let text: String = page.items.iter().map(sse).collect();
            return Some((Ok(Bytes::from(text)), streaming));
        }
        if streaming.said.elapsed() >= SILENCE {
            streaming.said = Instant::now();
            return Some((Ok(Bytes::from_static(b": nothing new\n\n")), streaming));
        }
        // No event says that a token was revoked.
        if let Ok(Err(_)) = tokio::time::timeout(PROOF, streaming.watch.changed()).await {
            return None;
        }
    }
}

fn sse(event: &Event) -> String {
    let mut text = String::new();
    let data = serde_json::to_string(event).unwrap_or_default();
    // Writing to a string cannot fail. JSON has no line break.
    let _ = write!(text, "id: {}\ndata: {data}\n\n", event.number);
    text
}
