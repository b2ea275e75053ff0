//! Reads the parts of requests for handlers, with problem documents where they are wrong.

use super::Shared;
use super::limits::Place;
use crate::actor::Actor;
use crate::administration::hash;
use crate::gateways::Instance;
use crate::refusal::Refusal;
use crate::slices::Guard;
use crate::store::Request;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use futures_util::TryStreamExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use slicewise_api::{INSTANCE_HEADER, STORE_HEADER, Scope, check_name};
use std::time::Duration;

/// The largest body, bytes: a batch of 1000 slices, or the counters of 20,000.
pub(super) const BODY_BYTES_MAX: usize = 16 << 20;
/// Most bytes of other bodies.
const SMALL_BODY_BYTES_MAX: usize = 1 << 20;
/// How long a body may take.
pub(super) const BODY_PATIENCE: Duration = Duration::from_secs(20);
/// The longest identifier of a gateway or store.
const IDENTIFIER_CHARS_MAX: usize = 64;
/// The longest idempotency key.
const KEY_CHARS_MAX: usize = 255;

/// The name in the path, which is one that the resource can have.
pub(super) struct Named(pub(super) String);

impl FromRequestParts<Shared> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let name = Path::<String>::from_request_parts(parts, app).await;
        let Path(name) = name.map_err(|error| Refusal::malformed(error.body_text()))?;
        let kind = parts.uri.path().strip_prefix("/v1/");
        let kind = kind.and_then(|path| path.split_once("s/"));
        // What is put says by itself why it cannot have a name.
        if let Some((kind, _)) = kind.filter(|_| parts.method != Method::PUT) {
            check_name(&name, "").map_err(|_| Refusal::not_found(kind, &name))?;
        }
        Ok(Self(name))
    }
}

/// The number in the path.
pub(super) struct Numbered(pub(super) u64);

impl FromRequestParts<Shared> for Numbered {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let Named(text) = Named::from_request_parts(parts, app).await?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        // One that is too large for the store does not exist.
        let number = text.parse::<i64>().ok().filter(|_| is_number);
        match number.and_then(|number| u64::try_from(number).ok()) {
            Some(number) => Ok(Self(number)),
            None => Err(Refusal::not_found("generation", &text)),
        }
    }
}

impl FromRequestParts<Shared> for Instance {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
        Ok(Self {
            id: identifier(&parts.headers, INSTANCE_HEADER)?,
            follows: identifier(&parts.headers, STORE_HEADER)?,
        })
    }
}

fn identifier(headers: &HeaderMap, name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let is_valid = (1..=IDENTIFIER_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_valid {
        true => Ok(Some(text.to_owned())),
        false => Err(Refusal::malformed(format!(
            "`{name}` is no identifier: expected 1 to {IDENTIFIER_CHARS_MAX} letters and digits"
        ))),
    }
}

/// The parameters behind `?`.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        let query = query.map_err(|error| Refusal::malformed(error.body_text()))?;
        Ok(Self(query.0))
    }
}

/// Who and what is asked, and under which conditions.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    line: String,
    key: Option<String>,
    pub(super) guard: Guard,
}

impl FromRequestParts<Shared> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
        let (path, guard) = (parts.uri.path(), guard(&parts.headers)?);
        let is_restore = path.starts_with("/v1/generations/");
        let is_slice = path.starts_with("/v1/slices/");
        // RFC 9110, section 13.1: a condition that is not tested must not be taken for one that holds.
        if guard != Guard::default() && !is_slice && (!is_restore || guard.absent) {
            return Err(Refusal::malformed(
                "`If-Match` and `If-None-Match` are for single slices, and `If-Match` for restoring a generation: this resource has no versions; send the request \
                 without them",
            ));
        }
        Ok(Self {
            line: format!("{} {path}", parts.method),
            key: key(&parts.headers)?,
            guard,
        })
    }
}

impl Asked {
    /// For the writer. `body` is the hash of what came with it.
    pub(super) fn request(&self, actor: &Actor, body: &str) -> Request {
        let key = self.key.as_ref().map(|key| {
            let mut request = format!("{}\n{body}", self.line);
            if self.guard != Guard::default() {
                request.push_str(&format!("\n{:?}", self.guard));
            }
            // Another token of the same name does not get what was for the one before.
            if let Scope::Tenant(_) | Scope::Gateway(_) = &actor.scope {
                request.push_str(&format!("\n{}", actor.scope));
            }
            (key.clone(), hash(request.as_bytes()))
        });
        Request {
            actor: actor.name.clone(),
            party: actor.party(),
            line: self.line.clone(),
            key,
        }
    }
}

impl Asked {
    /// For the writer, where an answer must not be kept.
    pub(super) fn without_key(&self, actor: &Actor) -> Result<Request, Refusal> {
        match self.key {
            Some(_) => Err(Refusal::malformed(
                "this request takes no `Idempotency-Key`: its answer is not kept",
            )),
            None => Ok(self.request(actor, "")),
        }
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let is_valid = (1..=KEY_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    match is_valid {
        true => Ok(Some(text.to_owned())),
        false => Err(Refusal::malformed(format!(
            "`Idempotency-Key` is not a key: expected 1 to {KEY_CHARS_MAX} visible ASCII characters"
        ))),
    }
}

/// `If-Match` and `If-None-Match` (RFC 9110, section 13.1).
fn guard(headers: &HeaderMap) -> Result<Guard, Refusal> {
    let mut guard = Guard::default();
    for value in headers.get_all(header::IF_MATCH) {
        for tag in value.to_str().unwrap_or("?").split(',').map(str::trim) {
            if tag == "*" {
                guard.exists = true;
                continue;
            }
            let inner = tag.strip_prefix("W/").unwrap_or(tag);
            let inner = inner
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'));
            let Some(inner) = inner else {
                let detail = "`If-Match` is neither `*` nor a list of entity tags such as \"12\"";
                return Err(Refusal::malformed(detail));
            };
            // A weak tag never matches here, nor does one that is not of this API.
            let version = inner.parse::<u64>().ok();
            let version = version.filter(|_| !tag.starts_with("W/"));
            guard.versions.get_or_insert_default().extend(version);
        }
    }
    for value in headers.get_all(header::IF_NONE_MATCH) {
        match value.to_str() {
            Ok("*") => guard.absent = true,
            _ => {
                let detail =
                    "`If-None-Match` of a change can only be `*`: the slice must not exist";
                return Err(Refusal::malformed(detail));
            }
        }
    }
    Ok(guard)
}

/// A body of JSON, its hash, and its room, which is held until the handler has ended.
pub(super) struct Json<T>(
    pub(super) T,
    pub(super) String,
    #[expect(dead_code, reason = "it gives its room back when it is dropped")] pub(super) Place,
);

impl<T: DeserializeOwned> FromRequest<Shared> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: axum::extract::Request, app: &Shared) -> Result<Self, Refusal> {
        let (bytes, room) = body(app, request).await?;
        // Members without their names are no object, although they could be read as one.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(Refusal::malformed("the body is no JSON object"));
        }
        let value = parsed(&bytes).map_err(|error| Refusal::malformed(error.to_string()))?;
        Ok(Self(value, hash(&bytes), room))
    }
}

/// JSON has one kind of number: `1000000`, `1000000.0` and `1e6` are the same. Those that are written with a fraction or an exponent
/// are tried as integers where nothing else is wrong.
fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| {
        if !error.to_string().contains("floating point") {
            return Err(error);
        }
        let mut value: Value = serde_json::from_slice(bytes)?;
        write_as_integers(&mut value);
        T::deserialize(value).map_err(|_| error)
    })
}

fn write_as_integers(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(write_as_integers),
        Value::Object(members) => members.values_mut().for_each(write_as_integers),
        Value::Number(number) => {
            // Up to 2^53, every integer has a number of its own.
            let exact = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0);
            let integer = exact.filter(|_| number.is_f64());
            if let Some(integer) =
                integer.and_then(|float| format!("{float:.0}").parse::<i64>().ok())
            {
                *value = Value::from(integer);
            }
        }
        _ => {}
    }
}

/// A body of JSON as it came, and the room that it has while it is carried out.
pub(super) async fn body(
    app: &Shared,
    request: axum::extract::Request,
) -> Result<(Vec<u8>, Place), Refusal> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(
            415,
            "media-type",
            "The body has another type than expected",
            format!("`Content-Type` is {kind:?}: expected `application/json`"),
        ));
    }
    let path = request.uri().path();
    let is_large = matches!(path, "/v1/batches" | "/v1/slice-requests");
    let most = match is_large || path.starts_with("/v1/gateways/") {
        true => BODY_BYTES_MAX,
        false => SMALL_BODY_BYTES_MAX,
    };
    let who = request.extensions().get::<Actor>();
    let who = who.map(Actor::party).unwrap_or_default();
    let mut room = app.limits.body_bytes.try_take(&who, 0)?;
    match tokio::time::timeout(BODY_PATIENCE, read(request.into_body(), most, &mut room)).await {
        Ok(Ok(Ok(Some(bytes)))) => Ok((bytes, room)),
        Ok(Ok(Err(refusal))) => Err(refusal),
        Ok(Ok(Ok(None))) => Err(Refusal::new(
            413,
            "too-large",
            "The body is too large",
            format!("expected at most {most} bytes: send several smaller batches"),
        )),
        Ok(Err(error)) => Err(Refusal::malformed(format!(
            "the body did not come whole: {error}"
        ))),
        Err(_) => Err(Refusal::new(
            408,
            "too-slow",
            "The body did not come",
            format!("expected it within {} s", BODY_PATIENCE.as_secs()),
        )),
    }
}

/// `None` if it is too large.
async fn read(
    body: Body,
    most: usize,
    room: &mut Place,
) -> Result<Result<Option<Vec<u8>>, Refusal>, axum::Error> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(part) = stream.try_next().await? {
        if bytes.len() + part.len() > most {
            return Ok(Ok(None));
        }
        if let Err(refusal) = room.try_grow(part.len()) {
            return Ok(Err(refusal));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Ok(Some(bytes)))
}

/// A number behind `?`, of the 63 bits that the store has.
pub(super) fn natural<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<i64>::deserialize(deserializer)?;
    let natural = number.map(u64::try_from).transpose();
    natural.map_err(|_| serde::de::Error::custom("expected a number that is not negative"))
}
