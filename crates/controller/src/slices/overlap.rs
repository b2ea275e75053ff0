//! Two slices never have a packet in common on the same link and in the same direction.
//!
//! Each match of a slice is kept as ranges of header fields. Two matches have a packet in common if and only if all their ranges have a value in
//! common, where a field that a match does not state has every value; so the test is exact for matches that have the fields of
//! [`Match`]. Address prefixes either lie within each other or apart, so a prefix meets those that begin within it and
//! those that it begins in: indexes find both.

use crate::refusal::Refusal;
use crate::store::{Failed, NAMES_TOGETHER, RowExt, named};
use slicewise_api::{Invalid, Match, Slice};
use slicewise_model::IpPrefix;
use sqlx::{AnyConnection, AssertSqlSafe};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Above every address: they are written in hexadecimal.
const ABOVE: &str = "~";

/// The ranges of one match.
#[derive(Debug, Clone)]
struct Ranges {
    /// 4 or 6; 0 where addresses do not say.
    ip_version: i64,
    source: Addresses,
    destination: Addresses,
    protocol: i64,
    source_ports: (i64, i64),
    destination_ports: (i64, i64),
    dscp: i64,
    vlan: i64,
    inner_vlan: i64,
    teid: i64,
}

/// Addresses from `low` to `high`, with the prefixes around them.
#[derive(Debug, Clone)]
struct Addresses {
    low: String,
    high: String,
    prefix: Option<IpPrefix>,
}

impl Addresses {
    fn of(prefix: Option<IpPrefix>) -> Self {
        let Some(prefix) = prefix else {
            let (low, high) = (String::new(), ABOVE.to_owned());
            return Self {
                low,
                high,
                prefix: None,
            };
        };
        let (low, high) = match prefix.address() {
            IpAddr::V4(address) => {
                let low = u32::from(address);
                let host = u32::MAX.checked_shr(prefix.length().into()).unwrap_or(0);
                (format!("4{low:08x}"), format!("4{:08x}", low | host))
            }
            IpAddr::V6(address) => {
                let low = u128::from(address);
                let host = u128::MAX.checked_shr(prefix.length().into()).unwrap_or(0);
                (format!("6{low:032x}"), format!("6{:032x}", low | host))
            }
        };
        let prefix = Some(prefix);
        Self { low, high, prefix }
    }

    /// Where the prefixes around it begin, and what has no prefix.
    fn around(&self) -> Vec<String> {
        let mut lows = vec![String::new()];
        if let Some(prefix) = self.prefix {
            let shorter =
                (0..prefix.length()).filter_map(|length| IpPrefix::new(prefix.address(), length));
            lows.extend(shorter.map(|prefix| Self::of(Some(prefix)).low));
        }
        lows.sort_unstable();
        lows.dedup();
        // Prefixes that begin where it begins are found as those within it.
        lows.retain(|low| *low != self.low || self.prefix.is_none());
        lows
    }
}

impl Ranges {
    fn of(one: &Match) -> Result<Self, Invalid> {
        let (source, destination) = (one.source_prefix()?, one.destination_prefix()?);
        let version = source
            .or(destination)
            .map(|prefix| prefix.address().is_ipv4());
        let ports = |ports: Option<RangeInclusive<u16>>| match ports {
            Some(ports) => (i64::from(*ports.start()), i64::from(*ports.end())),
            None => (-1, i64::from(u16::MAX)),
        };
        Ok(Self {
            ip_version: match version {
                None => 0,
                Some(true) => 4,
                Some(false) => 6,
            },
            source: Addresses::of(source),
            destination: Addresses::of(destination),
            protocol: one.protocol.map_or(-1, |protocol| protocol.number().into()),
            source_ports: ports(one.source_ports()?),
            destination_ports: ports(one.destination_ports()?),
            dscp: one.dscp.map_or(-1, i64::from),
            vlan: one.vlan.map_or(-1, i64::from),
            inner_vlan: one.inner_vlan.map_or(-1, i64::from),
            teid: one.teid.map_or(-1, i64::from),
        })
    }

    /// Conditions by which an index finds those that may meet it: each is one query, with the addresses that it has decided.
    fn candidates(&self) -> Vec<(String, String)> {
        let by_prefix = |column: &str, addresses: &Addresses| {
            let within = format!(
                "{column}_low BETWEEN '{}' AND '{}'",
                addresses.low, addresses.high
            );
            let lows = addresses.around();
            let lows: Vec<String> = lows.iter().map(|low| format!("'{low}'")).collect();
            let around = format!("{column}_low IN ({})", lows.join(", "));
            // No condition on what `around` states exactly: by a range, an index would find every lower address.
            let reaches = format!(" AND {column}_high >= '{}'", addresses.low);
            vec![(within, String::new()), (around, reaches)]
        };
        // Appended to nothing: by a range of sources, an index would find more than by destinations.
        let meets = |column: &str, addresses: &Addresses| {
            let Addresses { low, high, prefix } = addresses;
            match prefix {
                Some(_) => {
                    format!(" AND {column}_low || '' <= '{high}' AND {column}_high >= '{low}'")
                }
                None => String::new(),
            }
        };
        if self.destination.prefix.is_some() {
            let mut found = by_prefix("destination", &self.destination);
            for (_, rest) in &mut found {
                rest.push_str(&meets("source", &self.source));
            }
            return found;
        }
        if self.source.prefix.is_some() {
            return by_prefix("source", &self.source);
        }
        // The conditions on tags are enough for an index.
        vec![("0 = 0".to_owned(), String::new())]
    }

    /// What must hold of everything but addresses for another match to have a packet in common. There is no text of a client in it.
    fn condition(&self) -> String {
        let mut condition = String::new();
        for (column, value) in [
            ("vlan", self.vlan),
            ("inner_vlan", self.inner_vlan),
            ("teid", self.teid),
            ("protocol", self.protocol),
            ("dscp", self.dscp),
        ] {
            if value >= 0 {
                // Writing to a string cannot fail.
                let _ = write!(condition, " AND {column} IN ({value}, -1)");
            }
        }
        if self.ip_version != 0 {
            let _ = write!(condition, " AND ip_version IN (0, {})", self.ip_version);
        }
        for (column, (low, high)) in [
            ("source_port", self.source_ports),
            ("destination_port", self.destination_ports),
        ] {
            if low >= 0 {
                let _ = write!(
                    condition,
                    " AND {column}_low <= {high} AND {column}_high >= {low}"
                );
            }
        }
        condition
    }
}

/// A slice that has a packet in common with `slice`, if there is one: its name and its tenant. The slice of the same name does not count.
pub(super) async fn overlapping(
    connection: &mut AnyConnection,
    slice: &Slice,
) -> Result<Option<(String, String)>, Failed> {
    for one in &slice.matches {
        let statements = statements(slice, one).map_err(Refusal::invalid)?;
        for link in &slice.path {
            for statement in &statements {
                // Its text differs every time: it is not worth being kept prepared.
                let select = sqlx::query(AssertSqlSafe(statement.clone())).persistent(false);
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

/// They find the slices whose packets meet one match of `slice`: $1 is the link, $2 and $3 are name and tenant of the slice.
fn statements(slice: &Slice, one: &Match) -> Result<Vec<String>, Invalid> {
    let directions = match (slice.forward.is_some(), slice.backward.is_some()) {
        (true, true) => "",
        (true, false) => " AND in_forward = 1",
        _ => " AND in_backward = 1",
    };
    let ranges = Ranges::of(one)?;
    let condition = ranges.condition();
    let statement = |(candidates, addresses)| {
        // A slice that the same batch adds has no row yet, and is of a tenant that the client may see.
        format!(
            "SELECT m.slice AS slice, COALESCE(s.tenant, $3) AS tenant FROM slice_matches m \
             LEFT JOIN slices s ON s.name = m.slice WHERE m.link = $1 AND m.slice <> $2 AND {candidates}{directions}{condition}{addresses} LIMIT 1"
        )
    };
    Ok(ranges.candidates().into_iter().map(statement).collect())
}

/// Forget the matches of these slices.
pub(super) async fn forget(
    connection: &mut AnyConnection,
    slices: &[String],
) -> Result<(), sqlx::Error> {
    for names in slices.chunks(NAMES_TOGETHER) {
        let delete = named("DELETE FROM slice_matches WHERE slice", 1, names.len());
        let mut delete = sqlx::query(AssertSqlSafe(delete)).persistent(names.len() == 1);
        for name in names {
            delete = delete.bind(name.clone());
        }
        delete.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Save the matches of a slice on every link of its path.
pub(super) async fn save(connection: &mut AnyConnection, slice: &Slice) -> Result<(), Failed> {
    let insert = "INSERT INTO slice_matches (link, slice, position, in_forward, in_backward, ip_version, source_low, source_high, \
                  destination_low, destination_high, protocol, source_port_low, source_port_high, destination_port_low, \
                  destination_port_high, dscp, vlan, inner_vlan, teid) VALUES \
                  ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
    for link in &slice.path {
        for (position, one) in (0i64..).zip(&slice.matches) {
            let ranges = Ranges::of(one).map_err(Refusal::invalid)?;
            let insert = sqlx::query(insert)
                .bind(link.clone())
                .bind(slice.name.clone())
                .bind(position)
                .bind(i64::from(slice.forward.is_some()))
                .bind(i64::from(slice.backward.is_some()))
                .bind(ranges.ip_version)
                .bind(ranges.source.low)
                .bind(ranges.source.high)
                .bind(ranges.destination.low)
                .bind(ranges.destination.high)
                .bind(ranges.protocol)
                .bind(ranges.source_ports.0)
                .bind(ranges.source_ports.1)
                .bind(ranges.destination_ports.0)
                .bind(ranges.destination_ports.1)
                .bind(ranges.dscp)
                .bind(ranges.vlan)
                .bind(ranges.inner_vlan)
                .bind(ranges.teid);
            insert.execute(&mut *connection).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{plan, with_store};
    use slicewise_api::Terms;

    #[test]
    fn slices_that_cannot_meet_a_match_are_not_read() {
        let of = |matched: Match| Slice {
            name: "a".to_owned(),
            tenant: "default".to_owned(),
            path: vec!["uplink".to_owned()],
            matches: vec![matched],
            forward: Some(Terms::default()),
            backward: None,
        };
        let address = || Some("10.1.2.3".to_owned());
        let by_destination = of(Match {
            source: Some("10.0.0.0/8".to_owned()),
            destination: address(),
            ..Match::default()
        });
        let by_source = of(Match {
            source: address(),
            ..Match::default()
        });
        let by_tag = of(Match {
            vlan: Some(5),
            ..Match::default()
        });
        with_store(async |store| {
            let mut plans = Vec::new();
            for slice in [by_destination, by_source, by_tag] {
                for statement in statements(&slice, &slice.matches[0]).unwrap() {
                    let plan = plan(store, &statement).await;
                    plans.push(plan.lines().next().unwrap_or_default().to_owned());
                }
            }
            insta::assert_snapshot!(plans.join("\n"), @r#"
SEARCH m USING INDEX slice_matches_by_destination (link=? AND destination_low>? AND destination_low<?)
SEARCH m USING INDEX slice_matches_by_destination (link=? AND destination_low=?)
SEARCH m USING INDEX slice_matches_by_source (link=? AND source_low>? AND source_low<?)
SEARCH m USING INDEX slice_matches_by_source (link=? AND source_low=?)
SEARCH m USING INDEX slice_matches_by_tag (link=? AND vlan=?)
"#);
        });
    }
}
