//! Counters of the last hour.

use super::Shared;
use super::answer::{Replied, json};
use super::described::Problems;
use super::extract::{Named, Parameters, natural};
use super::gateways::several as names;
use super::permit::Reader;
use super::slices::visible;
use crate::gateways::{self as known, BUSIEST_MAX, Span, SpanBins};
use crate::refusal::Refusal;
use crate::slices::Hop;
use axum::extract::State;
use serde::Deserialize;
use slicewise_api::{LinkHistory, SliceHistory};
use utoipa::IntoParams;

/// An hour, seconds.
const SECONDS_MAX: u64 = 3_600;
/// Slices of a link that are named by default.
const BUSIEST: u64 = 8;

/// How much time before now.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SpanParameters {
    /// Only bins that end after so many seconds before now.
    #[serde(default, deserialize_with = "natural")]
    #[param(maximum = 3600, default = 3600)]
    seconds: Option<u64>,
}

/// How much time before now, and how many slices.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LinkSpanParameters {
    /// Only bins that end after so many seconds before now.
    #[serde(default, deserialize_with = "natural")]
    #[param(maximum = 3600, default = 3600)]
    seconds: Option<u64>,
    /// How many slices of each direction are named.
    #[serde(default, deserialize_with = "natural")]
    #[param(maximum = 32, default = 8)]
    busiest: Option<u64>,
}

/// Of which slices, and how much time before now.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SeveralSpanParameters {
    /// Names with commas between them, at most 200.
    slices: String,
    /// Only bins that end after so many seconds before now.
    #[serde(default, deserialize_with = "natural")]
    #[param(maximum = 3600, default = 3600)]
    seconds: Option<u64>,
}

fn span(app: &Shared, seconds: Option<u64>) -> Result<Span, Refusal> {
    let now_ms = app.store.clock().now_ms();
    match seconds.unwrap_or(SECONDS_MAX) {
        seconds @ ..=SECONDS_MAX => Ok(Span { now_ms, seconds }),
        more => Err(Refusal::malformed(format!(
            "`seconds` is {more}: expected at most {SECONDS_MAX}"
        ))),
    }
}

/// Counters of a link in the last hour, and of those of its slices that sent most. They are in the memory of the controller that the gateway reports to.
#[utoipa::path(get, path = "/v1/links/{name}/counters/history", tag = "links", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), LinkSpanParameters),
    responses((status = 200, description = "Counters.", body = LinkHistory), Problems))]
pub(super) async fn link(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
    Parameters(asked): Parameters<LinkSpanParameters>,
) -> Replied {
    let span = span(&app, asked.seconds)?;
    let busiest = usize::try_from(asked.busiest.unwrap_or(BUSIEST)).unwrap_or(usize::MAX);
    if busiest > BUSIEST_MAX {
        return Err(Refusal::malformed(format!(
            "`busiest` is {busiest}: expected at most {BUSIEST_MAX}"
        )));
    }
    let mut connection = app.store.pool().acquire().await?;
    let bins = &app.counters.bins;
    let found = known::link_history(&mut connection, bins, &actor, span, (&name, busiest)).await?;
    json(&found.ok_or_else(|| Refusal::not_found("link", &name))?)
}

/// Counters of a slice in the last hour, since it was created. They are in the memory of the controller that the gateway reports to.
#[utoipa::path(get, path = "/v1/slices/{name}/counters/history", tag = "slices", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), SpanParameters),
    responses((status = 200, description = "Counters.", body = SliceHistory), Problems))]
pub(super) async fn slice(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
    Parameters(asked): Parameters<SpanParameters>,
) -> Replied {
    let span = span(&app, asked.seconds)?;
    let record = visible(&app, &actor, &name).await?;
    let mut connection = app.store.pool().acquire().await?;
    let hops = Hop::load(&mut connection, &name).await?;
    let mut bins = SpanBins::new(&app.counters.bins, span);
    let created = record.created_at_ms;
    json(&known::slice_history(
        &mut bins,
        &record.slice,
        created,
        &hops,
    ))
}

/// Counters of several slices in the last hour: of those that are on a screen. Names that do not exist are left out.
#[utoipa::path(get, path = "/v1/counters/history", tag = "slices", params(SeveralSpanParameters),
    responses((status = 200, description = "Counters.", body = Vec<SliceHistory>), Problems))]
pub(super) async fn several(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Parameters(asked): Parameters<SeveralSpanParameters>,
) -> Replied {
    let span = span(&app, asked.seconds)?;
    let names = names(&asked.slices)?;
    let mut connection = app.store.pool().acquire().await?;
    let bins = &app.counters.bins;
    let found = known::histories_of_several(&mut connection, bins, &actor, span, &names).await?;
    json(&found)
}
