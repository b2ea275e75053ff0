//! Lists of slices, part by part in the order of their names.

use super::stored::{Hop, Hops, Stored};
use crate::sql::{RowExt, Sql, ToValue, Value, cut};
use slicewise_api::{SlicePage, SliceQuery};
use sqlx::{AnyConnection, AssertSqlSafe};

/// Slices of one part.
pub(crate) const PAGE_MAX: u32 = 1_000;

/// A part of the list.
pub(crate) async fn list(
    connection: &mut AnyConnection,
    query: &SliceQuery,
    limit: u32,
) -> Result<SlicePage, sqlx::Error> {
    let total = match query.count {
        true => Some(count(connection, query).await?),
        false => None,
    };
    let (sql, values) = sql(query, limit);
    let mut rows = connection.rows(AssertSqlSafe(sql), values).await?;
    let has_more = cut(&mut rows, limit);
    let stored: Vec<Stored> = rows.iter().map(Stored::of).collect::<Result<_, _>>()?;
    let names: Vec<&str> = stored.iter().map(|one| one.slice.name.as_str()).collect();
    let last = names.last().filter(|_| has_more);
    let next = last.map(|&last| last.to_owned());
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
async fn count(connection: &mut AnyConnection, query: &SliceQuery) -> Result<u64, sqlx::Error> {
    // Every name is after the cursor.
    let (names, values) = names(query, "");
    let sql = format!("SELECT COUNT(*) AS total FROM ({names}) AS found");
    let row = connection.one_row(AssertSqlSafe(sql), values).await?;
    row.natural("total")
}

/// The statement for a part, of one more than `limit`: that tells whether there is another part.
fn sql(query: &SliceQuery, limit: u32) -> (String, Vec<Value>) {
    let after = query.after.as_deref().unwrap_or_default();
    let (names, mut values) = names(query, after);
    values.push((limit + 1).to_value());
    let sql = format!(
        "SELECT * FROM slices WHERE name IN (SELECT name FROM ({names} ORDER BY name LIMIT ${}) AS found) ORDER BY name",
        values.len()
    );
    (sql, values)
}

/// The names after `after` that fulfil all conditions, as a statement with its values.
///
/// Each condition has an index in the order of names, and the names that fulfil all of them are found by merging these:
/// no slice is read that is not listed. A join would read each one that fulfils the condition whose index is chosen.
fn names(query: &SliceQuery, after: &str) -> (String, Vec<Value>) {
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
    let mut values = vec![after.to_value()];
    let mut selects: Vec<String> = Vec::new();
    for (select, value) in by_column {
        if let Some(value) = value {
            values.push(value.to_value());
            selects.push(format!("{select} = ${}", values.len()));
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
    values.extend(pattern.map(|pattern| pattern.to_value()));
    for (index, select) in selects.iter_mut().enumerate() {
        let name = match select.starts_with("SELECT slice") {
            true => "slice",
            false => "name",
        };
        select.push_str(&format!(" AND {name} > $1"));
        // What one of them leaves out, all do.
        if has_pattern && index == 0 {
            let place = values.len();
            select.push_str(&format!(" AND {name} LIKE ${place} ESCAPE '\\'"));
        }
    }
    (selects.join(" INTERSECT "), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};
    use slicewise_api::SliceState;

    #[test]
    fn slices_that_are_not_listed_are_not_read() {
        let all = SliceQuery {
            tenant: Some("a".to_owned()),
            state: Some(SliceState::Installed),
            link: Some("b".to_owned()),
            name_contains: Some("50%_".to_owned()),
            ..SliceQuery::default()
        };
        let (statement, values) = sql(&all, 100);
        insta::assert_snapshot!(statement, @r#"SELECT * FROM slices WHERE name IN (SELECT name FROM (SELECT name FROM slices WHERE tenant = $2 AND name > $1 AND name LIKE $5 ESCAPE '\' INTERSECT SELECT name FROM slices WHERE state = $3 AND name > $1 INTERSECT SELECT slice AS name FROM slice_hops WHERE link = $4 AND slice > $1 ORDER BY name LIMIT $6) AS found) ORDER BY name"#);
        assert_eq!(values[4], r"%50\%\_%".to_value());
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
            let any = SliceQuery {
                name_contains: Some("x".to_owned()),
                ..SliceQuery::default()
            };
            insta::assert_snapshot!(plan(store, &sql(&any, 100).0).await, @r#"
SEARCH slices USING INDEX sqlite_autoindex_slices_1 (name=?)
LIST SUBQUERY 2
SEARCH slices USING COVERING INDEX sqlite_autoindex_slices_1 (name>?)
CREATE BLOOM FILTER
"#);
        });
    }
}
