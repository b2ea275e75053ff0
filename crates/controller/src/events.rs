//! Events, as lists.

use crate::actor::Actor;
use crate::sql::{Row, RowExt, Sql, cut, values};
use slicewise_api::{Event, EventKind, EventPage};
use sqlx::AnyConnection;

/// Events of one part.
pub(crate) const PAGE_MAX: u32 = 1_000;

/// Events after number `after`.
pub(crate) async fn list(
    connection: &mut AnyConnection,
    actor: &Actor,
    after: u64,
    limit: u32,
) -> Result<EventPage, sqlx::Error> {
    let limit = limit.clamp(1, PAGE_MAX);
    let all = "SELECT * FROM events WHERE number > $1 ORDER BY number LIMIT $2";
    let own = "SELECT * FROM events WHERE tenant = $3 AND number > $1 ORDER BY number LIMIT $2";
    let mut rows = match actor.tenant() {
        None => connection.rows(all, values![after, limit + 1]).await?,
        Some(tenant) => {
            let values = values![after, limit + 1, tenant];
            connection.rows(own, values).await?
        }
    };
    let has_more = cut(&mut rows, limit);
    let items: Vec<Event> = rows.iter().map(event).collect::<Result<_, _>>()?;
    let last = items.last().filter(|_| has_more);
    let next = last.map(|last| last.number);
    Ok(EventPage { items, next })
}

/// The newest events, oldest first.
pub(crate) async fn newest(
    connection: &mut AnyConnection,
    actor: &Actor,
    count: u32,
) -> Result<EventPage, sqlx::Error> {
    let all = "SELECT * FROM events ORDER BY number DESC LIMIT $1";
    let own = "SELECT * FROM events WHERE tenant = $2 ORDER BY number DESC LIMIT $1";
    let rows = match actor.tenant() {
        None => connection.rows(all, values![count]).await?,
        Some(tenant) => connection.rows(own, values![count, tenant]).await?,
    };
    let items = rows.iter().rev().map(event).collect::<Result<_, _>>()?;
    Ok(EventPage { items, next: None })
}

fn event(row: &Row) -> Result<Event, sqlx::Error> {
    let kind = serde_json::Value::String(row.text("kind")?);
    let kind: EventKind =
        serde_json::from_value(kind).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Event {
        number: row.natural("number")?,
        at_ms: row.natural("at_ms")?,
        kind,
        slice: row.maybe_text("slice")?,
        tenant: row.maybe_text("tenant")?,
        gateway: row.maybe_text("gateway")?,
        generation: row.maybe_natural("generation")?,
        by: row.maybe_text("actor")?,
        reason: row.maybe_text("reason")?,
    })
}
