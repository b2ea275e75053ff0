//! The history of generations, and the way back to one of them.

use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::rules;
use crate::slices::{Applied, Guard, apply_any};
use crate::sql::{Failed, Row, RowExt, Sql, Tx, cut, number, values};
use futures_util::TryStreamExt;
use slicewise_api::{Change, GenerationPage, GenerationRecord, Slice, SliceChange};
use sqlx::AnyConnection;

/// Generations of one part.
pub(crate) const PAGE_MAX: u32 = 100;

/// Generations before `before`, newest first.
pub(crate) async fn list(
    connection: &mut AnyConnection,
    actor: &Actor,
    before: Option<u64>,
    limit: u32,
) -> Result<GenerationPage, sqlx::Error> {
    let limit = limit.clamp(1, PAGE_MAX);
    let all = "SELECT * FROM generations WHERE generation < $1 ORDER BY generation DESC LIMIT $2";
    let own = "SELECT * FROM generations g WHERE generation < $1 AND EXISTS (SELECT 1 FROM changes c \
               WHERE c.tenant = $3 AND c.generation = g.generation) ORDER BY generation DESC LIMIT $2";
    let before = before.unwrap_or(u64::MAX);
    let mut rows = match actor.tenant() {
        None => connection.rows(all, values![before, limit + 1]).await?,
        Some(tenant) => {
            let values = values![before, limit + 1, tenant];
            connection.rows(own, values).await?
        }
    };
    let has_more = cut(&mut rows, limit);
    let mut items = Vec::new();
    for row in &rows {
        items.push(generation(&mut *connection, actor, row).await?);
    }
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|last| last.generation);
    Ok(GenerationPage { items, next })
}

/// One generation; `None` if there is none of that number, or nothing in it that the tenant may see.
pub(crate) async fn get(
    connection: &mut AnyConnection,
    actor: &Actor,
    number: u64,
) -> Result<Option<GenerationRecord>, sqlx::Error> {
    let select = "SELECT * FROM generations WHERE generation = $1";
    let Some(row) = connection.row(select, values![number]).await? else {
        return Ok(None);
    };
    let found = generation(connection, actor, &row).await?;
    let is_hidden = actor.tenant().is_some() && found.changes.is_empty();
    Ok((!is_hidden).then_some(found))
}

async fn generation(
    connection: &mut AnyConnection,
    actor: &Actor,
    row: &Row,
) -> Result<GenerationRecord, sqlx::Error> {
    let generation = row.natural("generation")?;
    let select = "SELECT slice, tenant, before_body, after_body FROM changes WHERE generation = $1 ORDER BY position";
    let mut changes = Vec::new();
    for row in connection.rows(select, values![generation]).await? {
        let tenant = row.text("tenant")?;
        if actor.tenant().is_none_or(|own| own == tenant) {
            changes.push(SliceChange {
                slice: row.text("slice")?,
                before: body(&row, "before_body")?,
                after: body(&row, "after_body")?,
            });
        }
    }
    Ok(GenerationRecord {
        generation,
        at_ms: row.natural("at_ms")?,
        by: row.text("actor")?,
        changes,
        // A tenant does not see why others changed.
        reason: row
            .maybe_text("reason")?
            .filter(|_| actor.tenant().is_none()),
    })
}

fn body(row: &Row, column: &str) -> Result<Option<Slice>, sqlx::Error> {
    match row.text(column)?.is_empty() {
        true => Ok(None),
        false => row.json(column).map(Some),
    }
}

/// Return to the slices of generation `to`, as one batch, if the newest generation is one that `guard` states.
pub(crate) async fn restore(
    tx: &mut Tx,
    actor: &Actor,
    to: u64,
    guard: &Guard,
) -> Result<Applied, Failed> {
    if let Some(expected) = &guard.versions {
        let select = "SELECT COALESCE(MAX(generation), 0) AS generation FROM generations";
        let row = tx.one_row(select, []).await?;
        let newest = row.natural("generation")?;
        if !expected.contains(&newest) {
            let detail = format!(
                "generation {newest} is the newest by now: look at what has changed, and repeat the request if it still makes sense"
            );
            return Err(Refusal::precondition(detail).into());
        }
    }
    let select = "SELECT generation FROM generations WHERE generation = $1";
    let found = tx.row(select, values![to]).await?;
    if to != 0 && found.is_none() {
        return Err(Refusal::not_found("generation", &to.to_string()).into());
    }
    let changes = changes_back(tx, to).await?;
    if changes.is_empty() {
        return Ok(Applied::nothing(tx.generation()));
    }
    // However many there are: what was admitted once, part by part, is admitted again as a whole.
    let reason = format!("restore of generation {to}");
    // As many as it takes: it was all there once.
    let mut candidates = u64::from(u32::MAX);
    let applied = apply_any(tx, actor, changes, Some(&reason), None, &mut candidates).await?;
    rules::end_with(tx, &applied.removed).await?;
    Ok(applied)
}

/// Returns the changes that restore the slices of generation `to`, in the order of their names. Its memory is that of
/// the slices that differ, however long the history is.
async fn changes_back(tx: &mut Tx, to: u64) -> Result<Vec<Change>, Failed> {
    // What each slice was then is what it was before its first change since. A slice that drains counts as removed. What rules
    // change is not returned to: a loan that was taken back since would have nobody who takes it back.
    let select = "SELECT f.slice AS slice, f.before_body AS before_body, COALESCE(s.body, '') AS now_body FROM \
                  (SELECT slice, before_body, ROW_NUMBER() OVER (PARTITION BY slice ORDER BY generation) AS place \
                  FROM changes WHERE generation > $1 AND generation NOT IN \
                  (SELECT generation FROM generations WHERE generation > $1 AND actor LIKE 'rule %')) AS f \
                  LEFT JOIN slices s ON s.name = f.slice AND s.state <> 'draining' WHERE f.place = 1 ORDER BY f.slice";
    let mut rows = sqlx::query(select).bind(number(to)).fetch(tx.connection());
    let mut changes = Vec::new();
    while let Some(row) = rows.try_next().await? {
        match (body(&row, "before_body")?, body(&row, "now_body")?) {
            (Some(then), now) if now.as_ref() != Some(&then) => changes.push(Change::Put(then)),
            (None, Some(_)) => changes.push(Change::Remove(row.text("slice")?)),
            _ => {}
        }
    }
    Ok(changes)
}

/// The slices that a generation changed, at most so many.
pub(crate) async fn names(
    connection: &mut AnyConnection,
    generation: u64,
    limit: u32,
) -> Result<Vec<String>, sqlx::Error> {
    let select = "SELECT slice FROM changes WHERE generation = $1 ORDER BY slice LIMIT $2";
    let rows = connection.rows(select, values![generation, limit]).await?;
    rows.iter().map(|row| row.text("slice")).collect()
}
