//! A gateway says what it has in force, what it refused, and what is gone.

use super::instance::Instance;
use super::instance::require;
use crate::refusal::Refusal;
use crate::slices::{Capacity, Hop, Hops, Stored, TenantState};
use crate::sql::{EventNote, Failed, Row, RowExt, Sql, Tx, values};
use slicewise_api::{Acknowledgement, EventKind, RefusedSlice, Slice, SliceState};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

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
const GONE: &str = "UPDATE slice_hops SET acknowledged = 1 WHERE gateway || '' = $1 AND draining = 1 AND acknowledged = 0 \
                    AND generation <= $2 AND slice";

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
        refuse(tx, gateway, said.generation, refused).await?;
    }
    for name in &said.recovered {
        tx.change(RECOVERED, values![name, gateway, said.generation])
            .await?;
    }
    in_force(tx, gateway, said.generation).await?;
    gone(tx, gateway, said.generation, &said.gone).await?;
    // One that comes late lowers nothing: what a gateway has lost is in its announcement.
    // It follows this store, and has that on its disk.
    let update = "UPDATE gateways SET acknowledged = CASE WHEN acknowledged < $1 THEN $1 ELSE acknowledged END, \
                  seen_at_ms = $2, adopted = 0 WHERE name = $3";
    tx.change(update, values![said.generation, tx.now_ms, gateway])
        .await?;
    Ok(())
}

async fn refuse(
    tx: &mut Tx,
    gateway: &str,
    generation: u64,
    refused: &RefusedSlice,
) -> Result<(), Failed> {
    let RefusedSlice {
        slice,
        reason,
        waits_for,
    } = refused;
    let stored = Stored::load(tx.connection(), slice).await?;
    let tenant = stored.map(|stored| stored.slice.tenant).unwrap_or_default();
    let other = match waits_for {
        Some(other) if other != slice => Stored::load(tx.connection(), other).await?,
        _ => None,
    };
    let other = other.map(|other| other.slice);
    let is_own = other.as_ref().is_some_and(|other| other.tenant == tenant);
    let with_other = |reason: &str| match &other {
        Some(other) => format!("{reason}: slice `{}`", other.name),
        None => reason.to_owned(),
    };
    let shown = match is_own {
        true => with_other(reason),
        false => reason.clone(),
    };
    // PostgreSQL has no text with NUL characters.
    let reason = shown.chars().filter(|&c| c != '\0');
    let reason: String = reason.take(REASON_CHARS_MAX).collect();
    let reason = match reason.is_empty() {
        true => "no reason given".to_owned(),
        false => reason,
    };
    let values = values![reason, slice, gateway, generation];
    if tx.change(REFUSED, values).await? == 0 {
        return Ok(());
    }
    let update = "UPDATE slices SET state = 'admitted' WHERE name = $1 AND state = 'installed'";
    tx.change(update, values![slice]).await?;
    let note = EventNote {
        slice: slice.to_owned(),
        tenant,
        gateway: gateway.to_owned(),
        reason: reason.clone(),
        ..EventNote::default()
    };
    tx.note(EventKind::GatewayRefused, note.clone());
    if other.is_some() && !is_own {
        // Of no tenant: those who read of all slices are told which one it is.
        let note = EventNote {
            tenant: String::new(),
            reason: with_other(&reason),
            ..note
        };
        tx.note(EventKind::GatewayRefused, note);
    }
    Ok(())
}

/// Everything up to `generation` that was not refused is in force here.
async fn in_force(tx: &mut Tx, gateway: &str, generation: u64) -> Result<(), Failed> {
    let rows = tx.rows(IN_FORCE, values![gateway, generation]).await?;
    let names = rows.iter().map(|row| row.text("slice"));
    let mut names: Vec<String> = names.collect::<Result<_, _>>()?;
    names.sort_unstable();
    let update = "UPDATE slices SET state = 'installed' WHERE state = 'admitted' AND NOT EXISTS \
                  (SELECT 1 FROM slice_hops h WHERE h.slice = slices.name AND h.acknowledged = 0) AND name";
    let end = "RETURNING name, tenant, generation";
    let note = |row: &Row| {
        Ok(EventNote {
            slice: row.text("name")?,
            tenant: row.text("tenant")?,
            generation: row.maybe_natural("generation")?,
            ..EventNote::default()
        })
    };
    let rows = tx.named((update, end), [], &names).await?;
    let notes = rows.iter().map(note);
    let mut notes = notes.collect::<Result<Vec<_>, sqlx::Error>>()?;
    // A statement returns rows in any order.
    notes.sort_unstable_by(|a, b| a.slice.cmp(&b.slice));
    for note in notes {
        tx.note(EventKind::SliceInstalled, note);
    }
    Ok(())
}

/// No frame of these removed slices waits in this gateway; after the last gateway, their capacity is free.
async fn gone(tx: &mut Tx, gateway: &str, generation: u64, names: &[String]) -> Result<(), Failed> {
    let values = values![gateway, generation];
    let rows = tx.named((GONE, "RETURNING slice"), values, names).await?;
    let found = rows.iter().map(|row| row.text("slice"));
    let mut found: Vec<String> = found.collect::<Result<_, _>>()?;
    found.sort_unstable();
    finish(tx, &found).await
}

/// Of these slices, forget those that drain and of which every gateway has said that they are gone.
pub(super) async fn finish(tx: &mut Tx, names: &[String]) -> Result<(), Failed> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slices = Stored::load_several(tx.connection(), &names).await?;
    let mut hops = Hop::load_several(tx.connection(), &names, Hops::All).await?;
    let mut ended = Vec::new();
    for (name, stored) in slices {
        let hops = hops.remove(&name).unwrap_or_default();
        if stored.state == SliceState::Draining && hops.iter().all(|hop| hop.acknowledged) {
            ended.push((stored.slice, hops));
        }
    }
    release(tx.connection(), &ended).await?;
    let names: Vec<&str> = ended.iter().map(|(slice, _)| slice.name.as_str()).collect();
    for delete in [
        "DELETE FROM slices WHERE name",
        "DELETE FROM slice_hops WHERE slice",
        "DELETE FROM slice_matches WHERE slice",
        "DELETE FROM flow_interests WHERE slice",
    ] {
        tx.named((delete, ""), [], &names).await?;
    }
    for (slice, _) in ended {
        let note = EventNote {
            slice: slice.name,
            tenant: slice.tenant,
            ..EventNote::default()
        };
        tx.note(EventKind::SliceGone, note);
    }
    Ok(())
}

/// Give back what these slices have of links and tenants.
async fn release(
    connection: &mut AnyConnection,
    ended: &[(Slice, Vec<Hop>)],
) -> Result<(), Failed> {
    let links = ended.iter().flat_map(|(_, hops)| hops);
    let links = links.map(|hop| hop.link.clone()).collect();
    let mut capacity = Capacity::load(&mut *connection, &links).await?;
    let mut tenants: BTreeMap<String, TenantState> = BTreeMap::new();
    for (slice, hops) in ended {
        capacity.release(slice, hops)?;
        if !tenants.contains_key(&slice.tenant)
            && let Some(tenant) = TenantState::load(&mut *connection, &slice.tenant).await?
        {
            tenants.insert(slice.tenant.clone(), tenant);
        }
        if let Some(tenant) = tenants.get_mut(&slice.tenant) {
            tenant.subtract(slice)?;
        }
    }
    capacity.save(&mut *connection).await?;
    for tenant in tenants.values() {
        tenant.save_use(&mut *connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::named;
    use crate::store::testing::{plan, with_store};

    #[test]
    fn what_a_gateway_says_of_a_slice_is_noted_without_reading_its_other_slices() {
        with_store(async |store| {
            let gone = named((GONE, ""), 3, 2);
            for statement in [REFUSED, RECOVERED, &gone] {
                let plan = plan(store, statement).await;
                let is_by_slice = plan.contains("(slice=?") || plan.contains("AND slice=?)");
                assert!(is_by_slice && !plan.contains("SCAN"), "{statement}: {plan}");
            }
            insta::assert_snapshot!(plan(store, IN_FORCE).await, @"SEARCH slice_hops USING INDEX slice_hops_by_gateway (gateway=? AND acknowledged=? AND generation<?)");
        });
    }
}
