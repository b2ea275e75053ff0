//! Offers: what would be accepted. Nothing is changed.

use super::apply::{
    check_change, check_gateways, check_quota, overlapping, resolve_path, settle, tenant_of,
};
use super::capacity::{Capacity, bounds};
use super::delay_choice::requests;
use super::overlap::CANDIDATES_MAX;
use super::stored::{Hop, Stored, TenantState, guaranteed};
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::sql::Failed;
use slicewise_api::{OfferAnswer, Slice};
use sqlx::AnyConnection;

/// Tells whether `slice` would be accepted in place of the slice that has its name now, and what would be.
///
/// # Errors
/// If the slice is not valid, or the store fails.
pub(crate) async fn offer(
    connection: &mut AnyConnection,
    actor: &Actor,
    mut slice: Slice,
) -> Result<OfferAnswer, Failed> {
    slice.check().map_err(Refusal::invalid)?;
    match considered(connection, actor, &mut slice).await {
        Ok(offer) => Ok(offer),
        // What would be answered with 409 is the answer here.
        Err(Failed::Refused(refusal)) if refusal.problem.status == 409 => Ok(OfferAnswer {
            reason: Some(refusal.problem.detail),
            ..OfferAnswer::default()
        }),
        Err(failed) => Err(failed),
    }
}

async fn considered(
    connection: &mut AnyConnection,
    actor: &Actor,
    slice: &mut Slice,
) -> Result<OfferAnswer, Failed> {
    let before = Stored::load(&mut *connection, &slice.name).await?;
    settle(slice, actor, before.as_ref(), "ask for")?;
    resolve_path(&mut *connection, slice).await?;
    if let Some(before) = &before {
        check_change(before, slice)?;
    }
    let mut tenant = tenant_of(&mut *connection, slice).await?;
    let links = slice.path.iter().cloned().collect();
    let mut capacity = Capacity::load(&mut *connection, &links).await?;
    if let Some(before) = &before {
        let hops = Hop::load(&mut *connection, &slice.name).await?;
        capacity.release(&before.slice, &hops)?;
        tenant.subtract(&before.slice)?;
    }
    check_gateways(&capacity, slice, before.as_ref())?;
    let stored = before.as_ref().map(|before| &before.slice);
    let mut requests = requests(slice).into_iter();
    let mut offer = match requests.find_map(|(way, request)| Some((way, request?))) {
        Some((way, request)) => {
            let mut offer = capacity.alternatives(slice, way, &request);
            let others = guaranteed(slice).saturating_sub(request.rate.bits_per_second());
            let most = left_by_quota(&tenant, stored).map(|left| left.saturating_sub(others));
            let largest = offer.largest_rate_bps;
            let largest = largest.map(|rate| most.map_or(rate, |most| rate.min(most)));
            offer.largest_rate_bps = largest.filter(|&rate| rate > 0);
            offer
        }
        None => OfferAnswer::default(),
    };
    tenant.add(slice);
    // In the order in which a change is tested.
    if let Err(refusal) = check_quota(&tenant, stored, slice) {
        let is_rate = tenant.most_slices.is_none_or(|most| tenant.slices <= most);
        return Ok(OfferAnswer {
            reason: Some(refusal.problem.detail),
            largest_rate_bps: offer.largest_rate_bps.filter(|_| is_rate),
            ..OfferAnswer::default()
        });
    }
    // No number would change that packets belong to another slice.
    let mut candidates = CANDIDATES_MAX;
    if let Some(refusal) = overlapping(&mut *connection, actor, slice, &mut candidates).await? {
        return Err(refusal.into());
    }
    match capacity.try_admit(&[slice]) {
        Err((_, refused)) => return Ok(*refused),
        Ok(delays) => {
            let delays = delays.concat();
            offer.bound_ns = Some(bounds(&delays));
            offer.delay_choice = Some(capacity.delay_choices(slice, &delays));
        }
    }
    offer.accepted = true;
    Ok(offer)
}

/// Returns the rate that the quota of `tenant` leaves for a slice that is now `before` and not counted, bit/s; the rate
/// that it has already is never refused.
fn left_by_quota(tenant: &TenantState, before: Option<&Slice>) -> Option<u64> {
    let left = tenant.most_rate_bps?.saturating_sub(tenant.rate_bps);
    Some(left.max(before.map_or(0, guaranteed)))
}
