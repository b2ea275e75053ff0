//! A gateway says what it has in force, what it refused, and what is gone.

use super::instance::Instance;
use super::presence::require;
use crate::refusal::Refusal;
use crate::slices::{Hop, Stored, TenantState, subtract_hops};
use crate::store::{EventNote, Failed, RowExt, Tx, number};
use slicewise_api::{Acknowledgement, EventKind, SliceState};

/// Longest reason of a refusal.
const REASON_CHARS_MAX: usize = 500;

/// Note an acknowledgement. What is about slices that are not known, or about an earlier one of that name, is ignored.
pub(crate) async fn acknowledge(
    tx: &mut Tx,
    gateway: &str,
    instance: &Instance,
    said: &Acknowledgement,
) -> Result<(), Failed> {
    said.check().map_err(Refusal::invalid)?;
    require(tx, gateway, instance).await?;
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
        let update = "UPDATE slice_hops SET problem = '' WHERE gateway = $1 AND slice = $2 AND generation <= $3";
        let update = sqlx::query(update)
            .bind(gateway.to_owned())
            .bind(name.clone());
        update
            .bind(number(said.generation))
            .execute(tx.connection())
            .await?;
    }
    in_force(tx, gateway, said.generation).await?;
    for name in &said.gone {
        gone(tx, gateway, said.generation, name).await?;
    }
    // One that comes late lowers nothing: what a gateway has lost is in its announcement.
    let update = "UPDATE gateways SET acknowledged = CASE WHEN acknowledged < $1 THEN $1 ELSE acknowledged END, \
                  seen_at_ms = $2 WHERE name = $3";
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
    let update = "UPDATE slice_hops SET problem = $1, acknowledged = 0 \
                  WHERE gateway = $2 AND slice = $3 AND generation <= $4 AND draining = 0 AND problem <> $1";
    let update = sqlx::query(update)
        .bind(reason.clone())
        .bind(gateway.to_owned());
    let update = update.bind(slice.to_owned()).bind(number(generation));
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
    let select = "SELECT slice FROM slice_hops WHERE gateway = $1 AND acknowledged = 0 AND generation <= $2 \
                  AND draining = 0 AND problem = ''";
    let select = sqlx::query(select)
        .bind(gateway.to_owned())
        .bind(number(generation));
    let rows = select.fetch_all(tx.connection()).await?;
    for row in rows {
        let slice = row.text("slice")?;
        let update =
            sqlx::query("UPDATE slice_hops SET acknowledged = 1 WHERE slice = $1 AND gateway = $2");
        let update = update.bind(slice.clone()).bind(gateway.to_owned());
        update.execute(tx.connection()).await?;
        let update = "UPDATE slices SET state = 'installed' WHERE name = $1 AND state = 'admitted' AND NOT EXISTS \
                      (SELECT 1 FROM slice_hops h WHERE h.slice = $1 AND h.acknowledged = 0)";
        let update = sqlx::query(update).bind(slice.clone());
        if update.execute(tx.connection()).await?.rows_affected() == 0 {
            continue;
        }
        let select = sqlx::query("SELECT tenant, generation FROM slices WHERE name = $1");
        let row = select
            .bind(slice.clone())
            .fetch_one(tx.connection())
            .await?;
        let note = EventNote {
            slice,
            tenant: row.text("tenant")?,
            generation: row.maybe_natural("generation")?,
            ..EventNote::default()
        };
        tx.note(EventKind::SliceInstalled, note).await?;
    }
    Ok(())
}

/// No frame of a removed slice waits in this gateway; after the last gateway, its capacity is free.
async fn gone(tx: &mut Tx, gateway: &str, generation: u64, name: &str) -> Result<(), Failed> {
    let update = "UPDATE slice_hops SET acknowledged = 1 WHERE slice = $1 AND gateway = $2 AND draining = 1 \
                  AND acknowledged = 0 AND generation <= $3";
    let update = sqlx::query(update)
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
    subtract_hops(tx.connection(), &stored.slice, &hops).await?;
    if let Some(mut tenant) = TenantState::load(tx.connection(), &stored.slice.tenant).await? {
        tenant.subtract(&stored.slice)?;
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
