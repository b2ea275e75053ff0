//! Lists of slices, part by part in the order of their names.

use super::stored::{Hop, Hops, Stored};
use crate::sql::RowExt;
use slicewise_api::{SlicePage, SliceState};
use sqlx::{AnyConnection, AssertSqlSafe};

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
    /// Set if the sums of all parts are counted.
    pub(crate) count: bool,
}

/// A part of the list.
pub(crate) async fn list(
    connection: &mut AnyConnection,
    query: &ListQuery,
) -> Result<SlicePage, sqlx::Error> {
    let limit = query.limit.clamp(1, PAGE_MAX);
    let total = match query.count {
        true => Some(count(&mut *connection, query).await?),
        false => None,
    };
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
    let names: Vec<&str> = stored.iter().map(|one| one.slice.name.as_str()).collect();
    let next = names
        .last()
        .filter(|_| has_more)
        .map(|&last| last.to_owned());
    let mut hops = Hop::load_several(connection, &names, Hops::Open).await?;
    let items = stored.into_iter().map(|stored| {
        let own = hops.remove(&stored.slice.name).unwrap_or_default();
        stored.record(&own)
    });
    Ok(SlicePage {
        items: items.collect(),
        next,
        total,
    })
}

/// Number of slices in all parts.
async fn count(connection: &mut AnyConnection, query: &ListQuery) -> Result<u64, sqlx::Error> {
    let (names, values) = names(query);
    let sql = format!("SELECT COUNT(*) AS total FROM ({names}) AS found");
    // The cursor: every name is after it.
    let mut select = sqlx::query(AssertSqlSafe(sql)).bind(String::new());
    for value in values {
        select = select.bind(value);
    }
    select.fetch_one(connection).await?.natural("total")
}

/// The statement, and values of its parameters from $2 on; $1 is the cursor and the last one the limit.
fn sql(query: &ListQuery) -> (String, Vec<String>) {
    let (names, values) = names(query);
    let sql = format!(
        "SELECT * FROM slices WHERE name IN (SELECT name FROM ({names} ORDER BY name LIMIT ${}) AS found) ORDER BY name",
        values.len() + 2
    );
    (sql, values)
}

/// The names that fulfil all conditions, as a statement, and values of its parameters from $2 on; $1 is the cursor.
///
/// Each condition has an index in the order of names, and the names that fulfil all of them are found by merging these:
/// no slice is read that is not listed. A join would read each one that fulfils the condition whose index is chosen.
fn names(query: &ListQuery) -> (String, Vec<String>) {
    let by_column = [
        ("SELECT name FROM slices WHERE tenant", query.tenant.clone()),
        (
            "SELECT name FROM slices WHERE state",
            query.state.map(|state| state.name().to_owned()),
        ),
        (
            "SELECT slice AS name FROM slice_hops WHERE link",
            query.link.clone(),
        ),
    ];
    let mut values = Vec::new();
    let mut selects: Vec<String> = Vec::new();
    for (select, value) in by_column {
        if let Some(value) = value {
            values.push(value);
            selects.push(format!("{select} = ${}", values.len() + 1));
        }
    }
    if selects.is_empty() {
        selects.push("SELECT name FROM slices WHERE 0 = 0".to_owned());
    }
    let pattern = query.name_contains.as_deref().map(|text| {
        // No name has capitals; whether they count differs between stores.
        let text = text.to_ascii_lowercase();
        let escaped = text
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        format!("%{escaped}%")
    });
    let has_pattern = pattern.is_some();
    values.extend(pattern);
    for (index, select) in selects.iter_mut().enumerate() {
        let name = match select.starts_with("SELECT slice") {
            true => "slice",
            false => "name",
        };
        select.push_str(&format!(" AND {name} > $1"));
        // What one of them leaves out, all do.
        if has_pattern && index == 0 {
            let place = values.len() + 1;
            select.push_str(&format!(" AND {name} LIKE ${place} ESCAPE '\\'"));
        }
    }
    (selects.join(" INTERSECT "), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};

    #[test]
    fn slices_that_are_not_listed_are_not_read() {
        let all = ListQuery {
            limit: 100,
            tenant: Some("a".to_owned()),
            state: Some(SliceState::Installed),
            link: Some("b".to_owned()),
            name_contains: Some("50%_".to_owned()),
            ..ListQuery::default()
        };
        let (statement, values) = sql(&all);
        insta::assert_snapshot!(statement, @r#"SELECT * FROM slices WHERE name IN (SELECT name FROM (SELECT name FROM slices WHERE tenant = $2 AND name > $1 AND name LIKE $5 ESCAPE '\' INTERSECT SELECT name FROM slices WHERE state = $3 AND name > $1 INTERSECT SELECT slice AS name FROM slice_hops WHERE link = $4 AND slice > $1 ORDER BY name LIMIT $6) AS found) ORDER BY name"#);
        assert_eq!(values[3], r"%50\%\_%");
        with_store(async |store| {
            insta::assert_snapshot!(plan(store, &statement).await, @r#"
SEARCH slices USING INDEX sqlite_autoindex_slices_1 (name=?)
LIST SUBQUERY 4
CO-ROUTINE found
MERGE (INTERSECT)
LEFT
MERGE (INTERSECT)
LEFT
SEARCH slices USING COVERING INDEX slices_by_tenant (tenant=? AND name>?)
RIGHT
SEARCH slices USING COVERING INDEX slices_by_state (state=? AND name>?)
RIGHT
SEARCH slice_hops USING COVERING INDEX slice_hops_by_link (link=? AND slice>?)
SCAN found
CREATE BLOOM FILTER
"#);
            let any = ListQuery {
                name_contains: Some("x".to_owned()),
                ..ListQuery::default()
            };
            insta::assert_snapshot!(plan(store, &sql(&any).0).await, @r#"
SEARCH slices USING INDEX sqlite_autoindex_slices_1 (name=?)
LIST SUBQUERY 2
SEARCH slices USING COVERING INDEX sqlite_autoindex_slices_1 (name>?)
CREATE BLOOM FILTER
"#);
        });
    }
}
