//! Ends slices that drain: their gateways drop the frames that wait.

use super::apply::Guard;
use super::stored::{Hop, Stored};
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::sql::{EventNote, Failed, Sql, Tx, values};
use slicewise_api::{EventKind, SliceState};

/// Have the gateways that have not said that a slice is gone drop its frames. They are told by its removal, repeated in a generation
/// of its own: one of an earlier version ignores that. Nothing changes where they were told already.
///
/// # Errors
/// If there is no such slice, or it does not drain.
pub(crate) async fn purge(
    tx: &mut Tx,
    actor: &Actor,
    name: &str,
    guard: &Guard,
) -> Result<(), Failed> {
    let stored = Stored::load(tx.connection(), name).await?;
    guard.check(name, stored.as_ref())?;
    let Some(stored) = stored else {
        return Err(Refusal::not_found("slice", name).into());
    };
    if stored.state != SliceState::Draining {
        let detail = format!(
            "slice `{name}` does not drain: remove it first, and purge it if its frames do not leave"
        );
        return Err(Refusal::conflict(detail).into());
    }
    let update =
        "UPDATE slice_hops SET purge = 1 WHERE slice = $1 AND acknowledged = 0 AND purge = 0";
    if tx.change(update, values![name]).await? == 0 {
        return Ok(());
    }
    let reason = format!("purge of slice {name}");
    let generation = tx.next_generation(&actor.name, Some(&reason)).await?;
    let update = "UPDATE slices SET generation = $1, changed_at_ms = $2 WHERE name = $3";
    tx.change(update, values![generation, tx.now_ms, name])
        .await?;
    let insert = "INSERT INTO changes (generation, position, slice, tenant, before_body, after_body) VALUES ($1, 0, $2, $3, '', '')";
    tx.change(insert, values![generation, name, stored.slice.tenant])
        .await?;
    let hops = Hop::load(tx.connection(), name).await?;
    for hop in hops.into_iter().filter(|hop| !hop.acknowledged) {
        let insert = "INSERT INTO gateway_changes (gateway, generation, position, slice, body) VALUES ($1, $2, 0, $3, '')";
        tx.change(insert, values![hop.gateway, generation, name])
            .await?;
    }
    let note = EventNote {
        slice: name.to_owned(),
        tenant: stored.slice.tenant,
        generation: Some(generation),
        actor: actor.name.clone(),
        reason: "purged: gateways drop its waiting frames".to_owned(),
        ..EventNote::default()
    };
    tx.note(EventKind::SliceDraining, note);
    Ok(())
}
