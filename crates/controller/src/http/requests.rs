//! Slice requests in the format of P4-TINS.

use super::Shared;
use super::answer::{Replied, change};
use super::described::{IdempotencyKey, Problems};
use super::extract::{Asked, Parameters, body};
use super::permit::Changer;
use super::slices::apply_batch;
use crate::administration::hash;
use crate::refusal::Refusal;
use crate::slices;
use crate::sql::{Sql, Tx};
use axum::extract::State;
use serde::Deserialize;
use slicewise_api::{Batch, BatchAnswer, Change, Guarantee, Invalid, Match, Maximum, Slice, Terms};
use slicewise_formats::p4_tins::{self, DataPlane};
use slicewise_model::{BurstSpec, ClassMap, ClassSpec, Condition, MatchMode, RateSpec};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// Where the slices are.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RequestParameters {
    /// The link; not needed if there is one.
    #[serde(default)]
    link: Option<String>,
    /// The tenant; if not stated, that of the token, or `default`.
    #[serde(default)]
    tenant: Option<String>,
}

/// Requests of P4-TINS in the description of the API: one, or a list.
struct Requests;

impl PartialSchema for Requests {
    fn schema() -> RefOr<Schema> {
        let one = || ObjectBuilder::new().schema_type(Type::Object);
        let list = ArrayBuilder::new().items(one());
        OneOfBuilder::new().item(one()).item(list).into()
    }
}

impl ToSchema for Requests {}

/// Add or change slices by requests of P4-TINS: one, or a list, which is carried out whole or not at all. They are about the forward direction. A request with `name` replaces the slice of that name,
/// if there is one: its backward direction, weight, delay objective and treatment of flows are removed. A request without adds one, and the answer says how
/// it is called. Rates and bursts count as the link's slices do (`slices_count`); a burst is at least 1546 B. The body is limited to 1 MiB.
#[utoipa::path(post, path = "/v1/slice-requests", tag = "slices", params(RequestParameters, IdempotencyKey),
    request_body(content = Requests, description = "`name`, `minRate`, `maxRate`, `allowBurst`, `peakBurst`, `flows`; see docs/formats/p4-tins.md."),
    responses((status = 200, description = "All of them are admitted.", body = BatchAnswer), Problems))]
pub(super) async fn slice_requests(
    State(app): State<Shared>,
    Changer(actor): Changer,
    Parameters(parameters): Parameters<RequestParameters>,
    asked: Asked,
    request: axum::extract::Request,
) -> Replied {
    let (bytes, _room) = body(&app, request).await?;
    let tenant = parameters.tenant.unwrap_or_default();
    let path: Vec<String> = parameters.link.into_iter().collect();
    let (changes, unnamed) = read(&bytes, &tenant, &path)?;
    let line = format!("{}\n{tenant}\n{}", hash(&bytes), path.join(","));
    let request = asked.request(&actor, &line);
    change!(app, request, |tx| {
        let mut changes = changes;
        name_anew(tx, &mut changes, &unnamed).await?;
        let reason = Some("slice requests".to_owned());
        apply_batch(tx, &actor, Batch { changes, reason }).await
    })
}

/// Gives the slices of these names names that no slice has: a request that states none changes none.
async fn name_anew(
    tx: &mut Tx,
    changes: &mut [Change],
    unnamed: &BTreeSet<String>,
) -> Result<(), sqlx::Error> {
    let stated = changes.iter().map(|change| change.name().to_owned());
    let stated: BTreeSet<String> = stated.filter(|name| !unnamed.contains(name)).collect();
    let mut free = slices::free_names(tx.connection(), stated).await?;
    for change in changes {
        if let Change::Put(slice) = change
            && unnamed.contains(&slice.name)
        {
            slice.name = free.next().unwrap_or_default();
        }
    }
    Ok(())
}

/// The changes, and the names of those slices that state none.
fn read(
    bytes: &[u8],
    tenant: &str,
    path: &[String],
) -> Result<(Vec<Change>, BTreeSet<String>), Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|error| Refusal::malformed(error.to_string()))?;
    let requests = p4_tins::parse(text).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Refusal::malformed(texts.join("; "))
    })?;
    let policy = requests.policy(DataPlane::Baseline).spec;
    let classes = policy.classes.iter();
    let changes = classes.filter_map(|class| {
        let map = class.matches.as_ref()?;
        Some(slice(class, map, tenant, path).map(Change::Put))
    });
    let changes = changes.collect::<Result<_, _>>();
    let unnamed = requests.given_names().map(str::to_owned).collect();
    Ok((changes.map_err(Refusal::invalid)?, unnamed))
}

fn slice(
    class: &ClassSpec,
    map: &ClassMap,
    tenant: &str,
    path: &[String],
) -> Result<Slice, Invalid> {
    let matches = match map.mode {
        MatchMode::All => vec![match_of(&map.conditions)?],
        MatchMode::Any => map
            .conditions
            .iter()
            .map(|one| match_of(std::slice::from_ref(one)))
            .collect::<Result<_, _>>()?,
    };
    let forward = class.police.as_ref().map(|police| Terms {
        guarantee: Some(Guarantee {
            rate_bps: rate(police.cir),
            burst_bytes: burst(police.cbs),
            ..Guarantee::default()
        }),
        maximum: police.pir.map(|pir| Maximum {
            rate_bps: rate(pir),
            burst_bytes: burst(police.pbs),
        }),
        ..Terms::default()
    });
    Ok(Slice {
        name: class.name.clone(),
        tenant: tenant.to_owned(),
        path: path.to_vec(),
        matches,
        forward,
        ..Slice::default()
    })
}

fn rate(rate: RateSpec) -> u64 {
    match rate {
        RateSpec::Absolute(rate) => rate.bits_per_second(),
        // Requests state rates.
        RateSpec::PercentMilli(_) => 0,
    }
}

fn burst(burst: Option<BurstSpec>) -> u64 {
    match burst {
        Some(BurstSpec::Size(size)) => size.bytes(),
        // Requests state sizes.
        Some(BurstSpec::Time(_)) | None => 0,
    }
}

fn ports(range: &RangeInclusive<u16>) -> String {
    match (range.start(), range.end()) {
        (only, end) if only == end => only.to_string(),
        (start, end) => format!("{start}-{end}"),
    }
}

/// The match of conditions that must all hold.
fn match_of(conditions: &[Condition]) -> Result<Match, Invalid> {
    let mut found = Match::default();
    for condition in conditions {
        match condition {
            Condition::Source(prefix) => found.source = Some(prefix.to_string()),
            Condition::Destination(prefix) => found.destination = Some(prefix.to_string()),
            Condition::Protocol(number) => found.protocol = Some((*number).into()),
            Condition::SourcePort(range) => found.source_port = Some(ports(range)),
            Condition::DestinationPort(range) => found.destination_port = Some(ports(range)),
            Condition::GtpTeid(range) => found.teid = Some(*range.start()),
            Condition::AccessList(list) => match list.entries.as_slice() {
                [only] if only.permit => found = match_of(&only.conditions)?,
                _ => {
                    return Err(Invalid::new(
                        "",
                        "flows are no alternatives of header fields",
                    ));
                }
            },
            _ => {
                return Err(Invalid::new(
                    "",
                    "a flow has a field that slices do not have",
                ));
            }
        }
    }
    Ok(found)
}
