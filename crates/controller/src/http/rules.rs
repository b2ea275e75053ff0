//! Rules of the operator.

use super::Shared;
use super::answer::{Replied, change, json};
use super::described::{IdempotencyKey, Problems};
use super::extract::{Asked, Json, Named};
use super::permit::{Operator, WholeReader};
use crate::refusal::Refusal;
use crate::rules as store;
use crate::sql::Answer;
use axum::extract::State;
use slicewise_api::{Rule, RuleRecord};

/// Every rule, and whether it lends now.
#[utoipa::path(get, path = "/v1/rules", tag = "rules", responses((status = 200, description = "Rules.", body = Vec<RuleRecord>), Problems))]
pub(super) async fn rules(State(app): State<Shared>, WholeReader(_): WholeReader) -> Replied {
    let mut transaction = app.store.read().await?;
    json(&store::list(&mut transaction).await?)
}

/// One rule.
#[utoipa::path(get, path = "/v1/rules/{name}", tag = "rules", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")),
    responses((status = 200, description = "The rule.", body = RuleRecord), Problems))]
pub(super) async fn rule(
    State(app): State<Shared>,
    WholeReader(_): WholeReader,
    Named(name): Named,
) -> Replied {
    let mut transaction = app.store.read().await?;
    let found = store::get(&mut transaction, &name).await?;
    json(&found.ok_or_else(|| Refusal::not_found("rule", &name))?)
}

/// Add a rule, or replace it: what it lends is taken back first. Refused with 409 if one of the slices does not exist or drains, `from` has no guarantee
/// in the direction, `to` does not exist in it, they share no link, or `to` borrows by another rule there. A rule ends when one of its slices is removed.
#[utoipa::path(put, path = "/v1/rules/{name}", tag = "rules", request_body = Rule, params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 200, description = "Changed.", body = RuleRecord), (status = 201, description = "Added.", body = RuleRecord), Problems))]
pub(super) async fn put_rule(
    State(app): State<Shared>,
    Operator(actor): Operator,
    Named(name): Named,
    asked: Asked,
    Json(rule, hash, ..): Json<Rule>,
) -> Replied {
    let request = asked.request(&actor, &hash);
    change!(app, request, |tx| {
        let (is_new, record) = store::put(tx, &name, rule).await?;
        Answer::json(if is_new { 201 } else { 200 }, &record)
    })
}

/// Remove a rule: what it lends is taken back.
#[utoipa::path(delete, path = "/v1/rules/{name}", tag = "rules", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 204, description = "Removed."), Problems))]
pub(super) async fn remove_rule(
    State(app): State<Shared>,
    Operator(actor): Operator,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        match store::remove(tx, &name, "the rule is removed").await? {
            true => Ok(Answer::empty()),
            false => Err(Refusal::not_found("rule", &name).into()),
        }
    })
}
