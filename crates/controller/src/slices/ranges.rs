//! Matches as ranges of header fields, and the indexes by which those are found that may meet one.
//!
//! Two matches have a packet in common if and only if all their ranges have a value in common, where a field that a match does not state has every value;
//! so the test is exact for matches that have the fields of [`Match`]. Address prefixes either lie within each other or apart, so a prefix meets those that begin within it and
//! those that it begins in. Port ranges are put into the smallest aligned block of 2^k ports that holds them, and blocks lie within each other or apart, too.

use slicewise_api::{Invalid, Match};
use slicewise_model::IpPrefix;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Above every address: they are written in hexadecimal.
const ABOVE: &str = "~";
/// A field that a match does not state.
const ANY: i64 = -1;

/// The ranges of one match.
#[derive(Debug, Clone)]
pub(super) struct Ranges {
    /// 4 or 6; 0 where addresses do not say.
    pub(super) ip_version: i64,
    pub(super) source: Addresses,
    pub(super) destination: Addresses,
    pub(super) protocol: i64,
    pub(super) source_ports: Ports,
    pub(super) destination_ports: Ports,
    pub(super) dscp: i64,
    pub(super) vlan: i64,
    pub(super) inner_vlan: i64,
    pub(super) teid: i64,
}

/// Addresses from `low` to `high`, with the prefixes around them.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    pub(super) low: String,
    pub(super) high: String,
    prefix: Option<IpPrefix>,
}

/// Ports from `low`, -1 where none are stated, to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) low: i64,
    pub(super) high: i64,
}

/// One index, and the conditions by which it finds what may meet a match: each is one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) index: &'static str,
    pub(super) conditions: Vec<String>,
}

impl Addresses {
    fn of(prefix: Option<IpPrefix>) -> Self {
        let (low, high) = match prefix.map(|prefix| (prefix.address(), prefix.length())) {
            None => (String::new(), ABOVE.to_owned()),
            Some((IpAddr::V4(address), length)) => {
                let low = u32::from(address);
                let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                (format!("4{low:08x}"), format!("4{:08x}", low | host))
            }
            Some((IpAddr::V6(address), length)) => {
                let low = u128::from(address);
                let host = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                (format!("6{low:032x}"), format!("6{:032x}", low | host))
            }
        };
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

    fn lookup(&self, index: &'static str, column: &str) -> Option<Lookup> {
        self.prefix?;
        let lows: Vec<String> = self.around().iter().map(|low| format!("'{low}'")).collect();
        let conditions = vec![
            format!("m.{column}_low BETWEEN '{}' AND '{}'", self.low, self.high),
            format!("m.{column}_low IN ({})", lows.join(", ")),
        ];
        Some(Lookup { index, conditions })
    }
}

impl Ports {
    fn of(ports: Option<RangeInclusive<u16>>) -> Self {
        let (low, high) = match ports {
            Some(ports) => (i64::from(*ports.start()), i64::from(*ports.end())),
            None => (ANY, i64::from(u16::MAX)),
        };
        Self { low, high }
    }

    /// The smallest block that holds them: its first port, and the exponent of its size.
    fn block_of(self) -> (i64, u32) {
        let exponent = i64::BITS - (self.low ^ self.high).leading_zeros();
        (self.low >> exponent << exponent, exponent)
    }

    /// Number of a block: blocks are numbered as the nodes of a binary tree in order, so those within a block have the numbers around its own.
    const fn number((first, exponent): (i64, u32)) -> i64 {
        2 * first + (1 << exponent) - 1
    }

    /// The number of the smallest block that holds them; -1 where none are stated.
    pub(super) fn block(self) -> i64 {
        match self.low {
            ANY => ANY,
            _ => Self::number(self.block_of()),
        }
    }

    fn lookup(self, index: &'static str, column: &str) -> Option<Lookup> {
        if self.low == ANY {
            return None;
        }
        let (first, exponent) = self.block_of();
        let around = (exponent + 1..=16).map(|exponent| {
            let first = first >> exponent << exponent;
            Self::number((first, exponent))
        });
        let mut around: Vec<i64> = around.chain([ANY]).collect();
        let mut conditions = Vec::new();
        match exponent {
            0 => around.push(self.block()),
            _ => {
                let last = 2 * first + (2 << exponent) - 2;
                conditions.push(format!("m.{column}_block BETWEEN {} AND {last}", 2 * first));
            }
        }
        conditions.push(format!("m.{column}_block IN ({})", joined(&around)));
        Some(Lookup { index, conditions })
    }
}

fn joined(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    texts.join(", ")
}

impl Ranges {
    pub(super) fn of(one: &Match) -> Result<Self, Invalid> {
        let (source, destination) = (one.source_prefix()?, one.destination_prefix()?);
        let version = source
            .or(destination)
            .map(|prefix| prefix.address().is_ipv4());
        Ok(Self {
            ip_version: match version {
                None => 0,
                Some(true) => 4,
                Some(false) => 6,
            },
            source: Addresses::of(source),
            destination: Addresses::of(destination),
            protocol: one
                .protocol
                .map_or(ANY, |protocol| protocol.number().into()),
            source_ports: Ports::of(one.source_ports()?),
            destination_ports: Ports::of(one.destination_ports()?),
            dscp: one.dscp.map_or(ANY, i64::from),
            vlan: one.vlan.map_or(ANY, i64::from),
            inner_vlan: one.inner_vlan.map_or(ANY, i64::from),
            teid: one.teid.map_or(ANY, i64::from),
        })
    }

    /// One lookup for each field that is stated: any of them finds all that may meet it. Where none is, one by the link alone.
    pub(super) fn lookups(&self) -> Vec<Lookup> {
        let exact = |index, column: &str, value: i64| {
            let condition = format!("m.{column} IN ({value}, {ANY})");
            let conditions = vec![condition];
            (value != ANY).then_some(Lookup { index, conditions })
        };
        let lookups = [
            self.destination
                .lookup("slice_matches_by_destination", "destination"),
            self.source.lookup("slice_matches_by_source", "source"),
            self.destination_ports
                .lookup("slice_matches_by_destination_port", "destination_port"),
            self.source_ports
                .lookup("slice_matches_by_source_port", "source_port"),
            exact("slice_matches_by_tunnel", "teid", self.teid),
            exact("slice_matches_by_tag", "vlan", self.vlan),
            exact("slice_matches_by_inner_tag", "inner_vlan", self.inner_vlan),
            exact("slice_matches_by_dscp", "dscp", self.dscp),
            exact("slice_matches_by_protocol", "protocol", self.protocol),
        ];
        let mut lookups: Vec<Lookup> = lookups.into_iter().flatten().collect();
        if lookups.is_empty() {
            lookups.push(Lookup {
                index: "slice_matches_by_tag",
                conditions: vec!["0 = 0".to_owned()],
            });
        }
        lookups
    }

    /// Returns the condition under which another match has a packet in common. There is no text of a client in it.
    pub(super) fn condition(&self) -> String {
        let mut condition = String::new();
        for (column, value) in [
            ("vlan", self.vlan),
            ("inner_vlan", self.inner_vlan),
            ("teid", self.teid),
            ("protocol", self.protocol),
            ("dscp", self.dscp),
        ] {
            if value != ANY {
                // Writing to a string cannot fail.
                let _ = write!(condition, " AND m.{column} IN ({value}, {ANY})");
            }
        }
        if self.ip_version != 0 {
            let _ = write!(condition, " AND m.ip_version IN (0, {})", self.ip_version);
        }
        for (column, Ports { low, high }) in [
            ("source_port", self.source_ports),
            ("destination_port", self.destination_ports),
        ] {
            if low != ANY {
                let _ = write!(
                    condition,
                    " AND m.{column}_low <= {high} AND m.{column}_high >= {low}"
                );
            }
        }
        for (column, Addresses { low, high, prefix }) in
            [("source", &self.source), ("destination", &self.destination)]
        {
            if prefix.is_some() {
                let _ = write!(
                    condition,
                    " AND m.{column}_low <= '{high}' AND m.{column}_high >= '{low}'"
                );
            }
        }
        condition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ports() -> impl Strategy<Value = Ports> {
        let any = Just(Ports::of(None));
        let single = (0..=u16::MAX).prop_map(|port| Ports::of(Some(port..=port)));
        let range =
            (0..=u16::MAX, 0..=u16::MAX).prop_map(|(a, b)| Ports::of(Some(a.min(b)..=a.max(b))));
        let short = (0..=u16::MAX - 40, 0..40_u16)
            .prop_map(|(low, more)| Ports::of(Some(low..=low + more)));
        prop_oneof![1 => any, 3 => single, 2 => range, 2 => short]
    }

    /// Returns true if the lookup of `ports` finds the block of another.
    fn finds(ports: Ports, other: i64) -> bool {
        let Some(lookup) = ports.lookup("", "p") else {
            return true;
        };
        lookup.conditions.iter().any(|condition| {
            let numbers: Vec<i64> = condition
                .split(|char: char| !char.is_ascii_digit() && char != '-')
                .filter_map(|word| word.parse().ok())
                .collect();
            match condition.contains("BETWEEN") {
                true => (numbers[0]..=numbers[1]).contains(&other),
                false => numbers.contains(&other),
            }
        })
    }

    proptest! {
        #[test]
        fn ranges_of_ports_that_meet_are_found(one in ports(), other in ports()) {
            let meet = one.low <= other.high && one.high >= other.low;
            if meet {
                prop_assert!(finds(one, other.block()));
                prop_assert!(finds(other, one.block()));
            }
        }

        #[test]
        fn a_single_port_finds_no_other_one(one in 0..=u16::MAX, other in 0..=u16::MAX) {
            let [one, other] = [one, other].map(|port| Ports::of(Some(port..=port)));
            prop_assert_eq!(finds(one, other.block()), one == other);
        }
    }
}
