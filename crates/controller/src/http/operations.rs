//! Health, readiness and metrics.

use super::answer::Replied;
use super::permit::{Reader, WholeReader};
use super::{Shared, metrics, slice_metrics};
use crate::gateways::{counters_of_all, links};
use crate::refusal::Refusal;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;

/// The type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

fn text(kind: &'static str, body: String) -> Response {
    let mut response = body.into_response();
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Tells whether the process answers. No token is needed.
#[utoipa::path(get, path = "/healthz", tag = "operations", security(()), responses((status = 200, description = "It does.", body = String, content_type = "text/plain"), super::described::Problems))]
pub(super) async fn healthy() -> Response {
    text("text/plain", "ok\n".to_owned())
}

/// Tells whether the store answers, and changes are carried out. No token is needed.
#[utoipa::path(get, path = "/readyz", tag = "operations", security(()), responses((status = 200, description = "It does.", body = String, content_type = "text/plain"), super::described::Problems))]
pub(super) async fn ready(State(app): State<Shared>) -> Replied {
    if !app.store.writer().is_working() {
        return Err(Refusal::defect());
    }
    match tokio::time::timeout(PATIENCE, app.store.refresh()).await {
        Ok(Ok(_)) => Ok(text("text/plain", "ok\n".to_owned())),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(sqlx::Error::PoolTimedOut.into()),
    }
}

/// Metrics of the controller, its links and gateways (OpenMetrics).
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, description = "OpenMetrics 1.0.", body = String, content_type = "application/openmetrics-text"), super::described::Problems))]
pub(super) async fn metrics(State(app): State<Shared>, WholeReader(_): WholeReader) -> Replied {
    let mut connection = app.store.pool().acquire().await?;
    let links = links(&mut connection).await?;
    drop(connection);
    let body = metrics::text(&app.metrics, &app.store, &links).await?;
    Ok(text(OPEN_METRICS, body))
}

/// Guarantee and bound of each slice, and what gateways counted last of it (OpenMetrics); for a tenant, its slices only.
#[utoipa::path(get, path = "/metrics/slices", tag = "operations", responses((status = 200, description = "OpenMetrics 1.0.", body = String, content_type = "application/openmetrics-text"), super::described::Problems))]
pub(super) async fn slice_metrics(State(app): State<Shared>, Reader(actor): Reader) -> Replied {
    let slices = counters_of_all(&app.store, &app.counters, &actor).await?;
    Ok(text(OPEN_METRICS, slice_metrics::text(&slices)))
}
