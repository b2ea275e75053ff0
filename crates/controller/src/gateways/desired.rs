//! Desired state of a gateway.

use super::instance::Instance;
use crate::refusal::Refusal;
use crate::slices::{Hop, Stored, gateway_slice};
use crate::sql::{Failed, RowExt, Sql, values};
use crate::store::{CHANGES_KEPT, Store};
use slicewise_api::{Desired, GatewayChange, GatewaySlice, SliceState};
use sqlx::AnyConnection;

/// Changes of one answer, about.
const CHANGES_MAX: i64 = 1_000;

/// Returns true if every change for a gateway after generation `after` is kept. `since`: the generation of its first
/// announcement.
pub(super) fn is_recent(after: u64, since: u64, generation: u64) -> bool {
    // A number from the future is one of another history.
    after > 0 && after >= since && after <= generation && generation - after < CHANGES_KEPT
}

/// Returns true if an answer has a change.
pub(crate) fn is_news(desired: &Desired, after: u64) -> bool {
    match &desired.snapshot {
        // There was no generation yet.
        Some(slices) => {
            desired.generation != after || !slices.is_empty() || !desired.draining.is_empty()
        }
        None => !desired.changes.is_empty(),
    }
}

/// Slices that a gateway is to purge. Nothing is stated of `acknowledged` itself, so that no index of it is used: it would find every slice
/// that drains.
const PURGED: &str = "SELECT slice FROM slice_hops WHERE gateway = $1 AND purge = 1 AND acknowledged + 0 = 0 ORDER BY slice";

/// Returns the changes for `gateway` after generation `after`, or everything.
///
/// # Errors
/// If the gateway is not known, is another process than the one that asks, or follows another store.
pub(crate) async fn desired(
    store: &Store,
    gateway: &str,
    instance: &Instance,
    after: u64,
) -> Result<Desired, Failed> {
    let mut transaction = store.read().await?;
    let connection = &mut *transaction;
    let select = "SELECT since, instance FROM gateways WHERE name = $1";
    let known = connection.row(select, values![gateway]).await?;
    let known = known.ok_or_else(|| Refusal::not_found("gateway", gateway))?;
    let select = "SELECT generation, store FROM state WHERE id = 1";
    let row = connection.one_row(select, []).await?;
    let (generation, own) = (row.natural("generation")?, row.text("store")?);
    instance.check(gateway, &known, &own)?;
    let seen = instance.check_history(&mut *connection, gateway, after);
    seen.await?;
    let found = match is_recent(after, known.natural("since")?, generation) {
        true => changes(connection, gateway, after, generation).await,
        false => snapshot(connection, gateway, generation).await,
    };
    let mut found = found?;
    if is_news(&found, after) {
        found.purge = purged(connection, gateway).await?;
    }
    found.store = Some(own);
    Ok(found)
}

async fn purged(connection: &mut AnyConnection, gateway: &str) -> Result<Vec<String>, sqlx::Error> {
    let rows = connection.rows(PURGED, values![gateway]).await?;
    rows.iter().map(|row| row.text("slice")).collect()
}

async fn changes(
    connection: &mut AnyConnection,
    gateway: &str,
    after: u64,
    generation: u64,
) -> Result<Desired, sqlx::Error> {
    // Whole generations: where a limit cuts one in two, up to the one before; one that is longer than the limit comes whole.
    let mut bounds = [None, None];
    for (bound, offset) in bounds.iter_mut().zip([CHANGES_MAX, 0]) {
        let select = "SELECT generation FROM gateway_changes WHERE gateway = $1 AND generation > $2 \
                      ORDER BY generation, position LIMIT 1 OFFSET $3";
        let values = values![gateway, after, offset];
        let row = connection.row(select, values).await?;
        *bound = row.map(|row| row.natural("generation")).transpose()?;
        if bound.is_none() {
            break;
        }
    }
    let until = match bounds {
        [Some(cut), Some(first)] => cut.saturating_sub(1).max(first),
        _ => generation,
    };
    let select = "SELECT slice, body FROM gateway_changes WHERE gateway = $1 AND generation > $2 AND generation <= $3 \
                  ORDER BY generation, position";
    let values = values![gateway, after, until];
    let rows = connection.rows(select, values).await?;
    let mut changes = Vec::with_capacity(rows.len());
    for row in &rows {
        let is_put = row.maybe_text("body")?.is_some();
        changes.push(match is_put {
            true => GatewayChange::Put(Box::new(row.json("body")?)),
            false => GatewayChange::Remove(row.text("slice")?),
        });
    }
    Ok(Desired {
        generation: until,
        changes,
        ..Desired::default()
    })
}

async fn snapshot(
    connection: &mut AnyConnection,
    gateway: &str,
    generation: u64,
) -> Result<Desired, sqlx::Error> {
    let select = "SELECT s.*, h.link AS hop_link, h.acknowledged AS hop_gone, h.delay_forward_ns, \
                  h.delay_backward_ns, t.weight AS tenant_weight FROM slice_hops h \
                  JOIN slices s ON s.name = h.slice JOIN tenants t ON t.name = s.tenant WHERE h.gateway = $1 ORDER BY h.slice";
    let (mut slices, mut draining): (Vec<GatewaySlice>, Vec<String>) = (Vec::new(), Vec::new());
    for row in connection.rows(select, values![gateway]).await? {
        let stored = Stored::of(&row)?;
        if stored.state == SliceState::Draining {
            if row.integer("hop_gone")? == 0 {
                draining.push(stored.slice.name);
            }
            continue;
        }
        let weight = u32::try_from(row.natural("tenant_weight")?).unwrap_or(1);
        let link = row.text("hop_link")?;
        slices.push(gateway_slice(
            &stored.slice,
            &link,
            Hop::delays(&row)?,
            stored.generation,
            weight,
        ));
    }
    Ok(Desired {
        generation,
        snapshot: Some(slices),
        draining,
        ..Desired::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};

    #[test]
    fn slices_to_purge_are_found_without_reading_others() {
        with_store(async |store| {
            insta::assert_snapshot!(plan(store, PURGED).await, @"SEARCH slice_hops USING INDEX slice_hops_to_purge (gateway=?)");
        });
    }
}
