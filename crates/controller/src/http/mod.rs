//! The API over HTTP.

mod administration;
mod answer;
mod assets;
mod connections;
mod counter_history;
mod described;
mod events;
mod extract;
mod gateways;
mod guard;
mod incoming;
mod limits;
mod metrics;
mod openapi;
mod operations;
mod origin;
mod outgoing;
mod permit;
mod refused;
mod requests;
mod rules;
mod serve;
mod slice_metrics;
mod slices;
mod tls;

pub use openapi::description;
pub use serve::{ServeError, ServeParams, serve, serve_on};
pub use tls::TlsParams;

use crate::gateways::Counters;
use crate::refusal::Refusal;
use crate::rules::Idle;
use crate::store::Store;
use axum::Router;
use axum::middleware;
use axum::routing::{get, post, put};
use limits::Limits;
use metrics::Metrics;
use refused::RefusedRequests;
use std::sync::Arc;

/// State that every request has at hand.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) counters: Counters,
    pub(crate) idle: Idle,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) refused: RefusedRequests,
    /// True if it can be reached from this machine only: then, and while there are no tokens, none is needed.
    pub(crate) is_loopback: bool,
}

pub(crate) type Shared = Arc<App>;

/// Every route.
pub(crate) fn router(app: Shared) -> Router {
    slice_routes()
        .merge(other_routes())
        .fallback(async || {
            Refusal::new(
                404,
                "not-found",
                "There is no such resource",
                "no route has this path: `/openapi.json` lists them",
            )
        })
        .method_not_allowed_fallback(async || {
            Refusal::new(
                405,
                "method",
                "The resource does not have this method",
                "the header `Allow` lists those it has",
            )
        })
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::guard,
        ))
        .with_state(app)
}

/// Routes about slices.
fn slice_routes() -> Router<Shared> {
    Router::new()
        .route("/v1/links", get(gateways::links))
        .route("/v1/links/{name}", get(gateways::link))
        .route("/v1/links/{name}/counters", get(gateways::link_counters))
        .route(
            "/v1/links/{name}/counters/history",
            get(counter_history::link),
        )
        .route("/v1/slices", get(slices::list))
        .route(
            "/v1/slices/{name}",
            get(slices::read).put(slices::put).delete(slices::remove),
        )
        .route("/v1/slices/{name}/counters", get(gateways::slice_counters))
        .route(
            "/v1/slices/{name}/counters/history",
            get(counter_history::slice),
        )
        .route("/v1/slices/{name}/purge", post(slices::purge))
        .route("/v1/counters", get(gateways::several_counters))
        .route("/v1/counters/history", get(counter_history::several))
        .route("/v1/batches", post(slices::batch))
        .route("/v1/offers", post(slices::offer))
        .route("/v1/generations", get(slices::generations))
        .route("/v1/generations/{generation}", get(slices::generation))
        .route(
            "/v1/generations/{generation}/restore",
            post(slices::restore),
        )
        .route("/v1/events", get(events::events))
        .route("/v1/slice-requests", post(requests::slice_requests))
}

/// Administration, gateways, operations and the dashboard.
fn other_routes() -> Router<Shared> {
    Router::new()
        .route("/v1/tenants", get(administration::tenants))
        .route(
            "/v1/tenants/{name}",
            get(administration::tenant)
                .put(administration::put_tenant)
                .delete(administration::remove_tenant),
        )
        .route(
            "/v1/tokens",
            get(administration::tokens).post(administration::add_token),
        )
        .route(
            "/v1/tokens/{name}",
            axum::routing::delete(administration::remove_token),
        )
        .route("/v1/rules", get(rules::rules))
        .route(
            "/v1/rules/{name}",
            get(rules::rule)
                .put(rules::put_rule)
                .delete(rules::remove_rule),
        )
        .route("/v1/audit", get(administration::audit))
        .route("/v1/gateways", get(gateways::gateways))
        .route(
            "/v1/gateways/{name}",
            put(gateways::announce).delete(gateways::forget),
        )
        .route("/v1/gateways/{name}/desired", get(gateways::desired))
        .route(
            "/v1/gateways/{name}/acknowledgements",
            post(gateways::acknowledge),
        )
        .route(
            "/v1/gateways/{name}/counters",
            post(gateways::report_counters),
        )
        .route("/healthz", get(operations::healthy))
        .route("/readyz", get(operations::ready))
        .route("/metrics", get(operations::metrics))
        .route("/metrics/slices", get(operations::slice_metrics))
        .route("/openapi.json", get(openapi::serve))
        .route("/", get(assets::index))
        .route("/assets/{file}", get(assets::file))
}
