//! Two slices never have a packet in common on the same link and in the same direction.

use super::ranges::{Lookup, Ranges};
use crate::refusal::Refusal;
use crate::sql::{Failed, RowExt, Sql, values};
use slicewise_api::Slice;
use sqlx::{AnyConnection, AssertSqlSafe};

/// Candidates beyond which another index is better, or as good as any.
const FEW: u64 = 64;
/// Most candidates that are compared for one request: some seconds, in which nobody else changes anything.
pub(super) const CANDIDATES_MAX: u64 = 4_000_000;

/// A slice that has a packet in common with `slice`, if there is one: its name and its tenant. The slice of the same name does not count.
///
/// Where they are many, candidates are taken from `left`; it is refused to compare more.
pub(super) async fn overlapping(
    connection: &mut AnyConnection,
    slice: &Slice,
    left: &mut u64,
) -> Result<Option<(String, String)>, Failed> {
    for one in &slice.matches {
        let ranges = Ranges::of(one).map_err(Refusal::invalid)?;
        for link in &slice.path {
            let lookup = best(connection, link, ranges.lookups(), left).await?;
            for statement in statements(connection, slice, &ranges, &lookup) {
                // Its text differs every time: it is not worth being kept prepared.
                let select = sqlx::query(AssertSqlSafe(statement)).persistent(false);
                let select = select
                    .bind(link.clone())
                    .bind(slice.name.clone())
                    .bind(slice.tenant.clone());
                if let Some(row) = select.fetch_optional(&mut *connection).await? {
                    return Ok(Some((row.text("slice")?, row.text("tenant")?)));
                }
            }
        }
    }
    Ok(None)
}

/// The lookup that finds the fewest candidates.
async fn best(
    connection: &mut AnyConnection,
    link: &str,
    mut lookups: Vec<Lookup>,
    left: &mut u64,
) -> Result<Lookup, Failed> {
    let (mut place, mut fewest) = (0, FEW);
    if lookups.len() > 1 {
        let found = counted(connection, link, &lookups, FEW).await?;
        for (index, found) in found.into_iter().enumerate() {
            // Beyond that they are not told apart, however many statements a lookup takes.
            if found < fewest {
                (fewest, place) = (found, index);
            }
        }
    }
    let best = lookups.swap_remove(place);
    if fewest == FEW {
        let most = left.saturating_add(1);
        let found = counted(connection, link, std::slice::from_ref(&best), most).await?;
        *left = left
            .checked_sub(found.iter().sum())
            .ok_or_else(too_many_candidates)?;
    }
    Ok(best)
}

fn too_many_candidates() -> Refusal {
    let detail = format!(
        "it would take more than {CANDIDATES_MAX} comparisons with other slices: \
         state addresses, ports or tags that few slices have, or send smaller batches"
    );
    Refusal::invalid_at("/matches", detail)
}

/// How many candidates each lookup finds; no more than about `most` are counted.
async fn counted(
    connection: &mut AnyConnection,
    link: &str,
    lookups: &[Lookup],
    most: u64,
) -> Result<Vec<u64>, sqlx::Error> {
    let select = count(connection, lookups, most);
    let select = sqlx::query(AssertSqlSafe(select)).persistent(false);
    let row = select.bind(link.to_owned()).fetch_one(connection).await?;
    let found = (0..lookups.len()).map(|index| row.natural(&format!("found_{index}")));
    found.collect()
}

/// Counts the candidates of each lookup, at most `most` of each of its conditions.
fn count(connection: &AnyConnection, lookups: &[Lookup], most: u64) -> String {
    let counts = lookups.iter().enumerate().map(|(index, lookup)| {
        let each = lookup.conditions.iter().map(|condition| {
            format!(
                "(SELECT COUNT(*) FROM (SELECT 1 FROM slice_matches m {} WHERE m.link = $1 AND {condition} LIMIT {most}) AS candidates)",
                indexed(connection, lookup)
            )
        });
        let each: Vec<String> = each.collect();
        format!("{} AS found_{index}", each.join(" + "))
    });
    let counts: Vec<String> = counts.collect();
    format!("SELECT {}", counts.join(", "))
}

/// PostgreSQL knows how often each value occurs; SQLite is told.
fn indexed(connection: &AnyConnection, lookup: &Lookup) -> String {
    match connection.backend_name() {
        "SQLite" => format!("INDEXED BY {}", lookup.index),
        _ => String::new(),
    }
}

/// They find the slices whose packets meet one match of `slice`: $1 is the link, $2 and $3 are name and tenant of the slice.
fn statements(
    connection: &AnyConnection,
    slice: &Slice,
    ranges: &Ranges,
    lookup: &Lookup,
) -> Vec<String> {
    let directions = match (slice.forward.is_some(), slice.backward.is_some()) {
        (true, true) => "",
        (true, false) => " AND m.in_forward = 1",
        _ => " AND m.in_backward = 1",
    };
    let (indexed, condition) = (indexed(connection, lookup), ranges.condition());
    let statement = |candidates: &String| {
        // A slice that the same batch adds has no row yet, and is of a tenant that the client may see.
        format!(
            "SELECT m.slice AS slice, COALESCE(s.tenant, $3) AS tenant FROM slice_matches m {indexed} \
             LEFT JOIN slices s ON s.name = m.slice WHERE m.link = $1 AND m.slice <> $2 AND {candidates}{directions}{condition} LIMIT 1"
        )
    };
    lookup.conditions.iter().map(statement).collect()
}

/// Forget the matches of these slices.
pub(super) async fn forget(
    connection: &mut AnyConnection,
    slices: &[String],
) -> Result<(), sqlx::Error> {
    let delete = ("DELETE FROM slice_matches WHERE slice", "");
    connection.named(delete, [], slices).await.map(drop)
}

/// Save the matches of a slice on every link of its path.
pub(super) async fn save(connection: &mut AnyConnection, slice: &Slice) -> Result<(), Failed> {
    let insert = "INSERT INTO slice_matches (link, slice, position, in_forward, in_backward, ip_version, source_low, source_high, \
                  destination_low, destination_high, protocol, source_port_low, source_port_high, destination_port_low, \
                  destination_port_high, dscp, vlan, inner_vlan, teid, source_port_block, destination_port_block) VALUES \
                  ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
    for link in &slice.path {
        for (position, one) in (0i64..).zip(&slice.matches) {
            let ranges = Ranges::of(one).map_err(Refusal::invalid)?;
            let values = values![
                link,
                slice.name,
                position,
                slice.forward.is_some(),
                slice.backward.is_some(),
                ranges.ip_version,
                ranges.source.low,
                ranges.source.high,
                ranges.destination.low,
                ranges.destination.high,
                ranges.protocol,
                ranges.source_ports.low,
                ranges.source_ports.high,
                ranges.destination_ports.low,
                ranges.destination_ports.high,
                ranges.dscp,
                ranges.vlan,
                ranges.inner_vlan,
                ranges.teid,
                ranges.source_ports.block(),
                ranges.destination_ports.block()
            ];
            connection.change(insert, values).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};
    use proptest::prelude::*;
    use slicewise_api::{Match, Protocol, Terms};
    use slicewise_model::IpPrefix;

    fn slice(matched: Match) -> Slice {
        Slice {
            name: "a".to_owned(),
            tenant: "default".to_owned(),
            path: vec!["uplink".to_owned()],
            matches: vec![matched],
            forward: Some(Terms::default()),
            ..Slice::default()
        }
    }

    /// A match that states everything.
    fn full() -> Match {
        let address = |text: &str| Some(text.to_owned());
        Match {
            source: address("10.0.0.0/8"),
            destination: address("10.1.2.3"),
            protocol: Some(Protocol::Number(17)),
            source_port: address("8-11"),
            destination_port: address("9"),
            dscp: Some(46),
            vlan: Some(5),
            inner_vlan: Some(6),
            teid: Some(7),
        }
    }

    #[test]
    fn every_field_has_an_index_that_finds_those_which_may_meet_it() {
        with_store(async |store| {
            let connection = store.pool().acquire().await.unwrap();
            let mut plans = Vec::new();
            for matched in [full(), Match::default()] {
                let slice = slice(matched);
                let ranges = Ranges::of(&slice.matches[0]).unwrap();
                let lookups = ranges.lookups();
                for lookup in &lookups {
                    for statement in statements(&connection, &slice, &ranges, lookup) {
                        let plan = plan(store, &statement).await;
                        plans.push(plan.lines().next().unwrap_or_default().to_owned());
                    }
                }
                let counted = plan(store, &count(&connection, &lookups, FEW)).await;
                assert!(!counted.contains("SCAN m"), "{counted}");
            }
            drop(connection);
            insta::assert_snapshot!(plans.join("\n"), @"
            SEARCH m USING INDEX slice_matches_by_destination (link=? AND destination_low>? AND destination_low<?)
            SEARCH m USING INDEX slice_matches_by_destination (link=? AND destination_low=? AND vlan=? AND inner_vlan=? AND teid=?)
            SEARCH m USING INDEX slice_matches_by_source (link=? AND source_low>? AND source_low<?)
            SEARCH m USING INDEX slice_matches_by_source (link=? AND source_low=? AND vlan=? AND inner_vlan=? AND teid=?)
            SEARCH m USING INDEX slice_matches_by_destination_port (link=? AND destination_port_block=? AND protocol=? AND vlan=?)
            SEARCH m USING INDEX slice_matches_by_source_port (link=? AND source_port_block>? AND source_port_block<?)
            SEARCH m USING INDEX slice_matches_by_source_port (link=? AND source_port_block=? AND protocol=? AND vlan=?)
            SEARCH m USING INDEX slice_matches_by_tunnel (link=? AND teid=? AND vlan=? AND inner_vlan=?)
            SEARCH m USING INDEX slice_matches_by_tag (link=? AND vlan=? AND inner_vlan=? AND teid=?)
            SEARCH m USING INDEX slice_matches_by_inner_tag (link=? AND inner_vlan=? AND vlan=?)
            SEARCH m USING INDEX slice_matches_by_dscp (link=? AND dscp=? AND protocol=? AND vlan=?)
            SEARCH m USING INDEX slice_matches_by_protocol (link=? AND protocol=? AND dscp=? AND vlan=?)
            SEARCH m USING INDEX slice_matches_by_tag (link=?)
            ");
        });
    }

    #[test]
    fn stores_that_go_forward_have_the_blocks_of_new_ones() {
        const SQL: &str = include_str!("../../migrations/0008_ports.sql");
        let ports = |low: u16, high: u16| Match {
            source_port: Some(format!("{low}-{high}")),
            destination_port: low.is_multiple_of(2).then(|| high.to_string()),
            ..Match::default()
        };
        let ends = [0, 1, 2, 3, 1_023, 1_024, 32_767, 32_768, 49_151, 65_535];
        let pairs = ends
            .into_iter()
            .flat_map(|low| ends.map(|high| (low, high)));
        let pairs = pairs.filter(|(low, high)| low <= high);
        let slice = Slice {
            matches: pairs.map(|(low, high)| ports(low, high)).collect(),
            ..slice(Match::default())
        };
        let updates: String = SQL
            .split_inclusive(';')
            .filter(|one| one.trim_start().starts_with("UPDATE"))
            .collect();
        with_store(async |store| {
            crate::store::testing::in_transaction!(store, |tx| {
                let connection = tx.connection();
                save(&mut *connection, &slice).await?;
                let blocks = "SELECT source_port_block, destination_port_block FROM slice_matches ORDER BY position";
                let mut found = Vec::new();
                for _ in 0..2 {
                    let rows = sqlx::query(blocks).fetch_all(&mut *connection).await?;
                    let both = rows.iter().map(|row| {
                        ["source_port_block", "destination_port_block"]
                            .map(|column| row.integer(column).unwrap())
                    });
                    found.push(both.collect::<Vec<_>>());
                    let again = sqlx::raw_sql(AssertSqlSafe(updates.clone()));
                    again.execute(&mut *connection).await?;
                }
                assert_eq!(found[0].len(), 55);
                assert_eq!(found[0], found[1]);
                Ok(())
            });
        });
    }

    #[test]
    fn many_candidates_are_counted_and_no_more_of_them_compared_than_are_left() {
        with_store(async |store| {
            crate::store::testing::in_transaction!(store, |tx| {
                let of = |vlan| Match {
                    protocol: Some(Protocol::Number(6)),
                    vlan,
                    ..Match::default()
                };
                for vlan in 1..=100 {
                    let mut one = slice(of(Some(vlan)));
                    one.name = format!("s{vlan}");
                    save(tx.connection(), &one).await?;
                }
                let mut left = 150;
                let few = slice(of(Some(101)));
                assert!(
                    overlapping(tx.connection(), &few, &mut left)
                        .await?
                        .is_none()
                );
                assert_eq!(left, 150, "it has a tag of its own");
                let many = slice(of(None));
                assert!(
                    overlapping(tx.connection(), &many, &mut left)
                        .await?
                        .is_some()
                );
                assert_eq!(left, 50);
                let refused = overlapping(tx.connection(), &many, &mut left).await;
                let Err(Failed::Refused(refused)) = refused else {
                    panic!("{refused:?}");
                };
                insta::assert_snapshot!(refused.problem.detail, @"it would take more than 4000000 comparisons with other slices: state addresses, ports or tags that few slices have, or send smaller batches");
                Ok(())
            });
        });
    }

    /// Few values, so that many meet.
    fn any_match() -> impl Strategy<Value = Match> {
        let prefix = || {
            prop::option::of(prop::sample::select(vec![
                "10.0.0.0/8",
                "10.1.0.0/16",
                "10.1.2.3",
                "10.2.0.0/15",
                "2001:db8::/32",
                "2001:db8:1::1",
            ]))
        };
        let ports = || {
            prop::option::of((0..40_u16, 0..20_u16).prop_map(|(low, more)| match more {
                0..8 => low.to_string(),
                _ => format!("{low}-{}", low + more),
            }))
        };
        let tags = (
            prop::option::weighted(0.3, 1..4_u16),
            prop::option::weighted(0.3, 1..3_u16),
            prop::option::weighted(0.3, 1..4_u32),
        );
        let words = (
            prop::option::of(prop::sample::select(vec![6_u8, 17])),
            prop::option::weighted(0.3, 0..3_u8),
        );
        let all = (prefix(), prefix(), ports(), ports(), tags, words);
        all.prop_map(|(source, destination, from, to, tags, words)| Match {
            source: source.map(str::to_owned),
            destination: destination.map(str::to_owned),
            source_port: from,
            destination_port: to,
            vlan: tags.0,
            inner_vlan: tags.1,
            teid: tags.2,
            protocol: words.0.map(Protocol::Number),
            dscp: words.1,
        })
    }

    /// Returns true if two matches have a packet in common, by their fields.
    fn meet(a: &Match, b: &Match) -> bool {
        fn both<T>(a: Option<T>, b: Option<T>, meet: impl Fn(T, T) -> bool) -> bool {
            a.zip(b).is_none_or(|(a, b)| meet(a, b))
        }
        let nested = |a: IpPrefix, b: IpPrefix| {
            let length = a.length().min(b.length());
            a.address().is_ipv4() == b.address().is_ipv4()
                && IpPrefix::new(a.address(), length) == IpPrefix::new(b.address(), length)
        };
        let version = |one: &Match| {
            let prefix = one
                .source_prefix()
                .unwrap()
                .or(one.destination_prefix().unwrap());
            prefix.map(|prefix| prefix.address().is_ipv4())
        };
        let overlap = |a: std::ops::RangeInclusive<u16>, b: std::ops::RangeInclusive<u16>| {
            a.start() <= b.end() && b.start() <= a.end()
        };
        both(version(a), version(b), |a, b| a == b)
            && both(
                a.source_prefix().unwrap(),
                b.source_prefix().unwrap(),
                nested,
            )
            && both(
                a.destination_prefix().unwrap(),
                b.destination_prefix().unwrap(),
                nested,
            )
            && both(
                a.source_ports().unwrap(),
                b.source_ports().unwrap(),
                overlap,
            )
            && both(
                a.destination_ports().unwrap(),
                b.destination_ports().unwrap(),
                overlap,
            )
            && both(a.protocol, b.protocol, |a, b| a.number() == b.number())
            && both(a.dscp, b.dscp, |a, b| a == b)
            && both(a.vlan, b.vlan, |a, b| a == b)
            && both(a.inner_vlan, b.inner_vlan, |a, b| a == b)
            && both(a.teid, b.teid, |a, b| a == b)
    }

    /// Two addresses of different versions match no packet.
    fn is_possible(one: &Match) -> bool {
        let versions = [
            one.source_prefix().unwrap(),
            one.destination_prefix().unwrap(),
        ];
        let versions = versions.map(|prefix| prefix.map(|prefix| prefix.address().is_ipv4()));
        versions[0].zip(versions[1]).is_none_or(|(a, b)| a == b)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn what_meets_is_found_and_nothing_else(
            matches in prop::collection::vec(any_match().prop_filter("possible", is_possible), 30)
        ) {
            with_store(async |store| {
                crate::store::testing::in_transaction!(store, |tx| {
                        let mut kept: Vec<Match> = Vec::new();
                        for (index, matched) in matches.into_iter().enumerate() {
                            let mut one = slice(matched.clone());
                            one.name = format!("s{index}");
                            let found = overlapping(tx.connection(), &one, &mut u64::from(u32::MAX)).await?;
                            let expected = kept.iter().any(|other| meet(other, &matched));
                            assert_eq!(found.is_some(), expected, "{matched:?} in {kept:?}");
                            if found.is_none() {
                                save(tx.connection(), &one).await?;
                                kept.push(matched);
                            }
                        }
                        Ok(())
                    });
            });
        }
    }
}
