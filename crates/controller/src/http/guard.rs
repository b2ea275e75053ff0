//! Before every request: limits, who asks, and headers that protect browsers. A panic becomes an answer.

use super::Shared;
use super::answer::NotAudited;
use super::connections::Connection;
use super::incoming::Incoming;
use super::limits::Place;
use super::origin::Authority;
use super::outgoing::Outgoing;
use super::refused::Refused;
use crate::actor::Actor;
use crate::administration::{has_tokens, holder};
use crate::log;
use crate::refusal::Refusal;
use crate::sql::{Failed, shortened};
use crate::store::work;
use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use slicewise_api::Scope;
use sqlx::AnyConnection;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an answer may take that does not wait for something to happen: more than a body and a transaction need. A store that is
/// lost without a word (its network, its machine) is noticed by nothing else.
const PATIENCE: Duration = Duration::from_secs(25);

/// The type of a stream of events.
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The middleware around every handler.
pub(super) async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    // HTTP/2 ends a stream without its connection.
    let request = match request.version() {
        Version::HTTP_2 => request,
        _ => request.map(|body| Body::new(Incoming::new(body))),
    };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map(|route| route.as_str().to_owned());
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or_else(String::new, |peer| peer.0.ip().to_string());
    let mut asker = Asker::default();
    let done = AssertUnwindSafe(in_time(&app, request, next, (&peer, &mut asker)))
        .catch_unwind()
        .await;
    let refused = |refusal: Refusal| {
        (
            refusal.into_response(),
            app.limits.refusals.try_take(&peer, 1).map(Some),
        )
    };
    let (mut response, place) = match done {
        Ok(Ok(response)) => (response, Ok(None)),
        Ok(Err(refusal)) => refused(refusal),
        Err(_) => refused(Refusal::defect()),
    };
    let mut places = std::mem::take(&mut asker.places);
    match (place, &connection) {
        (Ok(place), _) => places.extend(place),
        // This client, or its address, has not taken many others.
        (Err(_), Some(connection)) => connection.close(),
        (Err(_), None) => {}
    }
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if !method.is_safe() && path != "/v1/offers" {
        let refused = response.extensions().get::<NotAudited>().cloned();
        let asked = (&method, path.clone(), route);
        note_refusal(&app, asker, asked, response.status().as_u16(), refused).await;
    }
    let status = response.status().as_u16();
    app.metrics.answered(status, started.elapsed());
    let is_endless = response.headers().get(header::CONTENT_TYPE) == Some(&EVENT_STREAM);
    if !is_endless && !response.body().is_end_stream() {
        let outgoing = |body| Body::new(Outgoing::new(body, places, connection.as_ref()));
        response = response.map(outgoing);
    }
    if status >= 500 {
        log::warn(
            "request_failed",
            &[("method", &method), ("path", &path), ("status", &status)],
        );
    }
    response
}

/// Who asks, as far as that is known.
#[derive(Debug, Default)]
struct Asker {
    name: Option<String>,
    /// Whose share of the writer's time it takes; `None` without a good token.
    party: Option<String>,
    /// Held until the client has taken its answer.
    places: Vec<Place>,
}

/// Writes down that a request for a change was refused before the writer had it: those for which the token was not enough are what an audit log is read for.
/// Requests that were too many are not written down: that would be more of them. Of strangers, only the route is: the rest they choose themselves.
async fn note_refusal(
    app: &Shared,
    asker: Asker,
    (method, path, route): (&Method, String, Option<String>),
    status: u16,
    refused: Option<NotAudited>,
) {
    let (Some(NotAudited(detail)), Some(actor), Some(route)) = (refused, asker.name, route) else {
        return;
    };
    if !(400..500).contains(&status) || status == 429 {
        return;
    }
    let refused = Refused {
        who: actor.clone(),
        line: match asker.party.is_some() {
            true => shortened(&format!("{method} {path}")),
            false => format!("{method} {route}"),
        },
        status,
        has_token: asker.party.is_some(),
    };
    let line = refused.line.clone();
    let Some(times) = app.refused.count(refused, Instant::now()) else {
        return;
    };
    let detail = match times {
        1 => detail,
        _ => format!("{times} times within the hour: {detail}"),
    };
    let request = crate::store::Request {
        party: asker.party.unwrap_or_else(|| "strangers".to_owned()),
        actor,
        line,
        key: None,
    };
    let refuse = work(move |_| {
        let refusal = Refusal::new(status, "refused", "Refused", detail);
        Box::pin(async move { Err(Failed::from(refusal)) })
    });
    let app = Arc::clone(app);
    // Also where the client does not wait for its answer. It is refused, as it says.
    let noted = tokio::spawn(async move { app.store.writer().change(request, refuse).await });
    let _ = noted.await;
}

/// Returns true if the request waits for something to happen: a long poll, or a stream.
fn waits(request: &Request) -> bool {
    let path = request.uri().path();
    match path {
        "/v1/events" => is_stream(request.headers()),
        _ => path.starts_with("/v1/gateways/") && path.ends_with("/desired"),
    }
}

/// Returns true if events are asked for as a stream.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

async fn in_time(
    app: &Shared,
    request: Request,
    next: Next,
    asker: (&str, &mut Asker),
) -> Result<Response, Refusal> {
    if waits(&request) {
        return admitted(app, request, next, asker).await;
    }
    let done = tokio::time::timeout(PATIENCE, admitted(app, request, next, asker)).await;
    done.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut.into()))
}

async fn admitted(
    app: &Shared,
    mut request: Request,
    next: Next,
    (peer, asker): (&str, &mut Asker),
) -> Result<Response, Refusal> {
    let path = request.uri().path();
    let needs_actor = path.starts_with("/v1/") || path.starts_with("/metrics");
    let waits = waits(&request);
    let serve = |who: &str| match waits {
        true => Ok(None),
        false => app.limits.served.try_take(who, 1).map(Some),
    };
    let (place, who);
    if needs_actor {
        asker.name = Some(format!("from {peer}"));
        let headers = request.headers().clone();
        let actor = authenticated(app, Authority::of(&request), &headers, peer).await?;
        asker.name = Some(actor.name.clone());
        asker.party = Some(actor.party());
        app.limits.try_ask(&actor.name)?;
        who = actor.party();
        place = serve(&who)?;
        let proof = Proof::of(request.headers(), &actor);
        request.extensions_mut().insert(proof);
        request.extensions_mut().insert(actor);
    } else {
        let from = format!("from {peer}");
        app.limits.try_ask(&from)?;
        if app.is_loopback {
            Authority::of(&request)?.check_loopback()?;
        }
        place = serve(&from)?;
        who = from;
    }
    let is_safe = request.method().is_safe();
    let response = next.run(request).await;
    let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    // What was done is said, however much waits.
    let room = app.limits.try_answer(&who, bytes, is_safe)?;
    asker.places.extend(place.into_iter().chain([room]));
    Ok(response)
}

/// Proof by which a request was admitted: answers that take long ask again whether it is still good.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    token: Option<String>,
    actor: Actor,
}

impl Proof {
    fn of(headers: &HeaderMap, actor: &Actor) -> Self {
        Self {
            token: bearer(headers).map(str::to_owned),
            actor: actor.clone(),
        }
    }

    /// Returns true if the same request would be admitted now: its token is not revoked, and no token is needed where
    /// it had none.
    pub(super) async fn is_good(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<bool, sqlx::Error> {
        match &self.token {
            Some(token) => Ok(holder(connection, token).await?.as_ref() == Some(&self.actor)),
            None => Ok(!has_tokens(connection).await?),
        }
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = text.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Who asks: the holder of the token, or, where none is needed, whoever is on this machine.
async fn authenticated(
    app: &Shared,
    authority: Result<Authority, Refusal>,
    headers: &HeaderMap,
    peer: &str,
) -> Result<Actor, Refusal> {
    if headers.contains_key(header::AUTHORIZATION) {
        let mut connection = app.store.pool().acquire().await?;
        let found = match bearer(headers) {
            Some(token) => holder(&mut connection, token).await?,
            None => None,
        };
        return match found {
            Some(actor) => Ok(actor),
            None => {
                drop(connection);
                app.limits.try_guess(&format!("from {peer}"))?;
                log::warn("token_refused", &[("peer", &peer)]);
                let detail =
                    "this token is not known: it was revoked, or never made for this controller";
                Err(Refusal::unauthorized(detail))
            }
        };
    }
    app.limits.try_ask(&format!("from {peer}"))?;
    let mut connection = app.store.pool().acquire().await?;
    if !app.is_loopback || has_tokens(&mut connection).await? {
        let detail =
            "send `Authorization: Bearer TOKEN`; `slicewise controller token add` makes tokens";
        return Err(Refusal::unauthorized(detail));
    }
    let authority = authority?;
    authority.check_loopback()?;
    authority.check_page(headers)?;
    Ok(Actor {
        name: "local".to_owned(),
        scope: Scope::Admin,
    })
}
