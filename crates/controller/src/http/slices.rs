//! Slices, batches, offers and history.

use super::Shared;
use super::answer::{Replied, change, json, set_etag};
use super::described::{IdempotencyKey, Problems};
use super::extract::{Asked, Json, Named, Numbered, Parameters};
use super::permit::{Changer, Operator, Reader};
use crate::actor::Actor;
use crate::history;
use crate::refusal::Refusal;
use crate::rules;
use crate::slices::{self, PAGE_MAX};
use crate::sql::{Answer, Failed, Sql, Tx};
use crate::store::carry_out;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use slicewise_api::{
    Batch, BatchAnswer, Change, GenerationPage, GenerationRecord, OfferAnswer, Slice, SlicePage,
    SliceQuery, SliceRecord,
};
use utoipa::IntoParams;

/// Slices of a part of a list, if not stated.
const PAGE: u32 = 100;

/// A part of a list of slices, in the order of their names.
#[utoipa::path(get, path = "/v1/slices", tag = "slices", params(SliceQuery),
    responses((status = 200, description = "Slices.", body = SlicePage), Problems))]
pub(super) async fn list(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Parameters(query): Parameters<SliceQuery>,
) -> Replied {
    let limit = page(query.limit, PAGE, PAGE_MAX)?;
    let texts = [
        &query.after,
        &query.tenant,
        &query.link,
        &query.name_contains,
    ];
    // PostgreSQL has no text with it.
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(Refusal::malformed("a parameter has a NUL character"));
    }
    let own = actor.tenant().map(str::to_owned);
    if own.is_some() && query.tenant.is_some() && own != query.tenant {
        return json(&SlicePage {
            items: Vec::new(),
            next: None,
            total: query.count.then_some(0),
        });
    }
    let query = SliceQuery {
        tenant: own.or(query.tenant),
        ..query
    };
    let mut connection = app.store.pool().acquire().await?;
    json(&slices::list(&mut connection, &query, limit).await?)
}

/// The size of a part.
pub(super) fn page(asked: Option<u32>, default: u32, most: u32) -> Result<u32, Refusal> {
    match asked {
        None => Ok(default),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(Refusal::malformed(format!(
            "`limit` is {limit}: expected 1 to {most}"
        ))),
    }
}

/// One slice.
#[utoipa::path(get, path = "/v1/slices/{name}", tag = "slices", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")),
    responses((status = 200, description = "The slice.", body = SliceRecord, headers(("ETag" = String))), Problems))]
pub(super) async fn read(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
) -> Replied {
    let record = visible(&app, &actor, &name).await?;
    let mut response = json(&record)?;
    set_etag(&mut response, record.version);
    Ok(response)
}

/// The slice, if the actor may see it.
pub(super) async fn visible(
    app: &Shared,
    actor: &Actor,
    name: &str,
) -> Result<SliceRecord, Refusal> {
    let mut transaction = app.store.read().await?;
    let record = slices::record(&mut transaction, name).await?;
    let record = record.filter(|record| actor.sees(record));
    record.ok_or_else(|| Refusal::not_found("slice", name))
}

/// Add a slice, or replace it as a whole: what is not stated gets its default. Read it first, and send all of it. Refused with 409 and an offer if its
/// guarantee cannot be kept.
#[utoipa::path(put, path = "/v1/slices/{name}", tag = "slices", request_body = Slice,
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), ("If-Match" = Option<String>, Header, pattern = r#"^(\*|(W/)?"[^"]*"( *, *(W/)?"[^"]*")*)$"#, description = "Only if the slice has this version."),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "`*`: only if the slice does not exist."),
        IdempotencyKey),
    responses((status = 200, description = "Changed, or as it was.", body = SliceRecord, headers(("ETag" = String))),
        (status = 201, description = "Added.", body = SliceRecord, headers(("ETag" = String), ("Location" = String))), Problems))]
pub(super) async fn put(
    State(app): State<Shared>,
    Changer(actor): Changer,
    Named(name): Named,
    asked: Asked,
    Json(slice, hash, ..): Json<Slice>,
) -> Replied {
    if slice.name != name {
        let detail = format!(
            "the slice is named {:?} in the body and {name:?} in the path",
            slice.name
        );
        return Err(Refusal::invalid_at("/name", detail));
    }
    let request = asked.request(&actor, &hash);
    let location = format!("/v1/slices/{name}");
    let answer = carry_out!(app.store, request, |tx| {
        let changes = vec![Change::Put(slice)];
        let applied = slices::apply(tx, &actor, changes, None, Some(&asked.guard)).await?;
        let status = if applied.created.is_empty() { 200 } else { 201 };
        one(tx, &name, status).await
    })?;
    let mut response = answer.into_response();
    if response.status() == StatusCode::CREATED
        && let Ok(location) = HeaderValue::from_str(&location)
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn one(tx: &mut Tx, name: &str, status: u16) -> Result<Answer, Failed> {
    let record = slices::record(tx.connection(), name).await?;
    let record = record.ok_or(sqlx::Error::RowNotFound)?;
    let mut answer = Answer::json(status, &record)?;
    answer.version = Some(record.version);
    Ok(answer)
}

/// Remove a slice. It drains: its capacity stays promised until its gateways have sent its last frames.
#[utoipa::path(delete, path = "/v1/slices/{name}", tag = "slices",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), ("If-Match" = Option<String>, Header, pattern = r#"^(\*|(W/)?"[^"]*"( *, *(W/)?"[^"]*")*)$"#, description = "Only if the slice has this version."),
        IdempotencyKey),
    responses((status = 202, description = "It drains.", body = SliceRecord, headers(("ETag" = String))), Problems))]
pub(super) async fn remove(
    State(app): State<Shared>,
    Changer(actor): Changer,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        let changes = vec![Change::Remove(name.clone())];
        let applied = slices::apply(tx, &actor, changes, None, Some(&asked.guard)).await?;
        rules::end_with(tx, &applied.removed).await?;
        one(tx, &name, 202).await
    })
}

/// End a slice that drains: its gateways drop the frames of it that wait, count them as dropped (`slice_removed`), and its name, packets and
/// capacity are free once they have said so. Refused with 409 if it was not removed before.
#[utoipa::path(post, path = "/v1/slices/{name}/purge", tag = "slices",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), ("If-Match" = Option<String>, Header, pattern = r#"^(\*|(W/)?"[^"]*"( *, *(W/)?"[^"]*")*)$"#, description = "Only if the slice has this version."),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^[ -~]{1,255}$", description = "The same request with the same key is carried out once.")),
    responses((status = 202, description = "Its gateways are told.", body = SliceRecord), Problems))]
pub(super) async fn purge(
    State(app): State<Shared>,
    Operator(actor): Operator,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        slices::purge(tx, &actor, &name, &asked.guard).await?;
        one(tx, &name, 202).await
    })
}

/// Carry out several changes, all or none.
#[utoipa::path(post, path = "/v1/batches", tag = "slices", request_body = Batch,
    params(IdempotencyKey),
    responses((status = 200, description = "All of them are admitted.", body = BatchAnswer), Problems))]
pub(super) async fn batch(
    State(app): State<Shared>,
    Changer(actor): Changer,
    asked: Asked,
    Json(batch, hash, ..): Json<Batch>,
) -> Replied {
    let request = asked.request(&actor, &hash);
    change!(app, request, |tx| { apply_batch(tx, &actor, batch).await })
}

/// Carries out a batch, and answers with its slices.
pub(super) async fn apply_batch(
    tx: &mut Tx,
    actor: &Actor,
    batch: Batch,
) -> Result<Answer, Failed> {
    let names = batch.changes.iter().map(|change| change.name().to_owned());
    let names: Vec<String> = names.collect();
    let reason = batch.reason.as_deref();
    let applied = slices::apply(tx, actor, batch.changes, reason, None).await?;
    rules::end_with(tx, &applied.removed).await?;
    batch_answer(tx, applied.generation, applied.changed, &names).await
}

async fn batch_answer(
    tx: &mut Tx,
    generation: u64,
    changed: u64,
    names: &[String],
) -> Result<Answer, Failed> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slices = slices::records(tx.connection(), &names).await?;
    Answer::json(
        200,
        &BatchAnswer {
            generation,
            changed,
            slices,
        },
    )
}

/// Tells whether a slice would be accepted, and what would be. Nothing is changed.
#[utoipa::path(post, path = "/v1/offers", tag = "slices", request_body = Slice,
    responses((status = 200, description = "Whether it would be accepted, and what would be.", body = OfferAnswer), Problems))]
pub(super) async fn offer(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Json(slice, ..): Json<Slice>,
) -> Replied {
    let mut transaction = app.store.read().await?;
    let offer = slices::offer(&mut transaction, &actor, slice).await?;
    json(&offer)
}

/// Which generations are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GenerationParameters {
    /// Those before this number: `next` of the part before.
    #[serde(default, deserialize_with = "super::extract::natural")]
    before: Option<u64>,
    /// At most this many.
    #[serde(default)]
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
}

/// The history, newest first.
#[utoipa::path(get, path = "/v1/generations", tag = "history", params(GenerationParameters),
    responses((status = 200, description = "Generations.", body = GenerationPage), Problems))]
pub(super) async fn generations(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Parameters(asked): Parameters<GenerationParameters>,
) -> Replied {
    let limit = page(asked.limit, 20, history::PAGE_MAX)?;
    let mut transaction = app.store.read().await?;
    json(&history::list(&mut transaction, &actor, asked.before, limit).await?)
}

/// One generation.
#[utoipa::path(get, path = "/v1/generations/{generation}", tag = "history", params(("generation" = u64, Path)),
    responses((status = 200, description = "The generation.", body = GenerationRecord), Problems))]
pub(super) async fn generation(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Numbered(number): Numbered,
) -> Replied {
    let mut transaction = app.store.read().await?;
    let found = history::get(&mut transaction, &actor, number).await?;
    json(&found.ok_or_else(|| Refusal::not_found("generation", &number.to_string()))?)
}

/// Return to the slices of a generation, as one batch of any size; 0 is before the first. Refused with 409 while a slice that is to come back still
/// drains. Weights of tenants and quotas stay as they are, and so do rules, except those of slices that are removed.
#[utoipa::path(post, path = "/v1/generations/{generation}/restore", tag = "history", params(("generation" = u64, Path),
        ("If-Match" = Option<String>, Header, description = "Only if this is the newest generation: nothing that others have changed since is undone."),
        IdempotencyKey),
    responses((status = 200, description = "All changes are admitted.", body = BatchAnswer), Problems))]
pub(super) async fn restore(
    State(app): State<Shared>,
    Operator(actor): Operator,
    Numbered(number): Numbered,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        let applied = history::restore(tx, &actor, number, &asked.guard).await?;
        let names = match applied.changed {
            0 => Vec::new(),
            _ => history::names(tx.connection(), applied.generation, PAGE_MAX).await?,
        };
        batch_answer(tx, applied.generation, applied.changed, &names).await
    })
}
