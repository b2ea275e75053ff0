//! A gateway says what it has in force, what it refused, and what is gone.

use crate::refusal::Refusal;
use crate::slices::{Hop, Stored, TenantState, subtract_hop};
use crate::store::{EventNote, Failed, NAMES_TOGETHER, RowExt, Tx, named, number};
use slicewise_api::{Acknowledgement, EventKind, SliceState};
use sqlx::AssertSqlSafe;

/// Longest reason of a refusal.
const REASON_CHARS_MAX: usize = 500;

/// Slices of a gateway up to a generation are in force.
const IN_FORCE: &str = "UPDATE slice_hops SET acknowledged = 1 WHERE gateway = $1 AND acknowledged = 0 AND generation <= $2 \
                        AND draining = 0 AND problem = '' RETURNING slice";
/// The hop of one slice at a gateway. The gateway's name is appended to nothing, so that no index of gateways is used: it would find every slice
/// of the gateway.
const REFUSED: &str = "UPDATE slice_hops SET problem = $1, acknowledged = 0 \
                       WHERE slice = $2 AND gateway || '' = $3 AND generation <= $4 AND draining = 0 AND problem <> $1";
const RECOVERED: &str = "UPDATE slice_hops SET problem = '' WHERE slice = $1 AND gateway || '' = $2 AND generation <= $3";
const GONE: &str = "UPDATE slice_hops SET acknowledged = 1 WHERE slice = $1 AND gateway || '' = $2 AND draining = 1 \
                    AND acknowledged = 0 AND generation <= $3";

/// Note an acknowledgement. What is about slices that are not known, or about an earlier one of that name, is ignored.
pub(crate) async fn acknowledge(
    tx: &mut Tx,
    gateway: &str,
    said: &Acknowledgement,
) -> Result<(), Failed> {
    said.check().map_err(Refusal::invalid)?;
    let select = sqlx::query("SELECT acknowledged FROM gateways WHERE name = $1");
    let row = select
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    if row.is_none() {
        return Err(Refusal::not_found("gateway", gateway).into());
    }
    if said.generation > tx.generation() {
        let detail = format!(
            "generation {} does not exist yet, the last one is {}: ask for the state again from 0",
            said.generation,
            tx.generation()
        );
        return Err(Refusal::conflict(detail).into());
    }
    for refused in &said.refused {
        refuse(
            tx,
            gateway,
            said.generation,
            &refused.slice,
            &refused.reason,
        )
        .await?;
    }
    for name in &said.recovered {
        let update = sqlx::query(RECOVERED)
            .bind(name.clone())
            .bind(gateway.to_owned());
        update
            .bind(number(said.generation))
            .execute(tx.connection())
            .await?;
    }
    in_force(tx, gateway, said.generation).await?;
    for name in &said.gone {
        gone(tx, gateway, said.generation, name).await?;
    }
    let update = "UPDATE gateways SET acknowledged = $1, seen_at_ms = $2 WHERE name = $3";
    let now = number(tx.now_ms);
    let update = sqlx::query(update).bind(number(said.generation)).bind(now);
    update
        .bind(gateway.to_owned())
        .execute(tx.connection())
        .await?;
    Ok(())
}

async fn refuse(
    tx: &mut Tx,
    gateway: &str,
    generation: u64,
    slice: &str,
    reason: &str,
) -> Result<(), Failed> {
    // PostgreSQL has no text with NUL characters.
    let reason = reason.chars().filter(|&c| c != '\0');
    let reason: String = reason.take(REASON_CHARS_MAX).collect();
    let reason = match reason.is_empty() {
        true => "no reason given".to_owned(),
        false => reason,
    };
    let update = sqlx::query(REFUSED)
        .bind(reason.clone())
        .bind(slice.to_owned());
    let update = update.bind(gateway.to_owned()).bind(number(generation));
    if update.execute(tx.connection()).await?.rows_affected() == 0 {
        return Ok(());
    }
    let update = "UPDATE slices SET state = 'admitted' WHERE name = $1 AND state = 'installed'";
    sqlx::query(update)
        .bind(slice.to_owned())
        .execute(tx.connection())
        .await?;
    let tenant = Stored::load(tx.connection(), slice).await?;
    let note = EventNote {
        slice: slice.to_owned(),
        tenant: tenant.map(|stored| stored.slice.tenant).unwrap_or_default(),
        gateway: gateway.to_owned(),
        reason,
        ..EventNote::default()
    };
    tx.note(EventKind::GatewayRefused, note).await?;
    Ok(())
}

/// Everything up to `generation` that was not refused is in force here.
async fn in_force(tx: &mut Tx, gateway: &str, generation: u64) -> Result<(), Failed> {
    let update = sqlx::query(IN_FORCE)
        .bind(gateway.to_owned())
        .bind(number(generation));
    let rows = update.fetch_all(tx.connection()).await?;
    let names = rows.iter().map(|row| row.text("slice"));
    let mut names: Vec<String> = names.collect::<Result<_, _>>()?;
    names.sort_unstable();
    for names in names.chunks(NAMES_TOGETHER) {
        let update = "UPDATE slices SET state = 'installed' WHERE state = 'admitted' AND NOT EXISTS \
                      (SELECT 1 FROM slice_hops h WHERE h.slice = slices.name AND h.acknowledged = 0) AND name";
        let update = format!(
            "{} RETURNING name, tenant, generation",
            named(update, 1, names.len())
        );
        let mut update = sqlx::query(AssertSqlSafe(update)).persistent(names.len() == 1);
        for name in names {
            update = update.bind(name.clone());
        }
        let mut notes = Vec::with_capacity(names.len());
        for row in update.fetch_all(tx.connection()).await? {
            notes.push(EventNote {
                slice: row.text("name")?,
                tenant: row.text("tenant")?,
                generation: row.maybe_natural("generation")?,
                ..EventNote::default()
            });
        }
        // A statement returns rows in any order.
        notes.sort_unstable_by(|a, b| a.slice.cmp(&b.slice));
        for note in notes {
            tx.note(EventKind::SliceInstalled, note).await?;
        }
    }
    Ok(())
}

/// No frame of a removed slice waits in this gateway; after the last gateway, its capacity is free.
async fn gone(tx: &mut Tx, gateway: &str, generation: u64, name: &str) -> Result<(), Failed> {
    let update = sqlx::query(GONE)
        .bind(name.to_owned())
        .bind(gateway.to_owned());
    let update = update
        .bind(number(generation))
        .execute(tx.connection())
        .await?;
    if update.rows_affected() == 0 {
        return Ok(());
    }
    finish(tx, name).await
}

/// Forget a slice that drains, once every gateway has said that it is gone.
pub(super) async fn finish(tx: &mut Tx, name: &str) -> Result<(), Failed> {
    let hops = Hop::load(tx.connection(), name).await?;
    if hops.iter().any(|hop| !hop.acknowledged) {
        return Ok(());
    }
    let Some(stored) = Stored::load(tx.connection(), name).await? else {
        return Ok(());
    };
    if stored.state != SliceState::Draining {
        return Ok(());
    }
    subtract_hop(tx.connection(), &stored.slice, &hops).await?;
    if let Some(mut tenant) = TenantState::load(tx.connection(), &stored.slice.tenant).await? {
        tenant.subtract(&stored.slice);
        tenant.save_use(tx.connection()).await?;
    }
    for delete in [
        "DELETE FROM slices WHERE name = $1",
        "DELETE FROM slice_hops WHERE slice = $1",
        "DELETE FROM slice_matches WHERE slice = $1",
        "DELETE FROM flow_interests WHERE slice = $1",
    ] {
        sqlx::query(delete)
            .bind(name.to_owned())
            .execute(tx.connection())
            .await?;
    }
    let note = EventNote {
        slice: name.to_owned(),
        tenant: stored.slice.tenant,
        ..EventNote::default()
    };
    tx.note(EventKind::SliceGone, note).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};

    #[test]
    fn what_a_gateway_says_of_a_slice_is_noted_without_reading_its_other_slices() {
        with_store(async |store| {
            for statement in [REFUSED, RECOVERED, GONE] {
                let plan = plan(store, statement).await;
                let is_by_slice = plan.contains("(slice=?") || plan.contains("AND slice=?)");
                assert!(is_by_slice && !plan.contains("SCAN"), "{statement}: {plan}");
            }
            insta::assert_snapshot!(plan(store, IN_FORCE).await, @"SEARCH slice_hops USING INDEX slice_hops_by_gateway (gateway=? AND acknowledged=? AND generation<?)");
        });
    }
}
