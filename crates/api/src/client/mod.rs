//! A blocking client of the API.

mod administration;
mod bounded;
mod calls;
mod reason;

use crate::{INSTANCE_HEADER, Problem, STORE_HEADER};
use bounded::Bounded;
use rustls::crypto::ring;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Write as _};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ureq::http::{self, Method, Response, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

/// How long an answer may take, beside the time that a long poll asks for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Memory that an answer may take, about, bytes.
const ANSWER_MAX: u64 = 1 << 30;
/// Memory that the reason of a refusal may take, about, bytes.
const PROBLEM_MAX: u64 = 1 << 20;
/// Bytes of an answer that are read at a time.
const READ_BYTES: usize = 1 << 16;
/// Where Debian and others keep the certificates of authorities.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// How to reach a controller.
#[derive(Clone)]
pub struct ClientParams {
    /// Its address, as `http://127.0.0.1:9650`.
    pub url: String,
    /// The token, if the controller has tokens.
    pub token: Option<String>,
    /// Certificates (PEM) of the authorities that are trusted, for `https`; `None` for those of the system.
    pub authorities: Option<PathBuf>,
}

impl fmt::Debug for ClientParams {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientParams");
        shown.field("url", &self.url);
        shown.field("authorities", &self.authorities);
        shown.finish_non_exhaustive()
    }
}

/// Why a request brought no answer that was asked for.
#[derive(Debug)]
pub enum ClientError {
    /// The parameters are wrong.
    Params(String),
    /// The controller refused, and says why.
    Refused(Box<Problem>),
    /// The controller could not be reached, or its answer did not come.
    Unreachable {
        /// The address.
        url: String,
        /// Reason, and what to do about it.
        reason: String,
    },
    /// Something that is no controller answered, or one of another version.
    Unexpected {
        /// The address.
        url: String,
        /// Problem with the answer.
        reason: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(problem) => f.write_str(problem),
            Self::Refused(problem) => problem.fmt(f),
            Self::Unreachable { url, reason } => {
                write!(f, "the controller at {url} cannot be reached: {reason}")
            }
            Self::Unexpected { url, reason } => {
                write!(f, "{url} does not answer as a controller does: {reason}")
            }
        }
    }
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// The HTTP status, if the controller refused.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(problem) => Some(problem.status),
            _ => None,
        }
    }

    /// Returns true if the same request may succeed later: nothing answered, or the controller was not able to answer
    /// just now.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => matches!(problem.status, 429 | 500..=599),
            Self::Params(_) | Self::Unexpected { .. } => false,
        }
    }
}

/// On what a change depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precondition {
    /// On nothing.
    #[default]
    None,
    /// The slice does not exist.
    Absent,
    /// The slice has this version.
    Version(u64),
}

/// A value, and whether it is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// True if it did not exist before.
    pub created: bool,
}

/// A client of one controller. Clones share connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base: String,
    token: Option<String>,
    instance: Option<String>,
    store: Option<String>,
    patience: Duration,
    answer_max: u64,
    /// Something was answered, so a connection may be there that the controller closes.
    has_answered: Arc<AtomicBool>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// One request.
struct Call<'a> {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<&'a [u8]>,
    /// How long the answer may take beside the usual time: it was asked to wait, or there is much to do.
    wait: Duration,
}

impl<'a> Call<'a> {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            wait: Duration::ZERO,
        }
    }

    fn with(self, body: &'a [u8]) -> Self {
        let body = Some(body);
        Self { body, ..self }
    }

    fn on(mut self, precondition: Precondition, key: Option<&str>) -> Self {
        self.headers.extend(match precondition {
            Precondition::None => None,
            Precondition::Absent => Some(("if-none-match", "*".to_owned())),
            Precondition::Version(version) => Some(("if-match", format!("\"{version}\""))),
        });
        let key = key.map(|key| ("idempotency-key", key.to_owned()));
        self.headers.extend(key);
        self
    }
}

impl Client {
    /// A client; it connects with the first request.
    ///
    /// # Errors
    /// If the address is none, or the certificates cannot be read.
    pub fn new(params: &ClientParams) -> Result<Self, ClientError> {
        let base = params.url.trim_end_matches('/').to_owned();
        let is_secure = base.starts_with("https://");
        if !is_secure && !base.starts_with("http://") {
            return Err(ClientError::Params(format!(
                "{:?} is not an address of a controller: expected for example `http://127.0.0.1:9650`",
                params.url
            )));
        }
        if !is_secure && params.token.is_some() && !is_loopback(&base) {
            return Err(ClientError::Params(format!(
                "{base}: a token would be sent in clear text to another machine: expected `https://`, or `http://` with `localhost` or a loopback address"
            )));
        }
        let mut tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        if is_secure {
            let file = params.authorities.as_deref();
            tls = tls.root_certs(certificates(
                file.unwrap_or(Path::new(SYSTEM_CERTIFICATES)),
            )?);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_PATIENCE))
            .proxy(None)
            .tls_config(tls.build())
            .build();
        Ok(Self {
            agent: config.into(),
            base,
            token: params.token.clone(),
            instance: None,
            store: None,
            patience: PATIENCE,
            answer_max: ANSWER_MAX,
            has_answered: Arc::default(),
        })
    }

    /// The same client, as this process of a gateway: see [`INSTANCE_HEADER`].
    #[must_use]
    pub fn with_instance(self, instance: &str) -> Self {
        let instance = Some(instance.to_owned());
        Self { instance, ..self }
    }

    /// The same client, of a gateway that follows this store; empty if it follows none yet. See [`STORE_HEADER`].
    #[must_use]
    pub fn with_store(self, store: &str) -> Self {
        let store = (!store.is_empty()).then(|| store.to_owned());
        Self { store, ..self }
    }

    /// The same client, which waits this long for an answer, beside the time that a long poll asks for; otherwise 30 s. A
    /// connection that is lost without a word is noticed by nothing else.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same client, which reads no answer that takes more memory than about this, bytes; otherwise 1 GiB.
    #[must_use]
    pub fn with_answer_max(self, answer_max: u64) -> Self {
        Self { answer_max, ..self }
    }

    fn unexpected(&self, reason: impl fmt::Display) -> ClientError {
        ClientError::Unexpected {
            url: self.base.clone(),
            reason: reason.to_string(),
        }
    }

    /// Sends a request. One that only reads is sent again, once, where the controller has closed a connection that was kept: it may do so at
    /// any time.
    fn send(&self, call: &Call<'_>) -> Result<Response<Body>, ClientError> {
        let unreachable = |error: ureq::Error| ClientError::Unreachable {
            url: self.base.clone(),
            reason: reason::of_request(&error, self.base.starts_with("https://")),
        };
        let is_kept = self.has_answered.load(Ordering::Relaxed);
        let sent = match self.send_once(call, false)? {
            Err(error) if is_kept && call.method == Method::GET && is_closed(&error) => {
                self.send_once(call, true)?
            }
            sent => sent,
        };
        let response = sent.map_err(unreachable)?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(response)
    }

    /// `anew`: by a connection of its own.
    fn send_once(
        &self,
        call: &Call<'_>,
        anew: bool,
    ) -> Result<Result<Response<Body>, ureq::Error>, ClientError> {
        let mut request = http::Request::builder()
            .method(&call.method)
            .uri(format!("{}{}", self.base, call.path))
            .header(header::ACCEPT, "application/json");
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(instance) = &self.instance {
            request = request.header(INSTANCE_HEADER, instance);
        }
        if let Some(store) = &self.store {
            request = request.header(STORE_HEADER, store);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let wrong = |error: http::Error| ClientError::Params(format!("{}: {error}", self.base));
        Ok(match call.body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                self.run(request.body(body).map_err(wrong)?, call.wait, anew)
            }
            // Otherwise `ureq` would say that a body comes in parts, and send an empty one.
            None if call.method == Method::POST => {
                let none: &[u8] = &[];
                self.run(request.body(none).map_err(wrong)?, call.wait, anew)
            }
            None => self.run(request.body(()).map_err(wrong)?, call.wait, anew),
        })
    }

    fn run(
        &self,
        request: http::Request<impl ureq::AsSendBody>,
        wait: Duration,
        anew: bool,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        let mut request = request.timeout_global(Some(self.patience + wait));
        if anew {
            request = request.max_idle_age(Duration::ZERO);
        }
        self.agent.run(request.build())
    }

    /// The answer to a request, where that is no refusal.
    fn accepted(&self, call: &Call<'_>) -> Result<Response<Body>, ClientError> {
        let response = self.send(call)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let kind = response.headers().get(header::CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain")) {
            // Of what is in front of the controller, or of its port of TLS.
            let body = response.into_body().into_with_config().limit(PROBLEM_MAX);
            let text = body.read_to_string().unwrap_or_default();
            let line = text.lines().next().unwrap_or_default();
            return Err(self.unexpected(format!("HTTP status {status}: {line}")));
        }
        match self.json::<Problem>(response, PROBLEM_MAX) {
            Ok(mut problem) => {
                problem.status = status.as_u16();
                Err(ClientError::Refused(Box::new(problem)))
            }
            Err(ClientError::Unexpected { .. }) => {
                Err(self.unexpected(format!("HTTP status {status}")))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the body of an answer as it comes.
    fn json<T: DeserializeOwned>(
        &self,
        response: Response<Body>,
        max: u64,
    ) -> Result<T, ClientError> {
        let body = response.into_body().into_with_config().limit(u64::MAX);
        let body = BufReader::with_capacity(READ_BYTES, Bounded::new(body.reader(), max));
        serde_json::from_reader(body).map_err(|error| match error.io_error_kind() {
            Some(ErrorKind::FileTooLarge) => self.unexpected(format!(
                "the answer takes more memory than the {max} B that there are for it"
            )),
            Some(_) => ClientError::Unreachable {
                url: self.base.clone(),
                reason: reason::of_answer(&error),
            },
            None => self.unexpected(error),
        })
    }

    /// Sends a request whose answer has no body.
    fn tell(&self, call: &Call<'_>) -> Result<(), ClientError> {
        let mut response = self.accepted(call)?;
        // Read, so that the connection can be kept.
        let body = response.body_mut().with_config().limit(PROBLEM_MAX);
        body.read_to_vec()
            .map(drop)
            .map_err(|error| self.unexpected(error))
    }

    fn read<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<(u16, T), ClientError> {
        let response = self.accepted(call)?;
        let status = response.status().as_u16();
        Ok((status, self.json(response, self.answer_max)?))
    }

    fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, ClientError> {
        Ok(self.read(&Call::new(Method::GET, path))?.1)
    }

    fn put<T: DeserializeOwned>(
        &self,
        path: String,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = self.body(body)?;
        Ok(self.read(&Call::new(Method::PUT, path).with(&body))?.1)
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: impl Into<String>,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let body = self.body(body)?;
        let call = Call::new(Method::POST, path).with(&body);
        Ok(self.read(&call.on(Precondition::None, key))?.1)
    }

    fn delete(&self, path: String) -> Result<(), ClientError> {
        self.tell(&Call::new(Method::DELETE, path))
    }

    fn body(&self, body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(body).map_err(|error| self.unexpected(error))
    }
}

/// Returns whether the other end has closed the connection, before or instead of an answer.
fn is_closed(error: &ureq::Error) -> bool {
    let ureq::Error::Io(error) = error else {
        return false;
    };
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
    )
}

/// Returns true if an `http` address is of this machine, whatever name servers say.
fn is_loopback(base: &str) -> bool {
    let uri: Result<http::Uri, _> = base.parse();
    let host = uri.as_ref().ok().and_then(http::Uri::host);
    let host = host.map(|host| host.trim_start_matches('[').trim_end_matches(']'));
    host.is_some_and(|host| {
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

fn certificates(file: &Path) -> Result<RootCerts, ClientError> {
    let failed = |problem: String| {
        let file = file.display();
        ClientError::Params(format!(
            "{file}: {problem}: expected certificates of authorities (PEM)"
        ))
    };
    let text = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(one) = item.map_err(|error| failed(error.to_string()))? {
            found.push(one);
        }
    }
    if found.is_empty() {
        return Err(failed("has no certificate".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&found))
}

/// Returns the path of a resource by its name.
fn path_of(kind: &str, name: &str) -> String {
    format!("/v1/{kind}/{}", encoded(name))
}

/// `path` with those of `parameters` that have a value.
fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut text = path.to_owned();
    let mut separator = '?';
    for (name, value) in parameters {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{name}={}", encoded(value));
            separator = '&';
        }
    }
    text
}

/// Percent-encoded for a part of a path or a query (RFC 3986).
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
