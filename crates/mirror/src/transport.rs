//! HTTP for `object_store`, by the client that the program has already: one less, and one provider of cryptography.

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use rustls::crypto::ring;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Error, Timeout};

/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may send, or take, nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Connections that are kept.
const CONNECTIONS: usize = 16;

/// Makes clients that trust the authorities of the system, or those in the file `SSL_CERT_FILE`.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let found = rustls_native_certs::load_native_certs().certs;
        let trusted: Vec<_> = found
            .iter()
            .map(|one| Certificate::from_der(one).to_owned())
            .collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&trusted));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_PATIENCE))
            .timeout_resolve(Some(CONNECT_PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .timeout_per_write(Some(PATIENCE))
            .max_idle_connections(CONNECTIONS)
            .max_idle_connections_per_host(CONNECTIONS)
            .tls_config(tls.build())
            .build();
        Ok(HttpClient::new(Transport(config.into())))
    }
}

#[derive(Debug)]
struct Transport(Agent);

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.0.clone();
        let answered = tokio::task::spawn_blocking(move || {
            let has_body = matches!(head.method, Method::PUT | Method::POST);
            let response = match has_body {
                true => agent.run(Request::from_parts(head, &*body)),
                false => agent.run(Request::from_parts(head, ())),
            };
            let (head, body) = response?.into_parts();
            let body = body.into_with_config().limit(u64::MAX).read_to_vec()?;
            Ok(HttpResponse::from_parts(head, body.into()))
        });
        let failed = |error| HttpError::new(HttpErrorKind::Unknown, error);
        answered.await.map_err(failed)?.map_err(http_error)
    }
}

fn http_error(error: Error) -> HttpError {
    let kind = match &error {
        Error::Timeout(Timeout::Connect | Timeout::Resolve)
        | Error::HostNotFound
        | Error::ConnectionFailed => HttpErrorKind::Connect,
        Error::Timeout(_) => HttpErrorKind::Timeout,
        Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable => HttpErrorKind::Connect,
            // Of TLS.
            ErrorKind::InvalidData => HttpErrorKind::Unknown,
            // The server has closed a connection that was kept. Every request may be made again: puts are conditional.
            _ => HttpErrorKind::Request,
        },
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
