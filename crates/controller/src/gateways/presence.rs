//! Which gateways are there.

use super::acknowledge::finish;
use crate::refusal::Refusal;
use crate::store::{EventNote, Failed, RowExt, Tx, now_ms, number};
use slicewise_api::{EventKind, GatewayRecord};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

/// A gateway that was not heard of for this long is gone, milliseconds.
pub(crate) const CONNECTED_MS: u64 = 10_000;

/// Every gateway, by name.
pub(crate) async fn gateways(
    connection: &mut AnyConnection,
) -> Result<Vec<GatewayRecord>, sqlx::Error> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let select = sqlx::query("SELECT name, gateway FROM links ORDER BY name");
    for row in select.fetch_all(&mut *connection).await? {
        links
            .entry(row.text("gateway")?)
            .or_default()
            .push(row.text("name")?);
    }
    let select = sqlx::query("SELECT * FROM gateways ORDER BY name");
    let rows = select.fetch_all(connection).await?;
    let now = now_ms();
    let record = |row: &crate::store::Row| {
        let name = row.text("name")?;
        let seen_at_ms = row.natural("seen_at_ms")?;
        Ok(GatewayRecord {
            links: links.remove(&name).unwrap_or_default(),
            name,
            acknowledged: row.natural("acknowledged")?,
            seen_at_ms,
            // Clocks of several controllers may differ, and one may jump.
            connected: row.integer("connected")? != 0 && now.abs_diff(seen_at_ms) < CONNECTED_MS,
        })
    };
    rows.iter().map(record).collect()
}

/// The gateway was heard of.
pub(crate) async fn touch(tx: &mut Tx, gateway: &str) -> Result<(), Failed> {
    let select = sqlx::query("SELECT connected FROM gateways WHERE name = $1");
    let row = select
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    let Some(row) = row else { return Ok(()) };
    let update = sqlx::query("UPDATE gateways SET seen_at_ms = $1, connected = 1 WHERE name = $2");
    let update = update.bind(number(tx.now_ms)).bind(gateway.to_owned());
    update.execute(tx.connection()).await?;
    if row.integer("connected")? == 0 {
        note(tx, EventKind::GatewayCame, gateway).await?;
    }
    Ok(())
}

/// Note gateways that have not been heard of. Of several controllers, one does.
pub(crate) async fn mark_absent(tx: &mut Tx) -> Result<(), Failed> {
    let since = number(tx.now_ms.saturating_sub(CONNECTED_MS));
    let select = sqlx::query("SELECT name FROM gateways WHERE connected = 1 AND seen_at_ms < $1");
    for row in select.bind(since).fetch_all(tx.connection()).await? {
        let name = row.text("name")?;
        let update = sqlx::query("UPDATE gateways SET connected = 0 WHERE name = $1");
        update.bind(name.clone()).execute(tx.connection()).await?;
        note(tx, EventKind::GatewayWent, &name).await?;
    }
    Ok(())
}

async fn note(tx: &mut Tx, kind: EventKind, gateway: &str) -> Result<(), sqlx::Error> {
    let gateway = gateway.to_owned();
    let note = EventNote {
        gateway,
        ..EventNote::default()
    };
    tx.note(kind, note).await
}

/// Forget a gateway that never comes back: its slices must have been removed, and count as gone from it.
pub(crate) async fn forget_gateway(tx: &mut Tx, gateway: &str) -> Result<(), Failed> {
    let select = sqlx::query("SELECT name FROM gateways WHERE name = $1");
    let known = select
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    if known.is_none() {
        return Err(Refusal::not_found("gateway", gateway).into());
    }
    let select =
        sqlx::query("SELECT slice, draining FROM slice_hops WHERE gateway = $1 ORDER BY slice");
    let rows = select
        .bind(gateway.to_owned())
        .fetch_all(tx.connection())
        .await?;
    for row in &rows {
        let slice = row.text("slice")?;
        if row.integer("draining")? == 0 {
            let detail =
                format!("slice `{slice}` passes gateway `{gateway}`: remove its slices first");
            return Err(Refusal::conflict(detail).into());
        }
        let update = sqlx::query(
            "UPDATE slice_hops SET acknowledged = 1 WHERE slice = $1 AND gateway || '' = $2",
        );
        let update = update.bind(slice.clone()).bind(gateway.to_owned());
        update.execute(tx.connection()).await?;
        finish(tx, &[slice]).await?;
    }
    let rest =
        sqlx::query("SELECT slice FROM slice_hops WHERE gateway = $1 ORDER BY slice LIMIT 1");
    if let Some(row) = rest
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?
    {
        let detail = format!(
            "slice `{}` still drains in another gateway: try again when it is gone",
            row.text("slice")?
        );
        return Err(Refusal::conflict(detail).into());
    }
    for delete in [
        "DELETE FROM class_sums WHERE link IN (SELECT name FROM links WHERE gateway = $1)",
        "DELETE FROM links WHERE gateway = $1",
        "DELETE FROM gateway_changes WHERE gateway = $1",
        "DELETE FROM counters WHERE gateway = $1",
        "DELETE FROM gateways WHERE name = $1",
    ] {
        sqlx::query(delete)
            .bind(gateway.to_owned())
            .execute(tx.connection())
            .await?;
    }
    Ok(())
}

/// The gateway has announced itself.
pub(crate) async fn require(tx: &mut Tx, gateway: &str) -> Result<(), Failed> {
    let select = sqlx::query("SELECT name FROM gateways WHERE name = $1");
    let known = select
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    match known {
        Some(_) => Ok(()),
        None => Err(Refusal::not_found("gateway", gateway).into()),
    }
}
