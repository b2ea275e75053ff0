//! Links, counters, and what gateways ask and say.

use super::Shared;
use super::answer::{Replied, change, json};
use super::described::{GatewayHeaders, IdempotencyKey, Problems};
use super::extract::{Asked, Json, Named, Parameters};
use super::guard::Proof;
use super::permit::{Gateway, Operator, Reader, WholeReader};
use super::slices::visible;
use crate::gateways::{self as known, CONNECTED, Instance};
use crate::log;
use crate::refusal::Refusal;
use crate::rules;
use crate::slices::Hop;
use crate::sql::Answer;
use crate::store::{Request, carry_out};
use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use slicewise_api::{
    Acknowledgement, Announced, CounterAnswer, CounterReport, Desired, GatewayAnnouncement,
    GatewayRecord, LinkCountersRecord, LinkRecord, SliceCountersRecord, check_name,
};
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;

/// The longest wait of a long poll.
const WAIT_MAX_MS: u64 = 60_000;
/// While a gateway waits, it is noted this often that it is there.
const TOUCH: Duration = Duration::from_secs(CONNECTED.as_secs() / 3);

/// Every link.
#[utoipa::path(get, path = "/v1/links", tag = "links", responses((status = 200, description = "Links.", body = Vec<LinkRecord>), Problems))]
pub(super) async fn links(State(app): State<Shared>, Reader(_): Reader) -> Replied {
    let mut transaction = app.store.read().await?;
    json(&known::links(&mut transaction).await?)
}

/// One link: what is promised and what is left.
#[utoipa::path(get, path = "/v1/links/{name}", tag = "links", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")),
    responses((status = 200, description = "The link.", body = LinkRecord), Problems))]
pub(super) async fn link(
    State(app): State<Shared>,
    Reader(_): Reader,
    Named(name): Named,
) -> Replied {
    let mut transaction = app.store.read().await?;
    let found = known::link(&mut transaction, &name).await?;
    json(&found.ok_or_else(|| Refusal::not_found("link", &name))?)
}

/// The newest counters of a link and its slices.
#[utoipa::path(get, path = "/v1/links/{name}/counters", tag = "links", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")),
    responses((status = 200, description = "Counters.", body = LinkCountersRecord), Problems))]
pub(super) async fn link_counters(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
) -> Replied {
    let found = known::link_counters(&app.store, &app.counters, &actor, &name).await?;
    json(&found.ok_or_else(|| Refusal::not_found("link", &name))?)
}

/// Options for a slice's counters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CounterParameters {
    /// Also its flows. The first time they come with the next report of the gateway, about a second later.
    #[serde(default)]
    #[param(default = false)]
    flows: Option<bool>,
}

/// The newest counters of a slice, at each gateway of its path. A gateway reports only slices with traffic, or whose traffic has just ended: a slice or
/// direction that is absent from its newest report sent and dropped nothing, and no frame of it waits.
#[utoipa::path(get, path = "/v1/slices/{name}/counters", tag = "slices", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), CounterParameters),
    responses((status = 200, description = "Counters.", body = SliceCountersRecord), Problems))]
pub(super) async fn slice_counters(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Named(name): Named,
    Parameters(asked): Parameters<CounterParameters>,
) -> Replied {
    visible(&app, &actor, &name).await?;
    let flows = asked.flows.unwrap_or(false);
    let mut connection = app.store.pool().acquire().await?;
    let hops = Hop::load(&mut connection, &name).await?;
    drop(connection);
    if flows
        && app
            .counters
            .want_flows(&name, &hops, app.store.clock().elapsed())
    {
        let slice = name.clone();
        carry_out!(app.store, Request::unlogged(&actor), |tx| {
            known::tell_interest(tx, &slice).await?;
            Ok(Answer::empty())
        })?;
    }
    json(&known::slice_counters(&app.store, &app.counters, &name, &hops, flows).await?)
}

/// Slices whose counters are read together, at most.
const SLICES_MAX: usize = 200;

/// Of which slices.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SeveralParameters {
    /// Names with commas between them, at most 200.
    slices: String,
}

/// The newest counters of several slices: of those that are on a screen. Names that do not exist are left out. A gateway reports only slices with
/// traffic, or whose traffic has just ended: a slice or direction that is absent from its newest report sent and dropped nothing, and no frame of it waits.
#[utoipa::path(get, path = "/v1/counters", tag = "slices", params(SeveralParameters),
    responses((status = 200, description = "Counters.", body = Vec<SliceCountersRecord>), Problems))]
pub(super) async fn several_counters(
    State(app): State<Shared>,
    Reader(actor): Reader,
    Parameters(asked): Parameters<SeveralParameters>,
) -> Replied {
    let names = several(&asked.slices)?;
    json(&known::counters_of_several(&app.store, &app.counters, &actor, &names).await?)
}

/// Returns the names with commas between them that are valid.
pub(super) fn several(slices: &str) -> Result<Vec<&str>, Refusal> {
    let names = slices.split(',');
    let names: Vec<&str> = names.filter(|name| check_name(name, "").is_ok()).collect();
    if names.len() > SLICES_MAX {
        let count = names.len();
        return Err(Refusal::malformed(format!(
            "`slices` has {count} names: expected at most {SLICES_MAX}"
        )));
    }
    Ok(names)
}

/// Every gateway.
#[utoipa::path(get, path = "/v1/gateways", tag = "gateways", responses((status = 200, description = "Gateways.", body = Vec<GatewayRecord>), Problems))]
pub(super) async fn gateways(State(app): State<Shared>, WholeReader(_): WholeReader) -> Replied {
    let mut transaction = app.store.read().await?;
    json(&known::gateways(&mut transaction).await?)
}

/// A gateway announces its links. Refused with 409: links that do not hold what is promised of them, a left-out link that slices pass, a link of another
/// gateway, a class with the name of a slice, another process of this name while one is connected (`Gateway-Instance`), and a gateway that follows another
/// store (`Gateway-Store`).
#[utoipa::path(put, path = "/v1/gateways/{name}", tag = "gateways", request_body = GatewayAnnouncement, params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), GatewayHeaders, IdempotencyKey),
    responses((status = 200, description = "Noted.", body = Announced), Problems))]
pub(super) async fn announce(
    State(app): State<Shared>,
    Gateway { actor, name }: Gateway,
    instance: Instance,
    asked: Asked,
    Json(announcement, hash, ..): Json<GatewayAnnouncement>,
) -> Replied {
    check_name(&name, "").map_err(Refusal::invalid)?;
    let request = asked.request(&actor, &hash);
    let refused = (name.clone(), instance.clone(), announcement.clone());
    let done = carry_out!(app.store, request, |tx| {
        let announced = known::announce(tx, &name, &instance, &announcement).await?;
        Answer::json(200, &announced)
    });
    if let Err(refusal) = &done
        && refusal.problem.status == 409
    {
        let ((name, instance, announcement), problem) = (refused, refusal.problem.clone());
        // What is refused is announced again, and noted then.
        let _ = carry_out!(app.store, Request::unlogged(&actor), |tx| {
            known::note_refused(tx, &name, &instance, &announcement, &problem).await?;
            Ok(Answer::empty())
        });
    }
    Ok(done?.into_response())
}

/// Forget a gateway that does not come back, with its links. Its slices must have been removed before; those that drain count as gone:
/// whoever asks for this vouches that the gateway forwards no more. One that is connected is refused with 409.
#[utoipa::path(delete, path = "/v1/gateways/{name}", tag = "gateways", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), IdempotencyKey),
    responses((status = 204, description = "Forgotten."), Problems))]
pub(super) async fn forget(
    State(app): State<Shared>,
    Operator(actor): Operator,
    Named(name): Named,
    asked: Asked,
) -> Replied {
    let request = asked.request(&actor, "");
    change!(app, request, |tx| {
        known::forget_gateway(tx, &name).await?;
        Ok(Answer::empty())
    })
}

/// From where, and for how long.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DesiredParameters {
    /// The generation that the gateway has reached; 0 for none.
    #[serde(default, deserialize_with = "super::extract::natural")]
    after: Option<u64>,
    /// If nothing changed, wait for a change this long, milliseconds.
    #[serde(default)]
    #[param(maximum = 60000, default = 0)]
    wait_ms: Option<u64>,
}

/// Returns the desired state of a gateway: everything (`snapshot`), or the changes after a generation.
///
/// With `wait_ms` it waits that long for a change; by default it answers at once.
#[utoipa::path(get, path = "/v1/gateways/{name}/desired", tag = "gateways", params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), GatewayHeaders, DesiredParameters),
    responses((status = 200, description = "What to carry out.", body = Desired), Problems))]
pub(super) async fn desired(
    State(app): State<Shared>,
    Gateway { name, .. }: Gateway,
    Extension(proof): Extension<Proof>,
    instance: Instance,
    Parameters(asked): Parameters<DesiredParameters>,
) -> Replied {
    let after = asked.after.unwrap_or(0);
    let wait = asked.wait_ms.unwrap_or(0);
    if wait > WAIT_MAX_MS {
        return Err(Refusal::malformed(format!(
            "`wait_ms` is {wait}: expected at most {WAIT_MAX_MS}"
        )));
    }
    let _place = app.limits.polls.try_take(&name, 1)?;
    let deadline = Instant::now() + Duration::from_millis(wait);
    let mut watch = app.store.watch();
    let mut touched: Option<Instant> = None;
    loop {
        watch.borrow_and_update();
        let found = known::desired(&app.store, &name, &instance, after).await;
        let found = found?;
        // Nothing that was committed after the token was revoked is told.
        still_good(&app, &proof).await?;
        if known::is_news(&found, after) || Instant::now() >= deadline {
            return json(&found);
        }
        if touched.is_none_or(|at| at.elapsed() >= TOUCH) {
            touch(&app, &name);
            touched = Some(Instant::now());
        }
        let until = deadline.min(Instant::now() + TOUCH);
        // A generation that does not concern this gateway wakes it here, too: it looks again and waits on.
        let _ = tokio::time::timeout_at(until, watch.changed()).await;
    }
}

async fn still_good(app: &Shared, proof: &Proof) -> Result<(), Refusal> {
    let mut connection = app.store.pool().acquire().await?;
    match proof.is_good(&mut connection).await? {
        true => Ok(()),
        false => Err(Refusal::unauthorized(
            "this token was revoked while the gateway waited",
        )),
    }
}

/// Note that the gateway is there; nobody waits for that.
fn touch(app: &Shared, gateway: &str) {
    let (app, gateway) = (app.clone(), gateway.to_owned());
    tokio::spawn(async move {
        // It is noted again in a few seconds.
        let _ = carry_out!(app.store, Request::default(), |tx| {
            known::touch(tx, &gateway).await?;
            Ok(Answer::empty())
        });
    });
}

/// A gateway says what it has in force, what it refused, and which slices are gone.
#[utoipa::path(post, path = "/v1/gateways/{name}/acknowledgements", tag = "gateways", request_body = Acknowledgement, params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), GatewayHeaders),
    responses((status = 204, description = "Noted."), Problems))]
pub(super) async fn acknowledge(
    State(app): State<Shared>,
    Gateway { actor, name }: Gateway,
    instance: Instance,
    Json(said, ..): Json<Acknowledgement>,
) -> Replied {
    change!(app, Request::unlogged(&actor), |tx| {
        known::acknowledge(tx, &name, &instance, &said).await?;
        Ok(Answer::empty())
    })
}

/// A gateway reports what it counted since its last report.
#[utoipa::path(post, path = "/v1/gateways/{name}/counters", tag = "gateways", request_body = CounterReport, params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,62}$"), GatewayHeaders),
    responses((status = 200, description = "Noted.", body = CounterAnswer), Problems))]
pub(super) async fn report_counters(
    State(app): State<Shared>,
    Gateway { actor, name }: Gateway,
    instance: Instance,
    Json(report, ..): Json<CounterReport>,
) -> Replied {
    let body =
        serde_json::to_string(&report).map_err(|error| Refusal::malformed(error.to_string()))?;
    if body.contains("\\u0000") {
        return Err(Refusal::malformed("a text has a NUL character"));
    }
    let events = report.events.clone();
    let (gateway, shared) = (name.clone(), Shared::clone(&app));
    let now = app.store.clock().elapsed();
    let request = Request::unlogged(&actor);
    let answer = carry_out!(app.store, request, |tx| {
        known::require(tx, &gateway, &instance).await?;
        let answer =
            known::save_counters(tx, (&shared.counters, now), &gateway, body, &events).await?;
        known::touch(tx, &gateway).await?;
        Answer::json(200, &answer)
    })?;
    follow_rules(&app, &name, &report).await;
    let now_ms = app.store.clock().now_ms();
    if app.counters.keep(now, now_ms, &name, report) {
        let mut connection = app.store.pool().acquire().await?;
        let bins = &app.counters.bins;
        let rates = known::link_rates(&mut connection, bins, &name).await?;
        bins.set_rates(&name, rates);
    }
    Ok(answer.into_response())
}

/// Carry out what rules make of a report. The report is noted whatever becomes of that: the next one decides anew.
async fn follow_rules(app: &Shared, gateway: &str, report: &CounterReport) {
    let decisions = async {
        let mut connection = app.store.pool().acquire().await?;
        app.idle.decide(&mut connection, gateway, report).await
    };
    let decisions = match decisions.await {
        Ok(decisions) => decisions,
        Err(error) => {
            log::warn("rules_not_read", &[("reason", &error)]);
            return;
        }
    };
    for decision in decisions {
        if let Err(refusal) = carry_out!(app.store, Request::default(), |tx| {
            rules::carry_out(tx, &decision).await?;
            Ok(Answer::empty())
        }) {
            let reason = &refusal.problem.detail;
            log::warn("rule_refused", &[("gateway", &gateway), ("reason", reason)]);
        }
    }
}
