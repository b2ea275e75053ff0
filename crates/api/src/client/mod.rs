//! A blocking client of the API.

mod administration;
mod calls;

use crate::{INSTANCE_HEADER, Problem, STORE_HEADER, SliceState};
use rustls::crypto::ring;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{self, Method, Response, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

/// How long an answer may take, beside the time that a long poll asks for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// The largest answer: a snapshot of a million slices.
const ANSWER_BYTES_MAX: u64 = 2 << 30;
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
        /// What happened.
        reason: String,
    },
    /// Something that is no controller answered, or one of another version.
    Unexpected {
        /// The address.
        url: String,
        /// What was wrong with the answer.
        reason: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(problem) => f.write_str(problem),
            Self::Refused(problem) => problem.fmt(f),
            Self::Unreachable { url, reason } => write!(
                f,
                "the controller at {url} cannot be reached: {reason}; is `slicewise controller` running there?"
            ),
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

    /// Whether the same request may succeed later: nothing answered, or the controller was not able to answer just now.
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

/// Which slices are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceQuery {
    /// Those after this cursor ([`SlicePage::next`]).
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Those of this tenant.
    pub tenant: Option<String>,
    /// Those in this state.
    pub state: Option<SliceState>,
    /// Those that pass this link.
    pub link: Option<String>,
    /// Those whose name has this in it.
    pub name_contains: Option<String>,
}

/// A value, and whether it is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// Whether it did not exist before.
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

impl Call<'_> {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            wait: Duration::ZERO,
        }
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

    fn unexpected(&self, reason: impl fmt::Display) -> ClientError {
        ClientError::Unexpected {
            url: self.base.clone(),
            reason: reason.to_string(),
        }
    }

    fn send(&self, call: Call<'_>) -> Result<Response<Body>, ClientError> {
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.base, call.path))
            .header(header::ACCEPT, "application/json");
        for (name, value) in call.headers {
            request = request.header(name, value);
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
        let unreachable = |error: ureq::Error| ClientError::Unreachable {
            url: self.base.clone(),
            reason: error.to_string(),
        };
        let patience = self.patience + call.wait;
        let wrong = |error: http::Error| ClientError::Params(format!("{}: {error}", self.base));
        let response = match call.body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                let request = request.body(body).map_err(wrong)?;
                let request = self.agent.configure_request(request);
                self.agent
                    .run(request.timeout_global(Some(patience)).build())
            }
            None => {
                let request = request.body(()).map_err(wrong)?;
                let request = self.agent.configure_request(request);
                self.agent
                    .run(request.timeout_global(Some(patience)).build())
            }
        };
        response.map_err(unreachable)
    }

    /// The body of an answer that is no refusal, and its status.
    fn answer(&self, call: Call<'_>) -> Result<(u16, Vec<u8>), ClientError> {
        let mut response = self.send(call)?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        let body = body
            .read_to_vec()
            .map_err(|error| ClientError::Unreachable {
                url: self.base.clone(),
                reason: error.to_string(),
            })?;
        if status.is_success() {
            return Ok((status.as_u16(), body));
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(mut problem) => {
                problem.status = status.as_u16();
                Err(ClientError::Refused(Box::new(problem)))
            }
            Err(_) => Err(self.unexpected(format!("HTTP status {status}"))),
        }
    }

    fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<(u16, T), ClientError> {
        let (status, body) = self.answer(call)?;
        let value = serde_json::from_slice(&body).map_err(|error| self.unexpected(error))?;
        Ok((status, value))
    }

    fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, ClientError> {
        self.read(Call::new(Method::GET, path))
            .map(|(_, value)| value)
    }

    fn with_body<T: DeserializeOwned>(
        &self,
        method: Method,
        path: impl Into<String>,
        body: &impl Serialize,
        headers: Vec<(&'static str, String)>,
    ) -> Result<(u16, T), ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.unexpected(error))?;
        self.read(Call {
            body: Some(&body),
            headers,
            ..Call::new(method, path)
        })
    }
}

/// Whether an `http` address is of this machine, whatever name servers say.
fn is_loopback(base: &str) -> bool {
    let uri: Result<http::Uri, _> = base.parse();
    let host = uri.as_ref().ok().and_then(http::Uri::host);
    let host = host.map(|host| host.trim_start_matches('[').trim_end_matches(']'));
    host.is_some_and(|host| {
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

fn headers(precondition: Precondition, key: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    match precondition {
        Precondition::None => {}
        Precondition::Absent => headers.push(("if-none-match", "*".to_owned())),
        Precondition::Version(version) => headers.push(("if-match", format!("\"{version}\""))),
    }
    headers.extend(key.map(|key| ("idempotency-key", key.to_owned())));
    headers
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
mod tests {
    use super::*;

    fn params(url: &str) -> ClientParams {
        ClientParams {
            url: url.to_owned(),
            token: Some("secret".to_owned()),
            authorities: None,
        }
    }

    #[test]
    fn parameters_are_encoded_and_secrets_are_not_shown() {
        let query = [("a", Some("x y/&")), ("b", None), ("c", Some("1"))];
        assert_eq!(with_query("/p", &query), "/p?a=x%20y%2F%26&c=1");
        assert!(!format!("{:?}", params("http://localhost")).contains("secret"));
        let client = Client::new(&params("http://localhost")).unwrap();
        assert!(!format!("{client:?}").contains("secret"));
    }

    #[test]
    fn a_controller_that_says_nothing_is_left_when_patience_ends() {
        // Connections are made, and nobody reads.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = Client::new(&params(&url)).unwrap();
        let client = client.with_patience(Duration::from_millis(50));
        for error in [
            client.links().unwrap_err(),
            client
                .desired("gw", 1, Duration::from_millis(50))
                .unwrap_err(),
        ] {
            assert!(error.is_temporary() && error.to_string().contains("timeout"));
        }
    }

    #[test]
    fn a_token_leaves_this_machine_over_tls_only() {
        for near in [
            "http://localhost:9650",
            "http://127.8.0.1",
            "http://[::1]:9650/",
        ] {
            Client::new(&params(near)).unwrap();
        }
        let far = [
            "http://192.0.2.1:9650",
            "http://localhost.example",
            "http://user@192.0.2.1",
        ];
        for far in far {
            assert!(Client::new(&params(far)).is_err(), "{far}");
        }
        let without = ClientParams {
            token: None,
            ..params("http://192.0.2.1:9650")
        };
        Client::new(&without).unwrap();
        let error = Client::new(&params("http://192.0.2.1:9650")).unwrap_err();
        insta::assert_snapshot!(error, @"http://192.0.2.1:9650: a token would be sent in clear text to another machine: expected `https://`, or `http://` with `localhost` or a loopback address");
    }

    #[test]
    fn errors_say_what_to_do() {
        let wrong = Client::new(&params("127.0.0.1:9650")).unwrap_err();
        // Nothing listens on port 9 of this host.
        let client = Client::new(&params("http://127.0.0.1:9")).unwrap();
        let unreachable = client.links().unwrap_err();
        assert!(unreachable.is_temporary());
        insta::assert_snapshot!(format!("{wrong}\n{unreachable}"));
    }
}
