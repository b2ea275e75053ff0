//! The process: listen, serve, stop.

use super::connections::Accepting;
use super::limits::Limits;
use super::metrics::Metrics;
use super::refused::RefusedRequests;
use super::tls::{self, TlsParams};
use super::{App, router};
use crate::administration::has_tokens;
use crate::gateways::{Counters, Presence, mark_absent};
use crate::log;
use crate::rules::Idle;
use crate::sql::Answer;
use crate::store::{Request, Store, carry_out};
use axum_server::Handle;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often the commits of other controllers are looked for, while somebody waits.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often gateways that are gone are looked for.
const PRESENCE_EVERY: Duration = Duration::from_secs(2);
/// How long requests may go on after the controller was told to stop.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the head of a request may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// How the API is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeParams {
    /// Address and port.
    pub listen: SocketAddr,
    /// TLS; `None` on loopback only.
    pub tls: Option<TlsParams>,
    /// Most requests per second of each token, or address.
    pub requests_per_second: u32,
}

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could be reached from elsewhere without protection.
    #[error(
        "{listen} can be reached from other machines: that needs TLS (`--tls-certificate FILE --tls-key FILE`) and a token \
         (`slicewise controller token add NAME --scope admin`)"
    )]
    Unprotected {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be used.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("TLS with {certificate}: {source}")]
    Tls {
        /// The certificate.
        certificate: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The store failed.
    #[error("the store: {0}")]
    Store(#[from] sqlx::Error),
    /// The system failed.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl ServeError {
    /// Returns true if the user can fix it by other arguments.
    #[must_use]
    pub const fn is_mistake(&self) -> bool {
        matches!(
            self,
            Self::Unprotected { .. } | Self::Listen { .. } | Self::Tls { .. }
        )
    }
}

/// Serve the API until SIGINT or SIGTERM.
///
/// # Errors
/// If it cannot be served.
pub async fn serve(store: Store, params: &ServeParams) -> Result<(), ServeError> {
    let listen = params.listen;
    let listener =
        TcpListener::bind(listen).map_err(|source| ServeError::Listen { listen, source })?;
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    serve_on(store, params, listener, stop).await
}

/// Serve the API on `listener` until `stop`.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on(
    store: Store,
    params: &ServeParams,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let is_loopback = params.listen.ip().is_loopback();
    let mut connection = store.pool().acquire().await?;
    let needs_token = has_tokens(&mut connection).await?;
    drop(connection);
    if !is_loopback && (params.tls.is_none() || !needs_token) {
        return Err(ServeError::Unprotected {
            listen: params.listen,
        });
    }
    listener.set_nonblocking(true)?;
    let listen = listener.local_addr()?;
    let app = Arc::new(App {
        store: store.clone(),
        counters: Counters::default(),
        idle: Idle::default(),
        metrics: Metrics::default(),
        limits: Limits::new(params.requests_per_second),
        refused: RefusedRequests::default(),
        is_loopback,
    });
    let tls = match &params.tls {
        None => None,
        Some(tls) => Some(tls::load(tls).await?),
    };
    let background = [
        tokio::spawn(look(store.clone())),
        tokio::spawn(presence(store.clone())),
        tokio::spawn(tls::follow(
            params.tls.clone().zip(tls.clone()),
            signal(SignalKind::hangup())?,
        )),
    ];
    let handle = Handle::new();
    let stopping = handle.clone();
    tokio::spawn(async move {
        stop.await;
        stopping.graceful_shutdown(Some(PATIENCE));
    });
    let scheme = if params.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let url = format!("{scheme}://{listen}");
    let (pid, tokens) = (
        std::process::id(),
        if needs_token { "required" } else { "none" },
    );
    log::info(
        "started",
        &[
            ("pid", &pid),
            ("url", &url),
            ("store", store.location()),
            ("tokens", &tokens),
        ],
    );
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    // Without delay: parts of an answer, and events of a stream, would wait for the acknowledgement of the part before.
    let served = match tls {
        None => {
            let server = axum_server::from_tcp(listener)?.handle(handle);
            let mut server = server.acceptor(Accepting::new(false));
            bound(server.http_builder());
            let server = server.first_request_timeout(HEAD_PATIENCE);
            server.serve(service).await
        }
        Some(config) => {
            let server = axum_server::from_tcp_rustls(listener, config)?.handle(handle);
            let mut server = server.map(|tls| tls.acceptor(Accepting::new(true)));
            bound(server.http_builder());
            let server = server.first_request_timeout(HEAD_PATIENCE);
            server.serve(service).await
        }
    };
    for task in background {
        task.abort();
    }
    store.close().await;
    log::info("stopped", &[("pid", &pid)]);
    Ok(served?)
}

/// Connections that say nothing are closed: the first request is waited for by the server itself (`first_request_timeout`).
fn bound(http: &mut Builder<TokioExecutor>) {
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_PATIENCE)
        .keep_alive_timeout(HEAD_PATIENCE);
}

/// Wake those who wait when another controller has committed something.
async fn look(store: Store) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if store.has_watchers() {
            // If the store does not answer, those who wait go on waiting.
            let _ = store.refresh().await;
        }
    }
}

/// Note gateways that are gone.
async fn presence(store: Store) {
    let presence: Arc<Mutex<Presence>> = Arc::default();
    loop {
        tokio::time::sleep(PRESENCE_EVERY).await;
        let (presence, now) = (Arc::clone(&presence), store.clock().elapsed());
        // If the store does not answer, it is noted later.
        let _ = carry_out!(store, Request::default(), |tx| {
            mark_absent(tx, &presence, now).await?;
            Ok(Answer::empty())
        });
    }
}
