//! A gateway announces its links.

use super::desired::is_recent;
use super::instance::{Instance, note_refusal};
use crate::refusal::Refusal;
use crate::slices::{Capacity, Hop, HopDelays, Stored, bounds, requests};
use crate::sql::{EventNote, Failed, RowExt, Sql, Tx, values};
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
    let select =
        "SELECT acknowledged, connected, since, instance, adopted FROM gateways WHERE name = $1";
    let known = tx.row(select, values![gateway]).await?;
    let reached = announcement.reached.unwrap_or(0);
    let adopted = instance.may_announce(tx, gateway, known.as_ref(), reached);
    let adopted = adopted.await?;
    let mut before = known_links(tx, gateway).await?;
    for link in &announcement.links {
        match before.remove(&link.name) {
            Some(known) if known == *link => {}
            Some(known) => change(tx, gateway, &known, link).await?,
            None => add(tx, gateway, link).await?,
        }
    }
    for name in before.keys() {
        remove(tx, name).await?;
    }
    let update = "UPDATE links SET disputed = 0 WHERE gateway = $1 AND disputed <> 0";
    tx.change(update, values![gateway]).await?;
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
    tx.change(
        insert,
        values![
            gateway,
            acknowledged,
            tx.now_ms,
            tx.generation(),
            instance.id.as_deref().unwrap_or_default()
        ],
    )
    .await?;
    if !connected {
        tx.note(EventKind::GatewayCame, EventNote::of_gateway(gateway));
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
        tx.change(update, values![gateway, reached]).await?;
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
        let update = "UPDATE links SET disputed = $1 WHERE name = $2";
        tx.change(update, values![disputed, name]).await?;
    }
    let update = "UPDATE gateways SET problem = $1 WHERE name = $2 AND problem <> $1";
    if tx.change(update, values![problem.detail, gateway]).await? > 0 {
        note_refusal(tx, gateway, problem);
    }
    Ok(())
}

async fn known_links(
    tx: &mut Tx,
    gateway: &str,
) -> Result<BTreeMap<String, LinkAnnouncement>, sqlx::Error> {
    let select = "SELECT name, announcement FROM links WHERE gateway = $1";
    let rows = tx.rows(select, values![gateway]).await?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.json("announcement")?)))
        .collect()
}

async fn add(tx: &mut Tx, gateway: &str, link: &LinkAnnouncement) -> Result<(), Failed> {
    let select = "SELECT gateway FROM links WHERE name = $1";
    let row = tx.row(select, values![link.name]).await?;
    if let Some(row) = row {
        let other = row.text("gateway")?;
        let detail = format!(
            "link `{}` is of gateway `{other}`: choose another name",
            link.name
        );
        return Err(Refusal::conflict(detail).into());
    }
    let body = serde_json::to_string(link).map_err(Failed::encoding)?;
    let insert = "INSERT INTO links (name, gateway, announcement) VALUES ($1, $2, $3)";
    tx.change(insert, values![link.name, gateway, body]).await?;
    Ok(())
}

async fn remove(tx: &mut Tx, link: &str) -> Result<(), Failed> {
    let select = "SELECT slice FROM slice_hops WHERE link = $1 ORDER BY slice LIMIT 1";
    let row = tx.row(select, values![link]).await?;
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
        tx.change(delete, values![link]).await?;
    }
    Ok(())
}

/// Count every slice of the link anew, with the delays that it was promised and that its gateway has in force.
async fn change(
    tx: &mut Tx,
    gateway: &str,
    known: &LinkAnnouncement,
    link: &LinkAnnouncement,
) -> Result<(), Failed> {
    let mut capacity = Capacity::default();
    capacity.insert(link, gateway)?;
    let select = "SELECT s.*, h.delay_forward_ns, h.delay_backward_ns FROM slice_hops h JOIN slices s ON s.name = h.slice \
                  WHERE h.link = $1 ORDER BY s.name";
    let rows = tx.rows(select, values![link.name]).await?;
    let rules = |link: &LinkAnnouncement| link.ways().map(|direction| direction.admission);
    if let (Some(row), true) = (rows.first(), rules(known) != rules(link)) {
        let slice = row.text("name")?;
        let detail = format!(
            "link `{}` is announced with another `admission`, but slice `{slice}` was admitted by the rule before: remove its slices \
             first, or announce it as before",
            link.name
        );
        return Err(Refusal::conflict(detail).into());
    }
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
    let delete = "DELETE FROM class_sums WHERE link = $1";
    tx.change(delete, values![link.name]).await?;
    capacity.save(tx.connection()).await?;
    let body = serde_json::to_string(link).map_err(Failed::encoding)?;
    let update = "UPDATE links SET announcement = $1 WHERE name = $2";
    tx.change(update, values![body, link.name]).await?;
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
    let update = "UPDATE slice_hops SET delay_forward_ns = $1, delay_backward_ns = $2 WHERE slice = $3 AND link = $4";
    let name = stored.slice.name.clone();
    let values = values![delays.forward, delays.backward, name, link.name];
    tx.change(update, values).await?;
    // Bounds from end to end, with the delays of the other links as they are.
    let hops = Hop::load(tx.connection(), &name).await?;
    let delays: Vec<HopDelays> = hops.iter().map(|hop| hop.delays).collect();
    let bounds = bounds(&delays);
    let update = "UPDATE slices SET bound_forward_ns = $1, bound_backward_ns = $2 WHERE name = $3";
    tx.change(update, values![bounds.forward, bounds.backward, name])
        .await?;
    Ok(())
}
