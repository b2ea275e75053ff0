//! Tenants, tokens, and the audit log.

use super::Shared;
use super::answer::{Replied, change, json};
use super::described::{IdempotencyKey, Problems};
use super::extract::{Asked, Json, Named, Parameters};
use super::permit::{Administrator, Reader};
use crate::administration as store;
use crate::refusal::Refusal;
use crate::sql::Answer;
use axum::extract::State;
use serde::Deserialize;
use slicewise_api::{AuditPage, NewToken, Tenant, TenantRecord, TokenCreated, TokenRecord};
use utoipa::IntoParams;

/// Every tenant, with its quota and what it uses.
#[utoipa::path(get, path = "/v1/tenants", tag = "administration", responses((status = 200, description = "Tenants.", body = Vec<TenantRecord>), Problems))]
pub(super) async fn tenants(State(app): State<Shared>, Reader(actor): Reader) -> Replied {
    let mut connection = app.store.pool().acquire().await?;
    json(&store::tenants(&mut connection, &actor).await?)
}

/// One tenant.
#[utoipa::path(get, path = "/v1/tenants/{name}", tag = "administration", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")),
    responses((status = 200, description = "The tenant.", body = TenantRecord), Problems))]
pub(super) async fn tenant(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
) -> Replied {
    let mut connection = app.store.pool().acquire().await?;
    let found = store::tenant(&mut connection, &actor, &name).await?;
    json(&found.ok_or_else(|| Refusal::not_found("tenant", &name))?)
}

/// Add a tenant, or replace it as a whole: what is not stated gets its default. Read it first, and send all of it. A quota below what is used refuses only what would use more.
#[utoipa::path(put, path = "/v1/tenants/{name}", tag = "administration", request_body = Tenant, params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 200, description = "Changed.", body = TenantRecord), (status = 201, description = "Added.", body = TenantRecord), Problems))]
pub(super) async fn put_tenant(
    State(app): State<Shared>,
    Administrator(actor): Administrator,
    Named(name): Named,
    asked: Asked,
    Json(tenant, hash, ..): Json<Tenant>,
) -> Replied {
    let request = asked.request(&actor, &hash);
    change!(app, request, |tx| {
        let (is_new, record) = store::put_tenant(tx, &actor.name, &name, &tenant).await?;
        Answer::json(if is_new { 201 } else { 200 }, &record)
    })
}

/// Remove a tenant that has no slices and no tokens.
#[utoipa::path(delete, path = "/v1/tenants/{name}", tag = "administration", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 204, description = "Removed."), Problems))]
pub(super) async fn remove_tenant(
    State(app): State<Shared>,
    Administrator(actor): Administrator,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        store::remove_tenant(tx, &name).await?;
        Ok(Answer::empty())
    })
}

/// Every token, without its secret.
#[utoipa::path(get, path = "/v1/tokens", tag = "administration", responses((status = 200, description = "Tokens.", body = Vec<TokenRecord>), Problems))]
pub(super) async fn tokens(State(app): State<Shared>, Administrator(_): Administrator) -> Replied {
    let mut connection = app.store.pool().acquire().await?;
    json(&store::tokens(&mut connection).await?)
}

/// Make a token. It is shown this one time; the store keeps a hash of it. From the first token on, every request under `/v1` and `/metrics` needs one:
/// make one with scope `admin` first. A request with an `Idempotency-Key` is refused.
#[utoipa::path(post, path = "/v1/tokens", tag = "administration", request_body = NewToken,
    responses((status = 201, description = "The token.", body = TokenCreated), Problems))]
pub(super) async fn add_token(
    State(app): State<Shared>,
    Administrator(actor): Administrator,
    asked: Asked,
    Json(new, ..): Json<NewToken>,
) -> Replied {
    // The answer to a key would keep the token itself.
    let request = asked.without_key(&actor)?;
    change!(app, request, |tx| {
        let created = store::add_token(tx, &actor.name, &new).await?;
        Answer::json(201, &created)
    })
}

/// Revoke a token.
#[utoipa::path(delete, path = "/v1/tokens/{name}", tag = "administration", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 204, description = "Revoked."), Problems))]
pub(super) async fn remove_token(
    State(app): State<Shared>,
    Administrator(actor): Administrator,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        store::remove_token(tx, &name).await?;
        Ok(Answer::empty())
    })
}

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditParameters {
    /// Those after this number.
    #[serde(default, deserialize_with = "super::extract::natural")]
    after: Option<u64>,
}

/// The audit log, oldest first: who asked for which change, and the answer.
#[utoipa::path(get, path = "/v1/audit", tag = "administration", params(AuditParameters),
    responses((status = 200, description = "Entries.", body = AuditPage), Problems))]
pub(super) async fn audit(
    State(app): State<Shared>,
    Administrator(_): Administrator,
    Parameters(asked): Parameters<AuditParameters>,
) -> Replied {
    let mut connection = app.store.pool().acquire().await?;
    json(&store::audit(&mut connection, asked.after.unwrap_or(0)).await?)
}
