//! Writes the effects of a batch to the store: slices, hops, history, tasks of gateways, and events.

use super::capacity::{Capacity, Delays};
use super::for_gateway::gateway_slice;
use super::stored::{Hop, Stored, guaranteed};
use crate::sql::{EventNote, Failed, Insert, Sql, Tx, values};
use slicewise_api::{Bounds, EventKind, Slice};
use std::collections::BTreeMap;

/// Rows of a batch, which are written together.
struct Rows {
    slices: Insert<10>,
    hops: Insert<10>,
    changes: Insert<6>,
    gateway_changes: Insert<5>,
    draining: Vec<String>,
}

impl Rows {
    fn new() -> Self {
        Self {
            slices: Insert::new(
                "INSERT INTO slices (name, tenant, state, generation, body, bound_forward_ns, bound_backward_ns, created_by, \
                 created_at_ms, changed_at_ms)",
                "ON CONFLICT (name) DO UPDATE SET state = excluded.state, generation = excluded.generation, \
                 body = excluded.body, bound_forward_ns = excluded.bound_forward_ns, \
                 bound_backward_ns = excluded.bound_backward_ns, changed_at_ms = excluded.changed_at_ms",
            ),
            hops: Insert::new(
                "INSERT INTO slice_hops (slice, hop, link, gateway, generation, delay_forward_ns, delay_backward_ns, draining, \
                 acknowledged, problem)",
                "ON CONFLICT (slice, hop) DO UPDATE SET generation = excluded.generation, \
                 delay_forward_ns = excluded.delay_forward_ns, delay_backward_ns = excluded.delay_backward_ns, draining = 0, \
                 acknowledged = 0, problem = ''",
            ),
            changes: Insert::new(
                "INSERT INTO changes (generation, position, slice, tenant, before_body, after_body)",
                "",
            ),
            gateway_changes: Insert::new(
                "INSERT INTO gateway_changes (gateway, generation, position, slice, body)",
                "",
            ),
            draining: Vec::new(),
        }
    }

    async fn save(mut self, tx: &mut Tx, generation: u64) -> Result<(), sqlx::Error> {
        self.slices.save(tx.connection()).await?;
        self.hops.save(tx.connection()).await?;
        drain(tx, &self.draining, generation).await?;
        self.changes.save(tx.connection()).await?;
        self.gateway_changes.save(tx.connection()).await
    }
}

/// Values that all changes of a batch have in common.
pub(super) struct Writing<'a> {
    pub(super) actor: &'a str,
    pub(super) generation: u64,
    pub(super) capacity: &'a Capacity,
    /// Of tenants.
    pub(super) weights: &'a BTreeMap<String, u32>,
}

/// Write `planned` down, in this order.
pub(super) async fn write(
    tx: &mut Tx,
    writing: &Writing<'_>,
    planned: &[Planned],
) -> Result<(), Failed> {
    let mut rows = Rows::new();
    for (position, one) in (0i64..).zip(planned) {
        let now = tx.now_ms;
        let gateways = match &one.after {
            Some(after) => put(&mut rows, writing, one, after, now)?,
            None => {
                rows.draining.push(one.name().to_owned());
                let gateways = one.hops.iter().map(|hop| hop.gateway.clone());
                // An empty body removes.
                gateways.map(|gateway| (gateway, String::new())).collect()
            }
        };
        for (gateway, body) in gateways {
            rows.gateway_changes.push(values![
                gateway,
                writing.generation,
                position,
                one.name(),
                body
            ]);
        }
        note(tx, &mut rows, writing, one, position)?;
    }
    Ok(rows.save(tx, writing.generation).await?)
}

/// The slice and its hops. What each gateway has to put in force.
fn put(
    rows: &mut Rows,
    writing: &Writing<'_>,
    one: &Planned,
    after: &Slice,
    now_ms: u64,
) -> Result<Vec<(String, String)>, Failed> {
    let generation = writing.generation;
    rows.slices.push(values![
        after.name,
        after.tenant,
        "admitted",
        generation,
        text(after)?,
        one.bounds.forward,
        one.bounds.backward,
        writing.actor,
        now_ms,
        now_ms
    ]);
    let weight = writing.weights.get(&after.tenant).copied().unwrap_or(1);
    let mut gateways = Vec::with_capacity(after.path.len());
    for (hop, (link, delays)) in (0i64..).zip(after.path.iter().zip(&one.delays)) {
        let gateway = writing.capacity.link(link);
        let gateway = gateway.map(|link| link.gateway.clone()).unwrap_or_default();
        rows.hops.push(values![
            after.name,
            hop,
            link,
            gateway,
            generation,
            delays.forward,
            delays.backward,
            0i64,
            0i64,
            ""
        ]);
        let body = gateway_slice(after, link, *delays, generation, weight);
        let body = serde_json::to_string(&body).map_err(Failed::encoding)?;
        gateways.push((gateway, body));
    }
    Ok(gateways)
}

/// History and event.
fn note(
    tx: &mut Tx,
    rows: &mut Rows,
    writing: &Writing<'_>,
    one: &Planned,
    position: i64,
) -> Result<(), Failed> {
    let before = one.before.as_ref().map(|stored| &stored.slice);
    let tenant = one.after.as_ref().or(before);
    let tenant = tenant.map(|slice| slice.tenant.clone()).unwrap_or_default();
    rows.changes.push(values![
        writing.generation,
        position,
        one.name(),
        tenant,
        before.map(text).transpose()?,
        one.after.as_ref().map(text).transpose()?
    ]);
    let kind = match one.after {
        Some(_) => EventKind::SliceAdmitted,
        None => EventKind::SliceDraining,
    };
    let note = EventNote {
        slice: one.name().to_owned(),
        tenant,
        generation: Some(writing.generation),
        actor: writing.actor.to_owned(),
        ..EventNote::default()
    };
    tx.note(kind, note);
    Ok(())
}

fn text(slice: &Slice) -> Result<String, Failed> {
    serde_json::to_string(slice).map_err(Failed::encoding)
}

/// These slices drain: everything they have stays promised.
async fn drain(tx: &mut Tx, names: &[String], generation: u64) -> Result<(), sqlx::Error> {
    let update =
        "UPDATE slices SET state = 'draining', generation = $1, changed_at_ms = $2 WHERE name";
    let values = values![generation, tx.now_ms];
    tx.named((update, ""), values, names).await?;
    let update = "UPDATE slice_hops SET draining = 1, acknowledged = 0, problem = '', generation = $1 WHERE slice";
    tx.named((update, ""), values![generation], names).await?;
    Ok(())
}

/// One change that is to be written down.
pub(super) struct Planned {
    pub(super) before: Option<Stored>,
    pub(super) hops: Vec<Hop>,
    /// `None`: it is removed.
    pub(super) after: Option<Slice>,
    pub(super) delays: Delays,
    pub(super) bounds: Bounds,
}

impl Planned {
    pub(super) fn name(&self) -> &str {
        match (&self.after, &self.before) {
            (Some(slice), _) => &slice.name,
            (None, Some(stored)) => &stored.slice.name,
            (None, None) => "",
        }
    }

    /// Where it comes among the changes of its generation: a gateway that carries them out in order never needs more
    /// capacity than there is, as far as single changes allow that.
    pub(super) fn order(&self) -> u8 {
        match (&self.before, &self.after) {
            (_, None) => 0,
            (Some(stored), Some(after)) if guaranteed(after) <= guaranteed(&stored.slice) => 1,
            _ => 2,
        }
    }
}
