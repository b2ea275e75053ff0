//! A gateway announces its links.

use super::desired::is_recent;
use super::instance::{Instance, note_refusal};
use crate::refusal::Refusal;
use crate::slices::{Capacity, Hop, HopDelays, Stored, bounds, requests};
use crate::sql::{EventNote, Failed, RowExt, Tx, number};
use slicewise_api::{Announced, EventKind, GatewayAnnouncement, LinkAnnouncement, Problem};
use std::collections::BTreeMap;

/// Note the links of a gateway. Links that changed must still hold what is promised of them.
///
/// # Errors
/// If a link is another gateway's, or is left out or made smaller although slices need it, another gateway of this name is
/// connected, or the gateway follows another store or a newer copy of this one.
pub(crate) async fn announce(
    tx: &mut Tx,
    gateway: &str,
    instance: &Instance,
    announcement: &GatewayAnnouncement,
) -> Result<Announced, Failed> {
    announcement.check().map_err(Refusal::invalid)?;
    let select = sqlx::query(
        "SELECT acknowledged, connected, since, instance, adopted FROM gateways WHERE name = $1",
    );
    let known = select
        .bind(gateway.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    let reached = announcement.reached.unwrap_or(0);
    let adopted = instance.may_announce(tx, gateway, known.as_ref(), reached);
    let adopted = adopted.await?;
    let mut before = known_links(tx, gateway).await?;
    for link in &announcement.links {
        match before.remove(&link.name) {
            Some(known) if known == *link => {}
            Some(_) => change(tx, gateway, link).await?,
            None => add(tx, gateway, link).await?,
        }
    }
    for name in before.keys() {
        remove(tx, name).await?;
    }
    let settle = sqlx::query("UPDATE links SET disputed = 0 WHERE gateway = $1 AND disputed <> 0");
    let settle = settle.bind(gateway.to_owned());
    settle.execute(tx.connection()).await?;
    let mut acknowledged = 0;
    if let Some(known) = &known {
        acknowledged = known.natural("acknowledged")?;
        if let Some(reached) = announcement.reached {
            let is_recent = is_recent(reached, known.natural("since")?, tx.generation());
            let is_recent = is_recent && !adopted;
            let reached = if is_recent { reached } else { 0 };
            acknowledged = acknowledged.min(reached);
            lose(tx, gateway, reached).await?;
        }
    }
    let connected = match &known {
        Some(known) => known.integer("connected")? != 0,
        None => false,
    };
    let insert = "INSERT INTO gateways (name, acknowledged, seen_at_ms, connected, since, instance) VALUES ($1, $2, $3, 1, $4, $5) \
                  ON CONFLICT (name) DO UPDATE SET acknowledged = excluded.acknowledged, seen_at_ms = excluded.seen_at_ms, \
                  connected = 1, problem = '', instance = excluded.instance";
    let (now, since) = (number(tx.now_ms), number(tx.generation()));
    sqlx::query(insert)
        .bind(gateway.to_owned())
        .bind(number(acknowledged))
        .bind(now)
        .bind(since)
        .bind(instance.id.clone().unwrap_or_default())
        .execute(tx.connection())
        .await?;
    if !connected {
        let note = EventNote {
            gateway: gateway.to_owned(),
            ..EventNote::default()
        };
        tx.note(EventKind::GatewayCame, note).await?;
    }
    Ok(Announced {
        generation: tx.generation(),
        acknowledged,
        store: Some(tx.store.clone()),
        adopted,
    })
}

/// The gateway has lost what came after generation `reached`: that is not in force there until it is acknowledged again.
async fn lose(tx: &mut Tx, gateway: &str, reached: u64) -> Result<(), sqlx::Error> {
    for update in [
        "UPDATE slices SET state = 'admitted' WHERE state = 'installed' AND name IN (SELECT slice FROM slice_hops \
         WHERE gateway = $1 AND acknowledged = 1 AND generation > $2 AND draining = 0)",
        "UPDATE slice_hops SET acknowledged = 0 WHERE gateway = $1 AND acknowledged = 1 AND generation > $2 AND draining = 0",
    ] {
        let update = sqlx::query(update).bind(gateway.to_owned());
        let update = update.bind(number(reached));
        update.execute(tx.connection()).await?;
    }
    Ok(())
}

/// Note why what a gateway announces was refused: nothing more is promised of links that it announces otherwise.
pub(crate) async fn note_refused(
    tx: &mut Tx,
    gateway: &str,
    instance: &Instance,
    announcement: &GatewayAnnouncement,
    problem: &Problem,
) -> Result<(), Failed> {
    if instance.note_refused(tx, gateway, problem).await? {
        return Ok(());
    }
    for (name, known) in known_links(tx, gateway).await? {
        let disputed = i64::from(!announcement.links.contains(&known));
        let update = sqlx::query("UPDATE links SET disputed = $1 WHERE name = $2");
        let update = update.bind(disputed).bind(name);
        update.execute(tx.connection()).await?;
    }
    let update = "UPDATE gateways SET problem = $1 WHERE name = $2 AND problem <> $1";
    let update = sqlx::query(update).bind(problem.detail.clone());
    let update = update.bind(gateway.to_owned());
    if update.execute(tx.connection()).await?.rows_affected() > 0 {
        note_refusal(tx, gateway, problem).await?;
    }
    Ok(())
}

async fn known_links(
    tx: &mut Tx,
    gateway: &str,
) -> Result<BTreeMap<String, LinkAnnouncement>, sqlx::Error> {
    let select = sqlx::query("SELECT name, announcement FROM links WHERE gateway = $1");
    let rows = select
        .bind(gateway.to_owned())
        .fetch_all(tx.connection())
        .await?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.json("announcement")?)))
        .collect()
}

async fn add(tx: &mut Tx, gateway: &str, link: &LinkAnnouncement) -> Result<(), Failed> {
    let select = sqlx::query("SELECT gateway FROM links WHERE name = $1");
    let row = select
        .bind(link.name.clone())
        .fetch_optional(tx.connection())
        .await?;
    if let Some(row) = row {
        let other = row.text("gateway")?;
        let detail = format!(
            "link `{}` is of gateway `{other}`: choose another name",
            link.name
        );
        return Err(Refusal::conflict(detail).into());
    }
    let insert = sqlx::query("INSERT INTO links (name, gateway, announcement) VALUES ($1, $2, $3)");
    let body = serde_json::to_string(link).map_err(Failed::encoding)?;
    let insert = insert
        .bind(link.name.clone())
        .bind(gateway.to_owned())
        .bind(body);
    insert.execute(tx.connection()).await?;
    Ok(())
}

async fn remove(tx: &mut Tx, link: &str) -> Result<(), Failed> {
    let select = sqlx::query("SELECT slice FROM slice_hops WHERE link = $1 ORDER BY slice LIMIT 1");
    let row = select
        .bind(link.to_owned())
        .fetch_optional(tx.connection())
        .await?;
    if let Some(row) = row {
        let slice = row.text("slice")?;
        let detail = format!(
            "link `{link}` is left out, but slice `{slice}` passes it: remove its slices first"
        );
        return Err(Refusal::conflict(detail).into());
    }
    for delete in [
        "DELETE FROM links WHERE name = $1",
        "DELETE FROM class_sums WHERE link = $1",
    ] {
        sqlx::query(delete)
            .bind(link.to_owned())
            .execute(tx.connection())
            .await?;
    }
    Ok(())
}

/// Count every slice of the link anew, with the delays that it was promised and that its gateway has in force.
async fn change(tx: &mut Tx, gateway: &str, link: &LinkAnnouncement) -> Result<(), Failed> {
    let mut capacity = Capacity::default();
    capacity.insert(link, gateway)?;
    let select = "SELECT s.*, h.delay_forward_ns, h.delay_backward_ns FROM slice_hops h JOIN slices s ON s.name = h.slice \
                  WHERE h.link = $1 ORDER BY s.name";
    let rows = sqlx::query(select).bind(link.name.clone());
    let rows = rows.fetch_all(tx.connection()).await?;
    for row in &rows {
        let stored = Stored::of(row)?;
        if link.classes.contains(&stored.slice.name) {
            let name = &stored.slice.name;
            let detail = format!(
                "the policy of link `{}` has a class `{name}`, and there is a slice of that name: rename the class",
                link.name
            );
            return Err(Refusal::conflict(detail).into());
        }
        admit(tx, &mut capacity, link, &stored, Hop::delays(row)?).await?;
    }
    if let Some(state) = capacity.link_mut(&link.name) {
        let directions = state.directions.iter_mut();
        directions.for_each(|(_, direction)| direction.save_all());
    }
    let delete = sqlx::query("DELETE FROM class_sums WHERE link = $1");
    delete
        .bind(link.name.clone())
        .execute(tx.connection())
        .await?;
    capacity.save(tx.connection()).await?;
    let update = sqlx::query("UPDATE links SET announcement = $1 WHERE name = $2");
    let body = serde_json::to_string(link).map_err(Failed::encoding)?;
    update
        .bind(body)
        .bind(link.name.clone())
        .execute(tx.connection())
        .await?;
    Ok(())
}

async fn admit(
    tx: &mut Tx,
    capacity: &mut Capacity,
    link: &LinkAnnouncement,
    stored: &Stored,
    promised: HopDelays,
) -> Result<(), Failed> {
    let requests = requests(&stored.slice);
    let mut delays = HopDelays::default();
    if let Some(state) = capacity.link_mut(&link.name) {
        for (way, request) in requests.iter() {
            let (Some(request), Some(promised)) = (request, promised[way]) else {
                continue;
            };
            let added = state.directions[way].try_restore(request, promised);
            delays[way] = Some(added.map_err(|refusal| {
                Refusal::conflict(format!(
                    "link `{}` as announced no longer holds what is promised: slice `{}`: {}; announce it as before, or change slices first",
                    link.name, stored.slice.name, refusal.problem
                ))
            })?);
        }
    }
    let delays = delays.map(|delay| delay.map_or(-1, |d| number(d.nanos())));
    let update = "UPDATE slice_hops SET delay_forward_ns = $1, delay_backward_ns = $2 WHERE slice = $3 AND link = $4";
    let update = sqlx::query(update).bind(delays.forward);
    let update = update.bind(delays.backward);
    let name = stored.slice.name.clone();
    update
        .bind(name.clone())
        .bind(link.name.clone())
        .execute(tx.connection())
        .await?;
    // Bounds from end to end, with the delays of the other links as they are.
    let hops = Hop::load(tx.connection(), &name).await?;
    let delays: Vec<HopDelays> = hops.iter().map(|hop| hop.delays).collect();
    let bounds = bounds(&delays);
    let update = "UPDATE slices SET bound_forward_ns = $1, bound_backward_ns = $2 WHERE name = $3";
    let update = sqlx::query(update).bind(bounds.forward.map_or(-1, number));
    let update = update.bind(bounds.backward.map_or(-1, number)).bind(name);
    update.execute(tx.connection()).await?;
    Ok(())
}
