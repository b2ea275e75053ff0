//! Offers: what would be accepted. Nothing is changed.

use super::apply::{
    check_change, check_classes, check_quota, overlapping, resolve_path, tenant_of,
};
use super::capacity::{Capacity, requests};
use super::stored::{Hop, Stored};
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::store::Failed;
use slicewise_api::{OfferAnswer, Slice};
use sqlx::AnyConnection;

/// Whether `slice` would be accepted in place of what has its name now, and what would be.
///
/// # Errors
/// If the slice is not valid, or the store fails.
pub(crate) async fn offer(
    connection: &mut AnyConnection,
    actor: &Actor,
    mut slice: Slice,
) -> Result<OfferAnswer, Failed> {
    slice.check().map_err(Refusal::invalid)?;
    if actor.tenant().is_some_and(|own| own != slice.tenant) {
        let detail = format!("`{}` may ask for slices of its own tenant only", actor.name);
        return Err(Refusal::forbidden(detail).into());
    }
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
    resolve_path(&mut *connection, slice).await?;
    let before = Stored::load(&mut *connection, &slice.name).await?;
    if let Some(before) = &before {
        if actor.tenant().is_some_and(|own| own != before.slice.tenant) {
            let detail = format!("the name `{}` is taken: choose another one", slice.name);
            return Err(Refusal::conflict(detail).into());
        }
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
    check_classes(&capacity, slice)?;
    let requests = requests(slice);
    let asked = requests.iter().position(Option::is_some);
    let mut offer = match (asked, asked.and_then(|index| requests[index])) {
        (Some(index), Some(request)) => capacity.alternatives(slice, index, &request),
        _ => OfferAnswer::default(),
    };
    match capacity.try_admit(slice) {
        Err(refused) => return Ok(*refused),
        Ok(classes) => offer.bound_ns = Some(capacity.bounds(slice, &classes)),
    }
    tenant.add(slice);
    let stored = before.as_ref().map(|before| &before.slice);
    let refused = match check_quota(&tenant, stored, slice) {
        Err(refusal) => Some(refusal),
        Ok(()) => overlapping(connection, actor, slice).await?,
    };
    match refused {
        None => offer.accepted = true,
        Some(refusal) => {
            offer.bound_ns = None;
            offer.reason = Some(refusal.problem.detail);
        }
    }
    Ok(offer)
}
