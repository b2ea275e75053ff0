//! The sums of all links, counted anew from the slices.

use super::capacity::{Capacity, requests};
use super::stored::{Hop, Stored};
use crate::store::{RowExt, number};
use slicewise_model::DelayRange;
use slicewise_units::Duration;
use sqlx::AnyConnection;
use std::collections::BTreeSet;

/// Replace the sums of all links by those of the slices in the store. Where hops have `positions` of delay classes, as version 5 of the
/// schema had, these become delays.
pub(crate) async fn recount(
    connection: &mut AnyConnection,
    positions: bool,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query("SELECT name FROM links");
    let rows = rows.fetch_all(&mut *connection).await?;
    let names = rows.iter().map(|row| row.text("name"));
    let names: BTreeSet<String> = names.collect::<Result<_, _>>()?;
    sqlx::query("DELETE FROM class_sums")
        .execute(&mut *connection)
        .await?;
    let mut capacity = Capacity::load(connection, &names).await?;
    let hops = "SELECT s.*, h.* FROM slice_hops h JOIN slices s ON s.name = h.slice";
    for row in sqlx::query(hops).fetch_all(&mut *connection).await? {
        let (slice, mut hop) = (Stored::of(&row)?.slice, Hop::of(&row)?);
        let Some(link) = capacity.link_mut(&hop.link) else {
            continue;
        };
        let requests = requests(&slice);
        for (index, direction) in link.directions.iter_mut().enumerate() {
            let (Some(delay), Some(request)) = (&mut hop.delays[index], &requests[index]) else {
                continue;
            };
            if positions {
                let range = direction.admission().params().delays;
                *delay = delay_of_position(range, delay.nanos());
            }
            direction.restore(request, *delay);
        }
        if positions {
            let update = "UPDATE slice_hops SET delay_forward_ns = $1, delay_backward_ns = $2 WHERE slice = $3 AND link = $4";
            let [forward, backward] = hop
                .delays
                .map(|delay| delay.map_or(-1, |d| number(d.nanos())));
            let update = sqlx::query(update).bind(forward).bind(backward);
            let update = update.bind(hop.slice).bind(hop.link);
            update.execute(&mut *connection).await?;
        }
    }
    capacity.save(connection).await
}

/// Delay that the class at a position promised: the position among the steps gave the time until the deadline.
fn delay_of_position(range: DelayRange, position: u64) -> Duration {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let until_deadline = range.steps().take(position.saturating_add(1)).last();
    until_deadline.unwrap_or(range.shortest()) + range.bucket_width()
}
