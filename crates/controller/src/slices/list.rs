//! Lists of slices, part by part in the order of their names.

use super::stored::{Hop, Stored};
use slicewise_api::{SlicePage, SliceState};
use sqlx::{AnyConnection, AssertSqlSafe};
use std::collections::BTreeMap;

/// Slices of one part.
pub(crate) const PAGE_MAX: u32 = 1_000;

/// Which slices.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    pub(crate) after: String,
    pub(crate) limit: u32,
    pub(crate) tenant: Option<String>,
    pub(crate) state: Option<SliceState>,
    pub(crate) link: Option<String>,
    pub(crate) name_contains: Option<String>,
}

/// A part of the list.
pub(crate) async fn list(
    connection: &mut AnyConnection,
    query: &ListQuery,
) -> Result<SlicePage, sqlx::Error> {
    let limit = query.limit.clamp(1, PAGE_MAX);
    let (sql, values) = sql(query);
    let mut select = sqlx::query(AssertSqlSafe(sql)).bind(query.after.clone());
    for value in values {
        select = select.bind(value);
    }
    // One more than asked for tells whether there is another part.
    let rows = select
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *connection)
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    let stored: Vec<Stored> = rows
        .iter()
        .take(limit)
        .map(Stored::of)
        .collect::<Result<_, _>>()?;
    let next = stored
        .last()
        .filter(|_| has_more)
        .map(|last| last.slice.name.clone());
    let mut hops = open_hops(connection, &stored).await?;
    let items = stored.into_iter().map(|stored| {
        let own = hops.remove(&stored.slice.name).unwrap_or_default();
        stored.record(&own)
    });
    Ok(SlicePage {
        items: items.collect(),
        next,
    })
}

/// The statement, and values of its parameters from $2 on; $1 is the cursor and the last one the limit.
fn sql(query: &ListQuery) -> (String, Vec<String>) {
    let mut sql = match query.link {
        Some(_) => {
            "SELECT s.* FROM slice_hops h JOIN slices s ON s.name = h.slice WHERE h.slice > $1"
                .to_owned()
        }
        None => "SELECT s.* FROM slices s WHERE s.name > $1".to_owned(),
    };
    let mut values = Vec::new();
    let pattern = query.name_contains.as_deref().map(|text| {
        // No name has capitals; whether they count differs between stores.
        let text = text.to_ascii_lowercase();
        let escaped = text
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        format!("%{escaped}%")
    });
    for (condition, value) in [
        ("h.link = ", query.link.clone()),
        ("s.tenant = ", query.tenant.clone()),
        (
            "s.state = ",
            query.state.map(|state| state.name().to_owned()),
        ),
        ("s.name LIKE ", pattern),
    ] {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition}${}", values.len() + 1));
            if condition.ends_with("LIKE ") {
                sql.push_str(" ESCAPE '\\'");
            }
        }
    }
    let order = match query.link {
        Some(_) => "h.slice",
        None => "s.name",
    };
    sql.push_str(&format!(" ORDER BY {order} LIMIT ${}", values.len() + 2));
    (sql, values)
}

/// Hops that are not acknowledged, by slice.
async fn open_hops(
    connection: &mut AnyConnection,
    stored: &[Stored],
) -> Result<BTreeMap<String, Vec<Hop>>, sqlx::Error> {
    let mut found: BTreeMap<String, Vec<Hop>> = BTreeMap::new();
    if stored.is_empty() {
        return Ok(found);
    }
    let places: Vec<String> = (1..=stored.len())
        .map(|place| format!("${place}"))
        .collect();
    let select = format!(
        "SELECT * FROM slice_hops WHERE acknowledged = 0 AND slice IN ({}) ORDER BY slice, hop",
        places.join(", ")
    );
    let mut select = sqlx::query(AssertSqlSafe(select));
    for one in stored {
        select = select.bind(one.slice.name.clone());
    }
    let rows = select.persistent(false).fetch_all(connection).await?;
    for row in &rows {
        let hop = Hop::of(row)?;
        found.entry(hop.slice.clone()).or_default().push(hop);
    }
    Ok(found)
}
