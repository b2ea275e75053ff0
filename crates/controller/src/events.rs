//! Events, as lists.

use crate::actor::Actor;
use crate::sql::{Row, RowExt, number};
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
    let select = match actor.tenant() {
        None => "SELECT * FROM events WHERE number > $1 ORDER BY number LIMIT $2",
        Some(_) => {
            "SELECT * FROM events WHERE tenant = $3 AND number > $1 ORDER BY number LIMIT $2"
        }
    };
    let mut select = sqlx::query(select)
        .bind(number(after))
        .bind(i64::from(limit) + 1);
    if let Some(tenant) = actor.tenant() {
        select = select.bind(tenant.to_owned());
    }
    let rows = select.fetch_all(connection).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<Event> = rows
        .iter()
        .take(limit)
        .map(event)
        .collect::<Result<_, _>>()?;
    let next = items
        .last()
        .filter(|_| rows.len() > limit)
        .map(|last| last.number);
    Ok(EventPage { items, next })
}

/// The newest events, oldest first.
pub(crate) async fn newest(
    connection: &mut AnyConnection,
    actor: &Actor,
    count: u32,
) -> Result<EventPage, sqlx::Error> {
    let select = match actor.tenant() {
        None => "SELECT * FROM events ORDER BY number DESC LIMIT $1",
        Some(_) => "SELECT * FROM events WHERE tenant = $2 ORDER BY number DESC LIMIT $1",
    };
    let mut select = sqlx::query(select).bind(i64::from(count));
    if let Some(tenant) = actor.tenant() {
        select = select.bind(tenant.to_owned());
    }
    let rows = select.fetch_all(connection).await?;
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
